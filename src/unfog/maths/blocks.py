"""A Gaussian belief about a vector in blocks that are independent of each other.

A measurement whose row is zero outside one block tells nothing of the others, so that they stay independent:
the rank-one update of `gaussian`, block by block, costs O(B k^2) for B blocks of k instead of (B k)^2.
All blocks are updated alike; where the row is zero nothing changes.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Gaussian, square


class Blocks(NamedTuple):
    """A belief about a vector w of B k numbers."""

    mean: Array  # (..., B, k)
    root: Array  # (..., B, k, n), the covariance of a block = root root'; n = k, or more

    @property
    def centre(self) -> Array:
        """The mean as one vector, (..., B k)."""
        return _flat(self.mean)

    def sample(self, normals: Array) -> Array:
        """A draw of w from standard normals (..., B k)."""
        return _flat(self.mean + matvec(square(self.root), _cut(normals, self.root)))

    def half(self, row: Array) -> Array:
        """root'row, which `variance` and `condition` begin with: row (..., B k) -> (..., B, n)."""
        return matvec(self.root.mT, _cut(row, self.root))

    def variance(self, row: Array, half: Array | None = None) -> Array:
        """The variance of row'w: row (..., B k) -> (...,); `half` where it is worked out already."""
        half = self.half(row) if half is None else half
        return (half**2).sum((-2, -1))

    def condition(self, row: Array, value: Array, variance: Array, half: Array | None = None) -> "Blocks":
        """The belief after seeing value = row'w + N(0, variance); the row (..., B k) is within one block."""
        xp = row.__array_namespace__()
        half = self.half(row) if half is None else half
        row = _cut(row, self.root)
        total = (half**2).sum((-2, -1)) + variance
        surprise = (value - (row * self.mean).sum((-2, -1))) / total
        slope = total + xp.sqrt(variance * total)
        if self._is_one(row, surprise):
            return self._moved(row, half, surprise, slope)
        gain = matvec(self.root, half)
        mean = self.mean + gain * surprise[..., None, None]
        scaled = half / slope[..., None, None]
        return Blocks(mean, self.root - gain[..., None] * scaled[..., None, :])

    def _is_one(self, row: Array, surprise: Array) -> bool:
        """Whether there is one row, on NumPy, for a belief that has all batch axes: it can be looked into."""
        axes = self.mean.shape[:-2] == self.root.shape[:-3] == surprise.shape
        return axes and row.size == row.shape[-2] * row.shape[-1] and row.__array_namespace__() is np

    def _moved(self, row: Array, half: Array, surprise: Array, slope: Array) -> "Blocks":
        """`condition` for one row: but for its block all is copied, which is faster than adding nothing."""
        block = int((row.reshape(-1) != 0).argmax()) // row.shape[-1]
        half, root, mean = half[..., block, :], self.root.copy(), self.mean.copy()
        gain = matvec(root[..., block, :, :], half)
        mean[..., block, :] += gain * surprise[..., None]
        root[..., block, :, :] -= gain[..., None] * (half / slope[..., None])[..., None, :]
        return Blocks(mean, root)


Belief: TypeAlias = Gaussian | Blocks


def from_moments(mean: Array, covs: Array) -> Blocks:
    """The belief with this mean (..., B k) and the blocks' covariances (..., B, k, k)."""
    xp = covs.__array_namespace__()
    return Blocks(_cut(mean, covs), xp.linalg.cholesky(covs))


def belief_from_moments(mean: Array, cov: Array, *, in_blocks: bool) -> Belief:
    """The belief with this mean and covariance, which is that of the whole vector or of its blocks."""
    return from_moments(mean, cov) if in_blocks else gaussian.from_moments(mean, cov)


def whole(cov: Array) -> Array:
    """A covariance as one matrix: that of independent blocks (B, k, k) as (B k, B k), any other as it is."""
    xp = cov.__array_namespace__()
    if cov.ndim < 3:
        return cov
    number, size, _ = cov.shape
    places = xp.eye(number, dtype=cov.dtype)
    matrix: Array = (places[:, None, :, None] * cov[:, :, None, :]).reshape(number * size, number * size)
    return matrix


def _cut(flat: Array, like: Array) -> Array:
    """A vector cut into blocks: (..., B k) -> (..., B, k)."""
    return flat.reshape(*flat.shape[:-1], *like.shape[-3:-1])


def _flat(blocks: Array) -> Array:
    return blocks.reshape(*blocks.shape[:-2], -1)
