"""The paper's feature map, of squares and products."""

from typing import NamedTuple

from unfog.features.base import Context, Form, certain, quadratic_form
from unfog.maths.arrays import Array, Ints, diagonal_matrix, matvec, rowdots, stretch, take
from unfog.maths.gaussian import Gaussian, square_root
from unfog.validation import check_keywords


class QuadraticDesign(NamedTuple):
    """Expected features under N(mean, cov)."""

    table: Array  # (..., K, 2d + 1) = [a^2, a, 1]
    mean: Array  # (..., d)
    square: Array  # (..., d) = E[c^2]
    cov: Array  # (..., d, d)

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        xp = theta.__array_namespace__()
        d = self.mean.shape[-1]
        actions, squares, products = theta[..., :d], theta[..., d : 2 * d], theta[..., 2 * d :]
        products = products * self.mean
        shared = xp.vecdot(self.square, squares)[..., None]
        return rowdots(self.table, xp.concat([stretch(actions, products), products, shared], axis=-1))

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        xp = self.mean.__array_namespace__()
        d = self.mean.shape[-1]
        chosen = take(self.table, arm)
        squares = stretch(self.square, self.mean)
        row: Array = xp.concat([chosen[..., :d], squares, chosen[..., d : 2 * d] * self.mean], axis=-1)
        return row

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        d = self.mean.shape[-1]
        root = belief.root
        shared = self.square[..., None, :] @ root[..., d : 2 * d, :]
        products = self.mean[..., None] * root[..., 2 * d :, :]
        actions = stretch(root[..., :d, :], products)
        spread = self.table @ xp.concat([actions, products, shared], axis=-2)
        variances: Array = xp.vecdot(spread, spread)
        return variances

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c))."""
        xp = self.mean.__array_namespace__()
        d = self.mean.shape[-1]
        action = take(self.table, arm)[..., d : 2 * d]
        mean, cov = self.mean, self.cov
        squares = 2 * cov**2 + 4 * mean[..., :, None] * mean[..., None, :] * cov
        cross = 2 * mean[..., :, None] * cov * action[..., None, :]
        linear = action[..., :, None] * cov * action[..., None, :]
        zeros = xp.zeros_like(linear)
        rows = [[zeros, zeros, zeros], [zeros, squares, cross], [zeros, cross.mT, linear]]
        joint: Array = xp.concat([xp.concat(row, axis=-1) for row in rows], axis=-2)
        return joint

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        # Given theta the score is c'D c + w'c + constant with D = diag(theta_2), w = a theta_3, so that its
        # variance is (w + 2 D v)'C (w + 2 D v) + 2 tr(D C D C); both terms are quadratic in theta.
        d = self.mean.shape[-1]
        action = take(self.table, arm)[..., d : 2 * d]
        mean, root = belief.mean, belief.root
        slope = action * mean[..., 2 * d :] + 2 * self.mean * mean[..., d : 2 * d]
        slopes = (
            action[..., None] * root[..., 2 * d :, :] + 2 * self.mean[..., None] * root[..., d : 2 * d, :]
        )
        bend = quadratic_form(mean[..., d : 2 * d], root[..., d : 2 * d, :], self.cov**2)
        return quadratic_form(slope, slopes, self.cov) + 2 * bend

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        xp = self.mean.__array_namespace__()
        d = self.mean.shape[-1]
        action, squares = take(self.table, arm)[..., d : 2 * d], theta[..., d : 2 * d]
        slope = matvec(self.cov, action * theta[..., 2 * d :] + 2 * self.mean * squares)
        bend = 2 * self.mean * slope + 2 * matvec(self.cov**2, squares)
        half_gradient: Array = xp.concat([xp.zeros_like(slope), bend, action * slope], axis=-1)
        return half_gradient

    def laws(self, theta: Array) -> "QuadraticLaws":
        """The laws of the scores: their curvature in c is diag(theta_2), the same for every arm."""
        xp = self.mean.__array_namespace__()
        d = self.mean.shape[-1]
        root = square_root(self.cov)
        curvature, basis = xp.linalg.eigh(root.mT @ (theta[..., d : 2 * d, None] * root))
        return QuadraticLaws(self, theta, curvature, root @ basis)


class QuadraticLaws(NamedTuple):
    """With c = mean + axes z, z ~ N(0, I): no two z are multiplied."""

    design: QuadraticDesign
    theta: Array  # (..., m)
    curvature: Array  # (..., d)
    axes: Array  # (..., d, d)

    def of(self, arm: Ints) -> Form:
        """The law of the chosen arm's score."""
        xp = self.theta.__array_namespace__()
        mean, theta = self.design.mean, self.theta
        d = mean.shape[-1]
        chosen = take(self.design.table, arm)
        linear = chosen[..., d : 2 * d] * theta[..., 2 * d :]
        squares = theta[..., d : 2 * d]
        shift = xp.vecdot(chosen[..., :d], theta[..., :d]) + xp.vecdot(mean, linear + squares * mean)
        slope = matvec(self.axes.mT, linear + 2 * squares * mean)
        return Form(shift, slope, self.curvature)


