"""Features linear in the context, by any matrices."""

from typing import NamedTuple

from unfog.features.contract import Context
from unfog.features.law import Form, linear_form
from unfog.features.lift import quadratic_form
from unfog.maths.arrays import Array, Ints, matvec, rowdots, take
from unfog.maths.gaussian import Gaussian


def _flat(matrices: Array) -> Array:
    """Each matrix with its rows laid end to end: (..., p, q) -> (..., p q)."""
    rows, columns = matrices.shape[-2:]  # spelled out: of no matrices at all, -1 would not be found
    return matrices.reshape(*matrices.shape[:-2], rows * columns)


class MatrixDesign(NamedTuple):
    """Expected features under N(mean, cov)."""

    matrices: Array  # (..., K, m, d)
    mean: Array  # (..., d)
    cov: Array  # (..., d, d)

    def matrix(self, arm: Ints) -> Array:
        """G(arm): (..., m, d)."""
        chosen = take(_flat(self.matrices), arm)
        return chosen.reshape(*chosen.shape[:-1], *self.matrices.shape[-2:])

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm."""
        return rowdots(_flat(self.matrices), _flat(theta[..., :, None] * self.mean[..., None, :]))

    def row(self, arm: Ints) -> Array:
        """psi(arm)."""
        return matvec(self.matrix(arm), self.mean)

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta."""
        xp = self.mean.__array_namespace__()
        outer = belief.root[..., :, None, :] * self.mean[..., None, :, None]
        spread = _flat(self.matrices) @ outer.reshape(*outer.shape[:-3], -1, outer.shape[-1])
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
        """The structure needs no room of its own."""
        return 0

    def design(self, context: Context) -> MatrixDesign:
        """Expected features of every arm."""
        return MatrixDesign(self.matrices, context.mean, context.cov)

    def at(self, context: Array) -> MatrixDesign:
        """Features of every arm at a known context."""
        xp = context.__array_namespace__()
        certain = xp.zeros((context.shape[-1],) * 2, dtype=context.dtype)
        return MatrixDesign(self.matrices, context, certain)

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """[G v, G with its rows laid end to end]."""
        xp = unbiased.__array_namespace__()
        entries = take(_flat(self.matrices), arm)
        matrix = entries.reshape(*entries.shape[:-1], *self.matrices.shape[-2:])
        row: Array = xp.concat([matvec(matrix, unbiased), entries], axis=-1)
        return row

    def projection(self, shift: Array, cov: Array) -> Array:  # noqa: ARG002
        """[I, -I x s']: E[G c] = G v - G s."""
        xp = shift.__array_namespace__()
        eye = xp.eye(self.size, dtype=shift.dtype)
        placed = eye[:, :, None] * shift[..., None, None, :]
        whole = xp.broadcast_to(eye, (*shift.shape[:-1], *eye.shape))
        matrix: Array = xp.concat([whole, -_flat(placed)], axis=-1)
        return matrix

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:  # noqa: ARG002
        """G'theta."""
        entries = take(_flat(self.matrices), arm)
        matrix = entries.reshape(*entries.shape[:-1], *self.matrices.shape[-2:])
        return matvec(matrix.mT, theta)

    def over_rounds(self) -> "Matrix":
        """The same map, ready for a block of rounds."""
        return Matrix(self.matrices[..., None, :, :, :])


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
