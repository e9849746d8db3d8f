"""A Gaussian belief N(mean, root root') in square-root form.

The root is any square root of the covariance, not necessarily triangular; one with more columns than rows is
made square when it is drawn from. Conditioning on y = x'w + noise,
noise ~ N(0, variance), is Potter's rank-one update (*New statistical formulas*, J. E. Potter, 1963; also
Bierman, *Factorization Methods for Discrete Sequential Estimation*, 1977): with f = root' x and
s = f'f + variance,

    mean <- mean + root f (y - x'mean) / s,      root <- root - (root f) f' / (s + sqrt(variance s)).

It costs O(m^2), needs no inverse and no factorisation, and root root' stays positive semi-definite whatever
the rounding, because it is a square.
"""

from typing import NamedTuple

from unfog.maths import small
from unfog.maths.arrays import Array, matvec


class Gaussian(NamedTuple):
    """A belief about a vector w.

    >>> import numpy as np
    >>> from unfog.maths.gaussian import Gaussian
    >>> belief = Gaussian(mean=np.zeros(1), root=np.eye(1))
    >>> after = belief.condition(np.ones(1), np.array(2.0), np.array(1.0))  # w was measured as 2
    >>> after.mean.tolist(), (after.root @ after.root.T).round(2).tolist()
    ([1.0], [[0.5]])
    """

    mean: Array  # (..., m)
    root: Array  # (..., m, n), covariance = root root'; n = m, or more

    @property
    def centre(self) -> Array:
        """The mean as one vector, (..., m)."""
        return self.mean

    def sample(self, normals: Array) -> Array:
        """A draw of w from standard normals (..., m)."""
        return self.mean + matvec(square(self.root), normals)

    def half(self, row: Array) -> Array:
        """root'row, which `variance` and `condition` begin with: row (..., m) -> (..., n)."""
        return matvec(self.root.mT, row)

    def variance(self, row: Array, half: Array | None = None) -> Array:
        """The variance of row'w: row (..., m) -> (...,); `half` where it is worked out already."""
        half = self.half(row) if half is None else half
        return (half**2).sum(-1)

    def condition(self, row: Array, value: Array, variance: Array, half: Array | None = None) -> "Gaussian":
        """The belief after seeing value = row'w + N(0, variance); row (..., m), value and variance (...,)."""
        xp = row.__array_namespace__()
        half = self.half(row) if half is None else half
        total = xp.vecdot(half, half) + variance
        gain = matvec(self.root, half)
        surprise = value - xp.vecdot(row, self.mean)
        mean = self.mean + gain * (surprise / total)[..., None]
        scaled = half / (total + xp.sqrt(variance * total))[..., None]
        return Gaussian(mean, self.root - gain[..., None] * scaled[..., None, :])


def from_moments(mean: Array, cov: Array) -> Gaussian:
    """The belief with this mean and (positive definite) covariance.

    >>> import numpy as np
    >>> from unfog.maths import gaussian
    >>> gaussian.from_moments(np.zeros(1), np.array([[4.0]])).root.tolist()
    [[2.0]]
    """
    xp = cov.__array_namespace__()
    return Gaussian(mean, xp.linalg.cholesky(cov))


def certain(mean: Array) -> Gaussian:
    """The belief that is sure of its mean: every draw from it is the mean."""
    xp = mean.__array_namespace__()
    return Gaussian(mean, xp.zeros((mean.shape[-1],) * 2, dtype=mean.dtype))


def square_root(cov: Array) -> Array:
    """Cholesky's factor of a covariance that may be zero."""
    xp = cov.__array_namespace__()
    # The smallest normal number lets a zero be factorised.
    floor = xp.finfo(cov.dtype).tiny * xp.eye(cov.shape[-1], dtype=cov.dtype)
    root: Array = xp.linalg.cholesky(cov + floor)
    return root


def singular_root(cov: Array) -> Array:
    """A root of a covariance that may be singular, by its eigenvectors."""
    xp = cov.__array_namespace__()
    values, vectors = xp.linalg.eigh(cov)
    root: Array = vectors * xp.sqrt(xp.maximum(values, 0.0))[..., None, :]
    return root


def square(root: Array) -> Array:
    """A root of the same covariance with as many columns as rows: (..., m, n) -> (..., m, m)."""
    return root if root.shape[-1] == root.shape[-2] else square_root(root @ root.mT)


def covariance(belief: Gaussian) -> Array:
    """The covariance matrix, (..., m, m)."""
    return belief.root @ belief.root.mT


def inverted(cov: Array) -> tuple[Array, Array]:
    """The inverse of a covariance (..., d, d), and the logarithm of its determinant, (...,).

    In compiled programs by hand, where it is small (maths/small.py): XLA's calls of LAPACK were seen
    to wait for each other for ever on a CPU of few cores.
    """
    xp = cov.__array_namespace__()
    if not small.by_hand(cov):
        return xp.linalg.inv(cov), xp.linalg.slogdet(cov)[1]
    return small.swept(cov)