class Quadratic(NamedTuple):
    """The map for one set of actions; build it with `quadratic(actions)`."""

    table: Array  # (..., K, 2d + 1)

    @property
    def size(self) -> int:
        """How many features: m = 3d."""
        return self.table.shape[-1] // 2 * 3

    @property
    def arms(self) -> int:
        """How many actions: K."""
        return self.table.shape[-2]

    @property
    def cells(self) -> int:
        """None: the structure needs no memory of its own."""
        return 0

    def design(self, context: Context) -> QuadraticDesign:
        """Expected features of every arm."""
        xp = context.mean.__array_namespace__()
        spread = xp.linalg.diagonal(context.cov)
        return QuadraticDesign(self.table, context.mean, context.mean**2 + spread, context.cov)

    def at(self, context: Array) -> QuadraticDesign:
        """Features of every arm at a known context."""
        return QuadraticDesign(self.table, context, context**2, certain(context).cov)

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """[a^2, v^2, v, 1, a v, a]."""
        xp = unbiased.__array_namespace__()
        d = unbiased.shape[-1]
        chosen = stretch(take(self.table, arm), xp.zeros((*unbiased.shape[:-1], 2 * d + 1)))
        squares, action, one = chosen[..., :d], chosen[..., d : 2 * d], chosen[..., 2 * d :]
        parts = [squares, unbiased**2, unbiased, one, action * unbiased, action]
        row: Array = xp.concat(parts, axis=-1)
        return row

    def projection(self, shift: Array, cov: Array) -> Array:
        """E[c^2] = v^2 - 2 s v + s^2 + diag(C) and E[a c] = a v - s a."""
        xp = shift.__array_namespace__()
        eye, tilt = diagonal_matrix(xp.ones_like(shift)), diagonal_matrix(shift)
        constant = (shift**2 + xp.linalg.diagonal(cov))[..., None]
        zeros, zero_column = xp.zeros_like(eye), xp.zeros_like(constant)
        rows = [
            [eye, zeros, zeros, zero_column, zeros, zeros],
            [zeros, eye, -2 * tilt, constant, zeros, zeros],
            [zeros, zeros, zeros, zero_column, eye, -tilt],
        ]
        matrix: Array = xp.concat([xp.concat(row, axis=-1) for row in rows], axis=-2)
        return matrix

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:
        """2 v theta_2 + a theta_3."""
        d = mean.shape[-1]
        action = take(self.table, arm)[..., d : 2 * d]
        return 2 * mean * theta[..., d : 2 * d] + action * theta[..., 2 * d :]

    def over_rounds(self) -> "Quadratic":
        """The same map, ready for a block of rounds."""
        return Quadratic(self.table[..., None, :, :])


@check_keywords
def quadratic(actions: Array) -> Quadratic:
    """The paper's feature map: phi(a, c) = [a_1^2 .. a_d^2, c_1^2 .. c_d^2, a_1 c_1 .. a_d c_d], m = 3d.

    With c ~ N(v, C): E[c_i^2] = v_i^2 + C_ii, E[a_i c_i] = a_i v_i. Only the first and last thirds differ
    between arms, so scores need a (K, 2d + 1) table made once per trial and never the (K, m) matrix. Fourth
    moments of a Gaussian give Cov(c_i^2, c_j^2) = 2 C_ij^2 + 4 v_i v_j C_ij and Cov(c_i^2, c_j) = 2 v_i C_ij.

    Gives the map of these actions (..., K, d).

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.quadratic(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> features.at(np.array([3.0, 1.0])).row(np.array(1)).tolist()  # of the second arm
    [1.0, 4.0, 9.0, 1.0, 3.0, 2.0]
    """
    xp = actions.__array_namespace__()
    return Quadratic(xp.concat([actions**2, actions, xp.ones_like(actions[..., :1])], axis=-1))
