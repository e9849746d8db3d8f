"""The law of a score phi(a, c)'theta when the context is only believed, for one theta and a chosen arm.

Rewards that are not linear in the score need more of it than its mean. A score that is linear or quadratic in
a Gaussian context is, after one rotation, `shift + sum_k (slope_k z_k + curvature_k z_k^2)` with independent
standard normals z; any other one is known at the points of a quadrature rule. The contract is `Law` in
model/rewards.py.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, matvec
from unfog.maths.logistic import NODES, expected_sigmoid, sigmoid


class Form(NamedTuple):
    """A quadratic form of independent standard normals."""

    shift: Array  # (...,)
    slope: Array  # (..., k)
    curvature: Array  # (..., k), its batch axes may be 1 where they share it

    def expected_sigmoid(self, nodes: int = NODES) -> Array:
        """E[sigmoid(score)]."""
        return expected_sigmoid(*self, nodes)


def linear_form(weight: Array, mean: Array, cov: Array) -> Form:
    """The law of weight'c with c ~ N(mean, cov): Gaussian."""
    xp = weight.__array_namespace__()
    spread = xp.sqrt(xp.vecdot(weight, matvec(cov, weight)))[..., None]
    return Form(xp.vecdot(weight, mean), spread, xp.zeros_like(spread))


class Weighed(NamedTuple):
    """A score at the points of a rule, with their weights."""

    values: Array  # (..., n)
    weights: Array  # (n,)

    def expected_sigmoid(self, nodes: int = NODES) -> Array:  # noqa: ARG002
        """E[sigmoid(score)], as exact as the rule is."""
        xp = self.values.__array_namespace__()
        found: Array = xp.vecdot(sigmoid(self.values), self.weights)
        return found
