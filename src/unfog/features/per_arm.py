"""A block of features for every arm: phi(a, c) is c at the place of arm a and zero elsewhere, m = K d.

The paper's map for MovieLens. E[phi] has the mean v in the arm's block and Cov(phi) the covariance C there. A
score is theta_a'v with theta_a the arm's block of theta, so all arms cost K d.
"""

from typing import NamedTuple

from unfog.features import Context
from unfog.features.law import Form, linear_form
from unfog.features.lift import quadratic_form, shifted
from unfog.maths.arrays import Array, Ints, matvec, rowdots
from unfog.maths.blocks import Blocks
from unfog.maths.gaussian import Gaussian


def _flat(matrices: Array) -> Array:
    """Each matrix with its rows laid end to end: (..., p, q) -> (..., p q)."""
    return matrices.reshape(*matrices.shape[:-2], -1)


class BlockDesign(NamedTuple):
    """Expected features under N(mean, cov)."""

    arms: int  # K
    mean: Array  # (..., d)
    cov: Array  # (..., d, d)

    def cut(self, theta: Array) -> Array:
        """Theta in the arms' blocks: (..., K d) -> (..., K, d)."""
        return theta.reshape(*theta.shape[:-1], self.arms, self.mean.shape[-1])

    def place(self, arm: Ints) -> Array:
        """Where an arm's block is: (...,) -> (..., K), one at the arm and zero elsewhere."""
        xp = self.mean.__array_namespace__()
        found: Array = (xp.arange(self.arms) == arm[..., None]).astype(self.mean.dtype)
        return found

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(self.cut(theta), self.mean)

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        blocks = self.place(arm)[..., None] * self.mean[..., None, :]
        return blocks.reshape(*blocks.shape[:-2], -1)

    def variances(self, belief: Gaussian | Blocks) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        _, root = self._by_arm(belief)
        half = (self.mean[..., None, None, :] @ root)[..., 0, :]
        found: Array = xp.vecdot(half, half)
        return found

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c))."""
        place = self.place(arm)
        grid = (place[..., :, None] * place[..., None, :])[..., :, None, :, None]
        blocks = grid * self.cov[..., None, :, None, :]
        size = self.arms * self.mean.shape[-1]
        return blocks.reshape(*blocks.shape[:-4], size, size)

    def context_variance(self, belief: Gaussian | Blocks, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        mean, root = self._by_arm(belief)
        place = self.place(arm)[..., None, :]
        chosen = place @ _flat(root)
        chosen = chosen.reshape(*chosen.shape[:-2], *root.shape[-2:])
        return quadratic_form((place @ mean)[..., 0, :], chosen, self.cov)

    def context_pull(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        place = self.place(arm)[..., None]
        blocks = place * matvec(self.cov, (place.mT @ self.cut(theta))[..., 0, :])[..., None, :]
        return blocks.reshape(*blocks.shape[:-2], -1)

    def _by_arm(self, belief: Gaussian | Blocks) -> tuple[Array, Array]:
        """Mean (..., K, d) and root (..., K, d, n) of a belief, whose root may be that of all arms."""
        if not isinstance(belief, Gaussian):
            return belief.mean, belief.root
        root = belief.root
        shape = *root.shape[:-2], self.arms, self.mean.shape[-1], root.shape[-1]
        return self.cut(belief.mean), root.reshape(*shape)

    def laws(self, theta: Array) -> "BlockLaws":
        """The laws of the scores: Gaussian."""
        return BlockLaws(self, theta)


class BlockLaws(NamedTuple):
    """theta_a'c with c ~ N(mean, cov)."""

    design: BlockDesign
    theta: Array  # (..., K d)

    def of(self, arm: Ints) -> Form:
        """The law of the chosen arm's score."""
        weight = (self.design.place(arm)[..., None, :] @ self.design.cut(self.theta))[..., 0, :]
        return linear_form(weight, self.design.mean, self.design.cov)


class Block(NamedTuple):
    """The map for K arms and contexts of dimension d."""

    arms: int
    dim: int

    @property
    def size(self) -> int:
        """How many features: m = K d."""
        return self.arms * self.dim

    @property
    def cells(self) -> int:
        """The structure needs no room of its own."""
        return 0

    def design(self, context: Context) -> BlockDesign:
        """Expected features of every arm."""
        return BlockDesign(self.arms, context.mean, context.cov)

    def at(self, context: Array) -> BlockDesign:
        """Features of every arm at a known context."""
        xp = context.__array_namespace__()
        certain = xp.zeros((context.shape[-1],) * 2, dtype=context.dtype)
        return BlockDesign(self.arms, context, certain)

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """[v, 1] at the place of the arm."""
        xp = unbiased.__array_namespace__()
        one = xp.concat([unbiased, xp.ones_like(unbiased[..., :1])], axis=-1)
        place = (xp.arange(self.arms) == arm[..., None]).astype(unbiased.dtype)
        return _flat(place[..., None] * one[..., None, :])

    def projection(self, shift: Array, cov: Array) -> Array:  # noqa: ARG002
        """[I, -s], that of one block."""
        return shifted(shift)

    def over_rounds(self) -> "Block":
        """The same map: it holds nothing of a trial's own."""
        return self
