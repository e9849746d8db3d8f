"""Features of its own for every arm."""

from typing import Any, NamedTuple

import numpy as np

from unfog.features.base import Context, Form, certain, linear_form, quadratic_form, shift_matrix
from unfog.maths.arrays import Array, Ints, flat, matvec, rowdots, take
from unfog.maths.gaussian import Blocks, Gaussian
from unfog.validation import check_keywords


def _one_hot(arm: Ints, arms: int, like: Array) -> Array:
    """One at the arm and zero elsewhere: (...,) -> (..., K)."""
    xp = like.__array_namespace__()
    one_hot: Array = (xp.arange(arms) == arm[..., None]).astype(like.dtype)
    return one_hot


class PerArmDesign(NamedTuple):
    """Expected features under N(mean, cov), of [1, c] where there is an intercept."""

    arms: int  # K
    mean: Array  # (..., k)
    cov: Array  # (..., k, k)

    def cut(self, theta: Array) -> Array:
        """Theta in the arms' blocks: (..., K k) -> (..., K, k)."""
        return theta.reshape(*theta.shape[:-1], self.arms, self.mean.shape[-1])

    def place(self, arm: Ints) -> Array:
        """One at the arm and zero elsewhere: (...,) -> (..., K)."""
        return _one_hot(arm, self.arms, self.mean)

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(self.cut(theta), self.mean)

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        return flat(self.place(arm)[..., None] * self.mean[..., None, :])

    def variances(self, belief: Gaussian | Blocks) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        _, root = self._by_arm(belief)
        half = (self.mean[..., None, None, :] @ root)[..., 0, :]
        variances: Array = xp.vecdot(half, half)
        return variances

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c))."""
        one_hot = self.place(arm)
        grid = (one_hot[..., :, None] * one_hot[..., None, :])[..., :, None, :, None]
        blocks = grid * self.cov[..., None, :, None, :]
        size = self.arms * self.mean.shape[-1]
        return blocks.reshape(*blocks.shape[:-4], size, size)

    def context_variance(self, belief: Gaussian | Blocks, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        mean, root = self._by_arm(belief)
        chosen = self._chosen(flat(root), arm)
        chosen = chosen.reshape(*chosen.shape[:-1], *root.shape[-2:])
        return quadratic_form(self._chosen(mean, arm), chosen, self.cov)

    def _chosen(self, rows: Array, arm: Ints) -> Array:
        """An arm's row: (..., K, p) -> (..., p); compiled programs multiply faster than they look up."""
        if rows.__array_namespace__() is np and rows.ndim - 2 in (0, arm.ndim):
            return take(rows, arm)
        return (self.place(arm)[..., None, :] @ rows)[..., 0, :]

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        one_hot = self.place(arm)[..., None]
        return flat(one_hot * matvec(self.cov, (one_hot.mT @ self.cut(theta))[..., 0, :])[..., None, :])

    def _by_arm(self, belief: Gaussian | Blocks) -> tuple[Array, Array]:
        """Mean (..., K, k) and root (..., K, k, n) of a belief, cut by arm unless it is in blocks."""
        if belief.mean.ndim > belief.centre.ndim:  # in blocks
            return belief.mean, belief.root
        root = belief.root
        shape = *root.shape[:-2], self.arms, self.mean.shape[-1], root.shape[-1]
        return self.cut(belief.mean), root.reshape(*shape)

    def laws(self, theta: Array) -> "PerArmLaws":
        """The laws of the scores: Gaussian."""
        return PerArmLaws(self, theta)


class PerArmLaws(NamedTuple):
    """theta_a'c with c ~ N(mean, cov)."""

    design: PerArmDesign
    theta: Array  # (..., K k)

    def of(self, arm: Ints) -> Form:
        """The law of the chosen arm's score."""
        weight = (self.design.place(arm)[..., None, :] @ self.design.cut(self.theta))[..., 0, :]
        return linear_form(weight, self.design.mean, self.design.cov)


