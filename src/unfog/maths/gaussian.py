"""Gaussian beliefs in square-root form: about one vector, in independent blocks, about a vector that grows.

A belief is N(mean, root root'). The root is any square root of the covariance, not necessarily triangular;
one with more columns than rows is made square when it is drawn from. Conditioning on y = x'w + noise,
noise ~ N(0, variance), is Potter's rank-one update (*New statistical formulas*, J. E. Potter, 1963; also
Bierman, *Factorization Methods for Discrete Sequential Estimation*, 1977): with f = root' x and
s = f'f + variance,

    mean <- mean + root f (y - x'mean) / s,      root <- root - (root f) f' / (s + sqrt(variance s)).

It costs O(m^2), needs no inverse and no factorisation, and root root' stays positive semi-definite whatever
the rounding, because it is a square.

`Blocks` is a belief about a vector in blocks that are independent of each other. A measurement whose row is
zero outside one block tells nothing of the others, so that they stay independent, and the same update, block
by block, costs O(B k^2) for B blocks of k instead of (B k)^2. All blocks are updated alike; where the row is
zero nothing changes.

A vector may become longer (`extend_belief`): what is new at its end is independent of all before it. The
arrays so far have batch axes. What is added to them is taken from arrays of the longer vector as it was to
begin with, which have none, and is the same in every trial.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.maths import linalg
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


class Blocks(NamedTuple):
    """A belief about a vector w of B k numbers."""

    mean: Array  # (..., B, k)
    root: Array  # (..., B, k, n), the covariance of a block = root root'; n = k, or more

    @property
    def centre(self) -> Array:
        """The mean as one vector, (..., B k)."""
        return _join_blocks(self.mean)

    def sample(self, normals: Array) -> Array:
        """A draw of w from standard normals (..., B k)."""
        return _join_blocks(self.mean + matvec(square(self.root), _split_blocks(normals, self.root)))

    def half(self, row: Array) -> Array:
        """root'row, which `variance` and `condition` begin with: row (..., B k) -> (..., B, n)."""
        return matvec(self.root.mT, _split_blocks(row, self.root))

    def variance(self, row: Array, half: Array | None = None) -> Array:
        """The variance of row'w: row (..., B k) -> (...,); `half` where it is worked out already."""
        half = self.half(row) if half is None else half
        return (half**2).sum((-2, -1))

    def condition(self, row: Array, value: Array, variance: Array, half: Array | None = None) -> "Blocks":
        """The belief after seeing value = row'w + N(0, variance); the row (..., B k) is within one block."""
        xp = row.__array_namespace__()
        half = self.half(row) if half is None else half
        row = _split_blocks(row, self.root)
        total = (half**2).sum((-2, -1)) + variance
        surprise = (value - (row * self.mean).sum((-2, -1))) / total
        slope = total + xp.sqrt(variance * total)
        if self._has_one_row(row, surprise):
            return self._condition_block(row, half, surprise, slope)
        gain = matvec(self.root, half)
        mean = self.mean + gain * surprise[..., None, None]
        scaled = half / slope[..., None, None]
        return Blocks(mean, self.root - gain[..., None] * scaled[..., None, :])

    def _has_one_row(self, row: Array, surprise: Array) -> bool:
        """Whether all trials share one row, on NumPy, so that the row's block can be looked up."""
        has_batch_axes = self.mean.shape[:-2] == self.root.shape[:-3] == surprise.shape
        return (
            has_batch_axes and row.size == row.shape[-2] * row.shape[-1] and row.__array_namespace__() is np
        )

    def _condition_block(self, row: Array, half: Array, surprise: Array, slope: Array) -> "Blocks":
        """`condition` for one row: updates its block and copies the rest, 4 times as fast with 100 blocks."""
        block = int((row.reshape(-1) != 0).argmax()) // row.shape[-1]
        after = Blocks(self.mean.copy(), self.root.copy())
        half, mean, root = half[..., block, :], after.mean[..., block, :], after.root[..., block, :, :]
        gain = matvec(root, half)
        mean += gain * surprise[..., None]
        root -= gain[..., None] * (half / slope[..., None])[..., None, :]
        return after


Belief: TypeAlias = Gaussian | Blocks


def _split_blocks(flat: Array, like: Array) -> Array:
    """A vector cut into blocks: (..., B k) -> (..., B, k)."""
    return flat.reshape(*flat.shape[:-1], *like.shape[-3:-1])


def _join_blocks(blocks: Array) -> Array:
    """Blocks as one vector: (..., B, k) -> (..., B k)."""
    return blocks.reshape(*blocks.shape[:-2], -1)


