"""A block of features for every arm: phi(a, c) is c at the place of arm a and zero elsewhere, m = K d.

The paper's map for MovieLens. E[phi] has the mean v in the arm's block and Cov(phi) the covariance C there. A
score is theta_a'v with theta_a the arm's block of theta, so all arms cost K d.
"""

from typing import NamedTuple

from unfog.arrays import Array, Ints, rowdots
from unfog.blocks import Blocks
from unfog.features import Context
from unfog.features.law import Form, linear_form
from unfog.gaussian import Gaussian


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
        root = belief.root
        if isinstance(belief, Gaussian):
            root = root.reshape(*root.shape[:-2], self.arms, self.mean.shape[-1], root.shape[-1])
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

    def over_rounds(self) -> "Block":
        """The same map: it holds nothing of a trial's own."""
        return self