class PerArm(NamedTuple):
    """The map for K arms and contexts of dimension d."""

    arms: int
    dim: int
    intercept: bool = True

    @property
    def block(self) -> int:
        """How many features an arm has: k."""
        return self.dim + self.intercept

    @property
    def size(self) -> int:
        """How many features: m = K k."""
        return self.arms * self.block

    @property
    def cells(self) -> int:
        """None: the structure needs no memory of its own."""
        return 0

    def design(self, context: Context) -> PerArmDesign:
        """Expected features of every arm."""
        return PerArmDesign(self.arms, *(_prepend_intercept(*context) if self.intercept else context))

    def at(self, context: Array) -> PerArmDesign:
        """Features of every arm at a known context."""
        return self.design(certain(context))

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """[v, 1] in the block of the arm."""
        xp = unbiased.__array_namespace__()
        extended = xp.concat([unbiased, xp.ones_like(unbiased[..., :1])], axis=-1)
        return flat(_one_hot(arm, self.arms, unbiased)[..., None] * extended[..., None, :])

    def projection(self, shift: Array, cov: Array) -> Array:  # noqa: ARG002
        """[I, -s], that of one block, and above it the row that takes [v, 1] to the intercept's 1."""
        slopes = shift_matrix(shift)
        if not self.intercept:
            return slopes
        xp = shift.__array_namespace__()
        last = xp.concat([xp.zeros_like(shift), xp.ones_like(shift[..., :1])], axis=-1)
        matrix: Array = xp.concat([last[..., None, :], slopes], axis=-2)
        return matrix

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:
        """The slopes among theta_a."""
        blocks = theta.reshape(*theta.shape[:-1], self.arms, self.block)
        chosen = (_one_hot(arm, self.arms, mean)[..., None, :] @ blocks)[..., 0, :]
        return chosen[..., int(self.intercept) :]

    def over_rounds(self) -> "PerArm":
        """The same map: it holds nothing of a trial's own."""
        return self


def has_intercepts(features: object) -> bool:
    """Whether each arm has an intercept of its own, so that contexts may be counted from any origin."""
    return isinstance(features, PerArm) and features.intercept


def effect_groups(features: object) -> tuple[int, ...] | None:
    """Which entries of an arm's block of theta share a spread: 0 for its intercept, 1, 2, ... for slopes.

    None where arms have no intercepts of their own.
    """
    return tuple(range(features.block)) if isinstance(features, PerArm) and features.intercept else None


def _prepend_intercept(mean: Array, cov: Array) -> tuple[Array, Array]:
    """The moments of [1, c]."""
    xp = mean.__array_namespace__()
    if xp is np:
        return _pad_front(1.0, mean, 1), _pad_front(0.0, cov, 2)
    extended = xp.concat([xp.ones_like(mean[..., :1]), mean], axis=-1)
    rows = xp.concat([xp.zeros_like(cov[..., :1, :]), cov], axis=-2)
    return extended, xp.concat([xp.zeros_like(rows[..., :1]), rows], axis=-1)


def _pad_front(border: float, inner: Array, axes: int) -> Array:
    """`inner` with one more entry in front along its last axes; in NumPy faster than concatenation."""
    last = inner.ndim - axes
    padded = np.full((*inner.shape[:last], *(n + 1 for n in inner.shape[last:])), border, inner.dtype)
    inner_index: Any = (..., *[slice(1, None)] * axes)
    padded[inner_index] = inner
    return padded


@check_keywords
def per_arm(actions: Array, *, intercept: bool = True) -> PerArm:
    """Features of its own for every arm: phi(a, c) is [1, c] at the place of arm a and zero elsewhere.

    An intercept and slopes for each arm, m = K (d + 1); without the intercept, c alone and m = K d, the
    paper's map for MovieLens. E[phi] has [1, v] in the arm's block and Cov(phi) the covariance C, bordered
    with zeros. A score is theta_a'[1, v] with theta_a the arm's block of theta, so all arms cost K (d + 1).

    Gives the map of as many arms as actions (..., K, d), whose numbers do not matter.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.per_arm(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> features.at(np.array([3.0, 1.0])).row(np.array(1)).tolist()  # of the second arm
    [0.0, 0.0, 0.0, 1.0, 3.0, 1.0]
    """
    return PerArm(actions.shape[-2], actions.shape[-1], intercept)


@check_keywords
def slopes(actions: Array) -> PerArm:
    """The map without intercepts: c alone at the place of the arm.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.slopes(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> features.at(np.array([3.0, 1.0])).row(np.array(1)).tolist()  # of the second arm
    [0.0, 0.0, 3.0, 1.0]
    """
    return per_arm(actions, intercept=False)
