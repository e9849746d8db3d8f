"""The contract of a feature map phi(a, c), the laws of its scores, and what a map may offer besides.

A map holds the actions; shown a belief about the context (`Context`) it yields a `Design`, which knows the
expected features psi(a) = E[phi(a, c)] of every arm without building the (K, m) matrix where structure avoids
it.

`Liftable` maps have their expected features as a function of the channel's bias: x = T z, with z free of the
bias. Were the bias zero, the context of a round would have the mean v; with a bias gamma its law is
N(v - s, C), s = B gamma. The expected features of a map that is polynomial in the context are then linear in
a lifted row z(v, a), with a matrix T(s, C) that all rounds share: sums of z z' over past rounds serve for
every belief about the bias, also one that comes later. A map of blocks lifts each block alike: z has its
blocks end to end, and T is that of one block.

`Sloped` maps say how the expected score of an arm changes with the context, for learners that linearise. For
a map at most quadratic in the context, and c ~ N(v, C), E[phi(a, c)] depends on C by a term that does not
know v: the slope of psi(a)'theta in v is E[d phi(a, c) / dc]'theta, taken at c = v.

Rewards that are not linear in the score need more of it than its mean: the law of phi(a, c)'theta when the
context is only believed, for one theta and a chosen arm. A score that is linear or quadratic in a Gaussian
context is, after one rotation, `shift + sum_k (slope_k z_k + curvature_k z_k^2)` with independent standard
normals z (`Form`); any other one is known at the points of a quadrature rule (`Weighed`). The contract of
both is `Law` in features/link.py.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from unfog.features.link import Laws
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import Gaussian
from unfog.maths.linalg import product
from unfog.maths.logistic import NODES, expected_sigmoid, sigmoid


class Context(NamedTuple):
    """A Gaussian belief about a context; a known context has covariance zero.

    >>> import numpy as np
    >>> import unfog
    >>> belief = unfog.features.Context(np.array([1.0, -1.0]), 0.5 * np.eye(2))
    >>> belief.mean.tolist()
    [1.0, -1.0]
    """

    mean: Array  # (..., d)
    cov: Array  # (..., d, d), its batch axes may be absent when all trials share it


def certain(context: Array) -> Context:
    """The belief in a known context (..., d)."""
    xp = context.__array_namespace__()
    return Context(context, xp.zeros((context.shape[-1],) * 2, dtype=context.dtype))


class Design(Protocol):
    """The expected features of all arms in one round.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> design = features.at(np.array([3.0, -1.0]))
    >>> design.scores(np.array([1.0, 1.0])).tolist()  # of the two arms, with theta = (1, 1)
    [3.0, 1.0]
    """

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm: theta (..., m) -> (..., K)."""
        ...

    def row(self, arm: Ints) -> Array:
        """psi(arm): (...,) -> (..., m)."""
        ...

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta: (..., K)."""
        ...

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c)) under the belief about the context: (..., m, m)."""
        ...

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta] under a belief about theta: (...,)."""
        ...

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta, half the gradient of theta'Cov(phi)theta: theta (..., m) -> (..., m)."""
        ...

    def laws(self, theta: Array) -> Laws:
        """The laws of the scores phi(a, c)'theta under the belief about the context: theta (..., m)."""
        ...


class FeatureMap(Protocol):
    """phi(a, c) for one set of actions.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.ones((4, 2)))
    >>> features.size, features.arms
    (2, 4)
    """

    @property
    def size(self) -> int:
        """How many features: m."""
        ...

    @property
    def arms(self) -> int:
        """How many actions: K."""
        ...

    @property
    def cells(self) -> int:
        """Numbers that one design holds in memory temporarily, beyond a few for each arm."""
        ...

    def design(self, context: Context) -> Design:
        """The expected features of every arm under this belief about the context."""
        ...

    def at(self, context: Array) -> Design:
        """The features of every arm at a known context (..., d)."""
        ...

    def over_rounds(self) -> "FeatureMap":
        """The same map with a singleton axis for rounds before K, to score a block of rounds at once."""
        ...


@runtime_checkable
class Linear(Protocol):
    """What a map linear in the context has besides: phi(a, c) = G(a) c.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.array([[1.0, 2.0]]))
    >>> features.matrices.tolist()
    [[[1.0, 0.0], [0.0, 2.0]]]
    """

    @property
    def matrices(self) -> Array:
        """G(a) of every arm: (..., K, m, d)."""
        ...


@runtime_checkable
class Liftable(Protocol):
    """A feature map, linear or quadratic in the context, that can be expected anew for any bias."""

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """The lifted row z of an arm: v (..., d), arm (...,) -> (..., q)."""
        ...

    def projection(self, shift: Array, cov: Array) -> Array:
        """T for s (..., d) and C (..., d, d): (..., m, q), or that of one block, (..., m / K, q / K)."""
        ...


@runtime_checkable
class Sloped(Protocol):
    """A feature map, linear or quadratic in the context, whose expected scores have a slope in it."""

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:
        """That of psi(arm)'theta: v (..., d), theta (..., m), arm (...,) -> (..., d)."""
        ...


MapBuilder: TypeAlias = Callable[[Array], FeatureMap]
"""Turns actions (..., K, p) into a feature map."""


class Form(NamedTuple):
    """A quadratic form of independent standard normals."""

    shift: Array  # (...,)
    slope: Array  # (..., k)
    curvature: Array  # (..., k), its batch axes may be 1 where they share it

    def expected_sigmoid(self, nodes: int = NODES) -> Array:
        """E[sigmoid(score)]."""
        return expected_sigmoid(*self, nodes)


class Weighed(NamedTuple):
    """A score at the points of a rule, with their weights."""

    values: Array  # (..., n)
    weights: Array  # (n,)

    def expected_sigmoid(self, nodes: int = NODES) -> Array:  # noqa: ARG002
        """E[sigmoid(score)], as exact as the rule is."""
        xp = self.values.__array_namespace__()
        mean: Array = xp.vecdot(sigmoid(self.values), self.weights)
        return mean


def linear_form(weight: Array, mean: Array, cov: Array) -> Form:
    """The law of weight'c with c ~ N(mean, cov): Gaussian."""
    xp = weight.__array_namespace__()
    spread = xp.sqrt(xp.vecdot(weight, matvec(cov, weight)))[..., None]
    return Form(xp.vecdot(weight, mean), spread, xp.zeros_like(spread))


def shift_matrix(shift: Array) -> Array:
    """[I, -s], which takes [v, 1] to v - s: (..., d) -> (..., d, d + 1)."""
    xp = shift.__array_namespace__()
    d = shift.shape[-1]
    eye = xp.broadcast_to(xp.eye(d, dtype=shift.dtype), (*shift.shape, d))
    matrix: Array = xp.concat([eye, -shift[..., None]], axis=-1)
    return matrix


def quadratic_form(mean: Array, root: Array, cov: Array) -> Array:
    """E[w'C w] with w ~ N(mean, root root'): mean (..., k), root (..., k, n), cov (..., k, k) -> (...,)."""
    xp = mean.__array_namespace__()
    at_mean = xp.vecdot(mean, (cov @ mean[..., None])[..., 0])
    expected: Array = at_mean + (product(cov, root) * root).sum((-2, -1))
    return expected
