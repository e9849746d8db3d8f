"""Feature maps linear in the context: by any matrices, entry by entry, a context of its own for every arm."""

from typing import NamedTuple

import numpy as np

from unfog.features.base import Context, FeatureMap, Form, certain, linear_form, quadratic_form
from unfog.maths.arrays import Array, Ints, diagonal_matrix, flat, matvec, rowdots, stretch, take
from unfog.maths.gaussian import Gaussian
from unfog.validation import InputError, Numbers, check_keywords


class MatrixDesign(NamedTuple):
    """Expected features under N(mean, cov)."""

    matrices: Array  # (..., K, m, d)
    mean: Array  # (..., d)
    cov: Array  # (..., d, d)

    def matrix(self, arm: Ints) -> Array:
        """G(arm): (..., m, d)."""
        return take(self.matrices, arm, 2)

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(flat(self.matrices), flat(theta[..., :, None] * self.mean[..., None, :]))

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        return matvec(self.matrix(arm), self.mean)

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        outer = belief.root[..., :, None, :] * self.mean[..., None, :, None]
        spread = flat(self.matrices) @ outer.reshape(*outer.shape[:-3], -1, outer.shape[-1])
        variances: Array = xp.vecdot(spread, spread)
        return variances

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c))."""
        matrix = self.matrix(arm)
        return matrix @ self.cov @ matrix.mT

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta]: what not knowing the context adds to a reward's variance."""
        matrix = self.matrix(arm)
        return quadratic_form(matvec(matrix.mT, belief.mean), matrix.mT @ belief.root, self.cov)

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta: half the gradient of theta'Cov(phi)theta."""
        matrix = self.matrix(arm)
        return matvec(matrix, matvec(self.cov, matvec(matrix.mT, theta)))

    def laws(self, theta: Array) -> "MatrixLaws":
        """The laws of the scores: Gaussian."""
        return MatrixLaws(self, theta)


class MatrixLaws(NamedTuple):
    """theta'G(a) c with c ~ N(mean, cov)."""

    design: MatrixDesign
    theta: Array  # (..., m)

    def of(self, arm: Ints) -> Form:
        """The law of the chosen arm's score."""
        weight = matvec(self.design.matrix(arm).mT, self.theta)
        return linear_form(weight, self.design.mean, self.design.cov)


class Matrix(NamedTuple):
    """The map with given matrices G(a); `matrix` builds it."""

    matrices: Array  # (..., K, m, d)

    @property
    def size(self) -> int:
        """How many features: m."""
        return self.matrices.shape[-2]

    @property
    def arms(self) -> int:
        """How many actions: K."""
        return self.matrices.shape[-3]

    @property
    def cells(self) -> int:
        """None: the structure needs no memory of its own."""
        return 0

    def design(self, context: Context) -> MatrixDesign:
        """Expected features of every arm."""
        return MatrixDesign(self.matrices, context.mean, context.cov)

    def at(self, context: Array) -> MatrixDesign:
        """Features of every arm at a known context."""
        return self.design(certain(context))

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """[G v, G with its rows laid end to end]."""
        xp, matrix = unbiased.__array_namespace__(), take(self.matrices, arm, 2)
        row: Array = xp.concat([matvec(matrix, unbiased), flat(matrix)], axis=-1)
        return row

    def projection(self, shift: Array, cov: Array) -> Array:  # noqa: ARG002
        """[I, -I x s']: E[G c] = G v - G s."""
        xp = shift.__array_namespace__()
        eye = xp.eye(self.size, dtype=shift.dtype)
        shifts = eye[:, :, None] * shift[..., None, None, :]
        eyes = xp.broadcast_to(eye, (*shift.shape[:-1], *eye.shape))
        matrix: Array = xp.concat([eyes, -flat(shifts)], axis=-1)
        return matrix

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:  # noqa: ARG002
        """G'theta."""
        return matvec(take(self.matrices, arm, 2).mT, theta)

    def over_rounds(self) -> "Matrix":
        """The same map, ready for a block of rounds."""
        return Matrix(self.matrices[..., None, :, :, :])


@check_keywords
def matrix(matrices: Array) -> Matrix:
    """Features linear in the context: phi(a, c) = G(a) c with any matrices G(a) of shape (m, d).

    E[phi] = G(a) v and Cov(phi) = G(a) C G(a)'. The score v'G(a)'theta is the inner product of G(a) with
    theta v', so all arms cost one (K, m d) product and no (K, m) matrix is built.

    Gives the map whose actions are the matrices G(a) themselves: (..., K, m, d).

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.matrix(np.array([[[1.0, 0.0]], [[1.0, 2.0]]]))
    >>> features.at(np.array([3.0, 1.0])).row(np.array(1)).tolist()  # of the second arm
    [5.0]
    """
    return Matrix(matrices)


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
        """None: the structure needs no memory of its own."""
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
        return self.design(certain(context))

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


@check_keywords
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
        variances: Array = xp.vecdot(half, half)
        return variances

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c)): the arm's block, (..., m, m)."""
        xp, cov = self.mean.__array_namespace__(), self.cov
        size = cov.shape[-1] // self.arms
        grid = cov.reshape(*cov.shape[:-2], self.arms, size, self.arms, size)
        arms = xp.arange(self.arms)
        blocks = xp.moveaxis(grid, -2, -3)[..., arms, arms, :, :]
        batch = blocks.shape[:-3]
        missing = [1] * (arm.ndim - len(batch)) if batch else []  # axes of arms that the covariance lacks
        return take(blocks.reshape(*missing, *batch, self.arms, size, size), arm, 2)

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
        """None: the structure needs no memory of its own."""
        return 0

    def design(self, context: Context) -> OwnDesign:
        """Expected features of every arm."""
        return OwnDesign(self.arms, *context)

    def at(self, context: Array) -> OwnDesign:
        """Features of every arm at a known context."""
        return self.design(certain(context))

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:  # noqa: ARG002
        """The coordinates of theta in the arm's part of the context, zero elsewhere."""
        xp = theta.__array_namespace__()
        one_hot = (xp.arange(self.arms) == arm[..., None]).astype(theta.dtype)
        blocks = one_hot[..., None] * theta[..., None, :]
        return blocks.reshape(*blocks.shape[:-2], -1)

    def over_rounds(self) -> "Own":
        """The same map: it holds nothing of a trial's own."""
        return self


@check_keywords
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


def for_all_arms(features: FeatureMap, law: Numbers) -> Numbers:
    """The mean or covariance of all arms' contexts, independent and alike, from that of one arm.

    Anything else, and whatever belongs to another map, comes back as it is.
    """
    if not isinstance(features, Own) or features.arms == 1:
        return law
    try:
        shape = np.shape(law)
    except ValueError:  # ragged: refused elsewhere
        return law
    if shape == (features.size,):
        return np.tile(law, features.arms)
    if shape == (features.size,) * 2:
        repeated: Array = np.kron(np.eye(features.arms), np.asarray(law)).astype(np.float64)
        return repeated
    return law
