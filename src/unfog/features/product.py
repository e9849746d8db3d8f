"""Features linear in the context, entry by entry."""

from typing import NamedTuple

from unfog.features.contract import Context
from unfog.features.law import Form, linear_form
from unfog.features.lift import quadratic_form
from unfog.maths.arrays import Array, Ints, diagonal_matrix, matvec, rowdots, stretch, take
from unfog.maths.gaussian import Gaussian


class ProductDesign(NamedTuple):
    """Expected features under N(mean, cov)."""

    actions: Array  # (..., K, d)
    mean: Array  # (..., d)
    cov: Array  # (..., d, d)

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(self.actions, self.mean * theta)

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        return take(self.actions, arm) * self.mean

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        spread = self.actions @ (self.mean[..., None] * belief.root)
        variances: Array = xp.vecdot(spread, spread)
        return variances

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c))."""
        action = take(self.actions, arm)
        return action[..., :, None] * self.cov * action[..., None, :]

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        action = take(self.actions, arm)
        return quadratic_form(action * belief.mean, action[..., None] * belief.root, self.cov)

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        action = take(self.actions, arm)
        return action * matvec(self.cov, action * theta)

    def laws(self, theta: Array) -> "ProductLaws":
        """The laws of the scores: Gaussian."""
        return ProductLaws(self, theta)


class ProductLaws(NamedTuple):
    """a'(c * theta) with c ~ N(mean, cov)."""

    design: ProductDesign
    theta: Array  # (..., d)

    def of(self, arm: Ints) -> Form:
        """The law of the chosen arm's score."""
        weight = take(self.design.actions, arm) * self.theta
        return linear_form(weight, self.design.mean, self.design.cov)


class Product(NamedTuple):
    """The map for one set of actions; build it with `product(actions)`."""

    actions: Array  # (..., K, d)

    @property
    def size(self) -> int:
        """How many features: m = d."""
        return self.actions.shape[-1]

    @property
    def arms(self) -> int:
        """How many actions: K."""
        return self.actions.shape[-2]

    @property
    def cells(self) -> int:
        """The structure needs no room of its own."""
        return 0

    @property
    def matrices(self) -> Array:
        """G(a) of every arm: (..., K, d, d)."""
        xp = self.actions.__array_namespace__()
        return self.actions[..., None] * xp.eye(self.size, dtype=self.actions.dtype)

    def design(self, context: Context) -> ProductDesign:
        """Expected features of every arm."""
        return ProductDesign(self.actions, context.mean, context.cov)

    def at(self, context: Array) -> ProductDesign:
        """Features of every arm at a known context."""
        xp = context.__array_namespace__()
        certain = xp.zeros((context.shape[-1],) * 2, dtype=context.dtype)
        return ProductDesign(self.actions, context, certain)

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """[a v, a]."""
        xp = unbiased.__array_namespace__()
        action = take(self.actions, arm)
        row: Array = xp.concat([action * unbiased, stretch(action, unbiased)], axis=-1)
        return row

    def projection(self, shift: Array, cov: Array) -> Array:  # noqa: ARG002
        """[I, -diag(s)]: E[a c] = a v - s a."""
        xp = shift.__array_namespace__()
        matrix: Array = xp.concat([diagonal_matrix(xp.ones_like(shift)), -diagonal_matrix(shift)], axis=-1)
        return matrix

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:  # noqa: ARG002
        """The entries of a theta."""
        return take(self.actions, arm) * theta

    def over_rounds(self) -> "Product":
        """The same map, ready for a block of rounds."""
        return Product(self.actions[..., None, :, :])


def product(actions: Array) -> Product:
    """Features linear in the context, entry by entry: phi(a, c) = a * c, that is G(a) = diag(a), m = d.

    E[phi] = a * v and Cov(phi) = diag(a) C diag(a). The score is a'(v * theta): one (K, d) product for all
    arms.

    Gives the map of these actions (..., K, d).

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> features.at(np.array([3.0, 1.0])).row(np.array(1)).tolist()  # of the second arm
    [3.0, 2.0]
    """
    return Product(actions)