def from_moments(mean: Array, cov: Array) -> Gaussian:
    """The belief with this mean and (positive definite) covariance.

    >>> import numpy as np
    >>> from unfog.maths import gaussian
    >>> gaussian.from_moments(np.zeros(1), np.array([[4.0]])).root.tolist()
    [[2.0]]
    """
    xp = cov.__array_namespace__()
    return Gaussian(mean, xp.linalg.cholesky(cov))


def blocks_from_moments(mean: Array, covs: Array) -> Blocks:
    """The belief with this mean (..., B k) and the blocks' covariances (..., B, k, k)."""
    xp = covs.__array_namespace__()
    return Blocks(_split_blocks(mean, covs), xp.linalg.cholesky(covs))


def belief_from_moments(mean: Array, cov: Array) -> Belief:
    """The belief with this mean (..., m) and covariance (..., m, m), or those of blocks (..., B, k, k)."""
    return blocks_from_moments(mean, cov) if cov.ndim - mean.ndim == 2 else from_moments(mean, cov)


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


def as_matrix(cov: Array) -> Array:
    """A covariance as one matrix: that of independent blocks (B, k, k) as (B k, B k), any other as it is."""
    xp = cov.__array_namespace__()
    if cov.ndim < 3:
        return cov
    number, size, _ = cov.shape
    eye = xp.eye(number, dtype=cov.dtype)
    matrix: Array = (eye[:, None, :, None] * cov[:, :, None, :]).reshape(number * size, number * size)
    return matrix


def invert_covariance(cov: Array) -> tuple[Array, Array]:
    """The inverse of a covariance (..., d, d), and the logarithm of its determinant, (...,).

    In compiled programs by hand, where it is small (maths/linalg.py): XLA's calls of LAPACK were seen
    to deadlock on a CPU of few cores.
    """
    xp = cov.__array_namespace__()
    if not linalg.by_hand(cov):
        return xp.linalg.inv(cov), xp.linalg.slogdet(cov)[1]
    return linalg.sweep(cov)


def pick_belief(beliefs: Belief, index: int) -> Belief:
    """One of the beliefs along the last batch axis."""
    if isinstance(beliefs, Blocks):
        return Blocks(beliefs.mean[..., index, :, :], beliefs.root[..., index, :, :, :])
    return Gaussian(beliefs.mean[..., index, :], beliefs.root[..., index, :, :])


def longer(old: Array, fresh: Array, axis: int) -> Array:
    """The old array, extended along an axis (-1, -2, ...) by what the fresh one has beyond its length."""
    xp, size = old.__array_namespace__(), old.shape[axis]
    tail = xp.moveaxis(xp.moveaxis(fresh, axis, 0)[size:], 0, axis)
    after = old.ndim + axis
    shape = *old.shape[:after], tail.shape[axis], *old.shape[after + 1 :]
    extended: Array = xp.concat([old, xp.broadcast_to(tail, shape)], axis=axis)
    return extended


def larger(old: Array, fresh: Array) -> Array:
    """The block-diagonal matrix of the old one (..., m, n) and of the rows and columns beyond it in `fresh`.

    The fresh one is square, (m', m').
    """
    xp, (rows, columns) = old.__array_namespace__(), old.shape[-2:]
    tail = fresh[..., rows:, rows:]
    batch, (more_rows, more_columns) = old.shape[:-2], tail.shape[-2:]
    tail = xp.broadcast_to(tail, (*batch, more_rows, more_columns))
    right, below = (
        xp.zeros((*batch, *shape), dtype=old.dtype) for shape in ((rows, more_columns), (more_rows, columns))
    )
    upper, lower = xp.concat([old, right], axis=-1), xp.concat([below, tail], axis=-1)
    extended: Array = xp.concat([upper, lower], axis=-2)
    return extended


def extend_belief(old: Belief, fresh: Belief) -> Belief:
    """The belief about the longer vector: the old one, and that of `fresh` about the new entries at its end.

    Axes between the batch and the vector, those of scales or of slopes, are in both.
    """
    if isinstance(old, Blocks):
        xp, root = old.root.__array_namespace__(), fresh.root
        missing = old.root.shape[-1] - root.shape[-1]  # a root may have more columns than rows
        root = xp.concat([root, xp.zeros((*root.shape[:-1], missing), dtype=root.dtype)], axis=-1)
        return Blocks(longer(old.mean, fresh.mean, -2), longer(old.root, root, -3))
    return Gaussian(longer(old.mean, fresh.mean, -1), larger(old.root, fresh.root))
