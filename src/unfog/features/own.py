"""A context of its own for every arm."""

from typing import NamedTuple

import numpy as np

from unfog.features.contract import Context, FeatureMap
from unfog.features.law import Form, linear_form
from unfog.features.lift import quadratic_form
from unfog.inputs import InputError, Numbers
from unfog.maths.arrays import Array, Ints, matvec, rowdots, take
from unfog.maths.gaussian import Gaussian


class OwnDesign(NamedTuple):
    """Expected features under N(mean, cov) of all arms' contexts together."""

    arms: int  # K
    mean: Array  # (..., K m)
    cov: Array  # (..., K m, K m)

    def rows(self) -> Array:
        """psi(a) of every arm: (..., K, m)."""
        return self.mean.reshape(*self.mean.shape[:-1], self.arms, -1)

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(self.rows(), theta)

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        return take(self.rows(), arm)

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        half = self.rows() @ belief.root
        found: Array = xp.vecdot(half, half)
        return found

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c)): the arm's block, (..., m, m)."""
        xp, cov = self.mean.__array_namespace__(), self.cov
        size = cov.shape[-1] // self.arms
        grid = cov.reshape(*cov.shape[:-2], self.arms, size, self.arms, size)
        place = xp.arange(self.arms)
        blocks = xp.moveaxis(grid, -2, -3)[..., place, place, :, :]
        batch = blocks.shape[:-3]
        shared = [1] * (arm.ndim - len(batch)) if batch else []  # axes of arms that the covariance lacks
        chosen = take(blocks.reshape(*shared, *batch, self.arms, size * size), arm)
        return chosen.reshape(*chosen.shape[:-1], size, size)

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        return quadratic_form(belief.mean, belief.root, self.covariance(arm))

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        return matvec(self.covariance(arm), theta)

    def laws(self, theta: Array) -> "OwnLaws":
        """The laws of the scores: Gaussian."""
        return OwnLaws(self, theta)


class OwnLaws(NamedTuple):
    """theta'c_a with c ~ N(mean, cov)."""

    design: OwnDesign
    theta: Array  # (..., m)

    def of(self, arm: Ints) -> Form:
        """The law of the chosen arm's score."""
        return linear_form(self.theta, self.design.row(arm), self.design.covariance(arm))


class Own(NamedTuple):
    """The map for K arms whose contexts have m numbers each."""

    arms: int
    size: int

    @property
    def cells(self) -> int:
        """The structure needs no room of its own."""
        return 0

    def design(self, context: Context) -> OwnDesign:
        """Expected features of every arm."""
        return OwnDesign(self.arms, *context)

    def at(self, context: Array) -> OwnDesign:
        """Features of every arm at a known context."""
        xp = context.__array_namespace__()
        dim = context.shape[-1]
        return OwnDesign(self.arms, context, xp.zeros((dim, dim), dtype=context.dtype))

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:  # noqa: ARG002
        """Those of theta, at the place of the arm's context."""
        xp = theta.__array_namespace__()
        place = (xp.arange(self.arms) == arm[..., None]).astype(theta.dtype)
        found = place[..., None] * theta[..., None, :]
        return found.reshape(*found.shape[:-2], -1)

    def over_rounds(self) -> "Own":
        """The same map: it holds nothing of a trial's own."""
        return self


def of_all_arms(features: FeatureMap, law: Numbers) -> Numbers:
    """The mean or covariance of all arms' contexts, where that of one arm is given: independent, and alike.

    Whatever else is given, or belongs to another map, comes back as it is.
    """
    if not isinstance(features, Own) or features.arms == 1:
        return law
    try:
        shape = np.shape(law)
    except ValueError:  # it is ragged, for others to complain of
        return law
    if shape == (features.size,):
        return np.tile(law, features.arms)
    if shape == (features.size,) * 2:
        repeated: Array = np.kron(np.eye(features.arms), np.asarray(law)).astype(np.float64)
        return repeated
    return law


def own(actions: Array) -> Own:
    """A context of its own for every arm: c = [c_1, ..., c_K] and phi(a, c) = c_a, m = d / K.

    The setting of most papers on linear bandits: each arm shows a vector, and theta is shared by all. E[phi]
    is the arm's part of the mean, and Cov(phi) its block of the covariance.

    Gives the map of as many arms as actions (..., K, d), whose numbers do not matter; d is K m.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.own(np.zeros((2, 4)))
    >>> features.at(np.array([1.0, 2.0, 3.0, 4.0])).row(np.array(1)).tolist()  # of the second arm
    [3.0, 4.0]
    """
    arms, dim = actions.shape[-2:]
    if dim % arms:
        raise InputError("dim", dim, f"a multiple of {arms}: with own features each arm has as many numbers")
    return Own(arms, dim // arms)
