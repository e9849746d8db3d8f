"""A Gaussian filter in array square-root form: beliefs N(mean, root root'), of roots however wide.

A step of time widens the root by the root of what the step adds. To see value = rows x + noise_root z, z
standard normal, is to triangularise, by rotations T of columns,

    ( noise_root  rows root )  T  =  ( S^(1/2)   0    )
    (     0          root   )        (   K     root'  ),    mean' = mean + K S^(-1/2) (value - rows mean).

No covariance is subtracted from another, so root' root'' stays positive semi-definite whatever the rounding,
and an exact observation (noise_root zero) is one like any other. T. Kailath, A. H. Sayed, B. Hassibi, *Linear
Estimation*, chapter 12; the name is for R. E. Kalman.
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints, matvec


class Belief(NamedTuple):
    """Of a vector x."""

    mean: Array  # (..., n)
    root: Array  # (..., n, m), m >= n

    def moved(self, keeps: Array, adds: Array) -> "Belief":
        """After a step of time: x <- keeps x + adds z, with keeps (..., n) and adds (..., n, q)."""
        xp, kept = keeps.__array_namespace__(), keeps[..., None] * self.root
        batch = np.broadcast_shapes(kept.shape[:-2], adds.shape[:-2])
        wide = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (kept, adds))
        return Belief(keeps * self.mean, xp.concat([*wide], axis=-1))

    def seen(self, rows: Array, noise_root: Array, value: Array, lost: Bools | None = None) -> "Belief":
        """After value (..., d) = rows x + noise_root z; `lost` coordinates of it say nothing."""
        return self.told(Belief(matvec(rows, self.mean), rows @ self.root), noise_root, value, lost)

    def told(self, other: "Belief", noise_root: Array, value: Array, lost: Bools | None = None) -> "Belief":
        """After a noisy value (..., d) of another vector, which is believed in the same columns."""
        top, noise_root, surprise = _left(other, noise_root, value, lost)
        d, made = value.shape[-1], triangle(_stacked(noise_root, top, self.root))
        news = forward(made[..., :d, :d], surprise)
        return Belief(self.mean + matvec(made[..., d:, :d], news), made[..., d:, d:])

    def density(self, noise_root: Array, value: Array, lost: Bools | None = None) -> Array:
        """The logarithm of the density of value (..., n) = x + noise_root z, (...,); `lost` ones left out.

        log N(value; mean, S) = -(|S^(-1/2) (value - mean)|^2 + n log 2 pi) / 2 - sum of log |diag S^(1/2)|.
        """
        xp, there = value.__array_namespace__(), 1.0 if lost is None else (~lost).astype(value.dtype)
        top, noise_root, surprise = _left(self, noise_root, value, lost)
        half = triangle(_beside(noise_root, top))
        squares = forward(half, surprise) ** 2 + there * np.log(2 * np.pi)
        found: Array = -0.5 * squares.sum(-1) - xp.log(xp.abs(xp.linalg.diagonal(half))).sum(-1)
        return found

    def cov(self) -> Array:
        """The covariance root root', (..., n, n)."""
        return self.root @ self.root.mT


def _left(other: Belief, noise_root: Array, value: Array, lost: Bools | None) -> tuple[Array, Array, Array]:
    """Root, noise and surprise of what was not lost of a value; the rest is made to say nothing."""
    xp, surprise = value.__array_namespace__(), value - other.mean
    if lost is None:
        return other.root, noise_root, surprise
    there = (~lost).astype(other.root.dtype)[..., None]
    return there * other.root, _without(noise_root, there), xp.where(lost, 0.0, surprise)


def _without(noise_root: Array, there: Array) -> Array:
    """Rows of what was lost replaced by noise of their own, so that there is something to divide by."""
    xp, d = noise_root.__array_namespace__(), there.shape[-2]
    return _beside((1 - there) * xp.eye(d, dtype=there.dtype), there * noise_root)


def _stacked(noise_root: Array, top: Array, root: Array) -> Array:
    """((noise_root, top), (0, root))."""
    xp, n = root.__array_namespace__(), root.shape[-2]
    batch = np.broadcast_shapes(noise_root.shape[:-2], top.shape[:-2], root.shape[:-2])
    nothing = xp.zeros((*batch, n, noise_root.shape[-1]), dtype=root.dtype)
    return xp.concat([_beside(noise_root, top, batch), _beside(nothing, root, batch)], axis=-2)


def _beside(one: Array, other: Array, batch: tuple[int, ...] = ()) -> Array:
    """(one, other), for every one of a batch."""
    xp, batch = one.__array_namespace__(), np.broadcast_shapes(batch, one.shape[:-2], other.shape[:-2])
    wide = [xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (one, other)]
    return xp.concat(wide, axis=-1)


def triangle(wide: Array) -> Array:
    """A lower triangular L (..., n, n) with L L' = wide wide', from (..., n, m), m >= n.

    In compiled programs by reflections written out (A. S. Householder), since XLA's calls of LAPACK were seen
    to wait for each other for ever on a CPU of few cores, and are slow on a GPU for small matrices.
    """
    xp = wide.__array_namespace__()
    if xp is np:
        upper: Any = np.linalg.qr(wide.mT, mode="r")
        return _signed(upper.mT)
    n, m = wide.shape[-2:]
    columns = xp.arange(m)
    for k in range(n):  # shapes that stay the same compile several times as fast as ones that shrink
        wide = _reflected(wide, k, columns, xp)
    return _signed(wide[..., :n] * xp.tril(xp.ones((n, n), dtype=wide.dtype)))


def _signed(lower: Array) -> Array:
    """With a diagonal that is not negative: then there is one such triangle, where it has an inverse."""
    xp = lower.__array_namespace__()
    signs = xp.where(xp.linalg.diagonal(lower) < 0, -1.0, 1.0)
    found: Array = lower * signs[..., None, :]
    return found


def _reflected(wide: Array, k: int, columns: Ints, xp: Any) -> Array:
    """With row k zero beyond its diagonal: the columns from k on are reflected."""
    row = xp.where(columns >= k, wide[..., k, :], 0.0)
    size, first = xp.sqrt((row**2).sum(-1)), row[..., k]
    pivot = xp.where(first < 0, size, -size)  # away from the first entry: nothing cancels
    mirror = xp.where(columns == k, (first - pivot)[..., None], row)
    square = (mirror**2).sum(-1)
    scale = xp.where(square > 0, 2 / xp.where(square > 0, square, 1.0), 0.0)
    return wide - (matvec(wide, mirror) * scale[..., None])[..., None] * mirror[..., None, :]


def forward(lower: Array, value: Array) -> Array:
    """lower^-1 value for a lower triangular matrix (..., d, d) and value (..., d)."""
    xp, found = value.__array_namespace__(), list[Array]()
    for i in range(value.shape[-1]):
        known = sum(lower[..., i, j] * found[j] for j in range(i))
        found.append((value[..., i] - known) / lower[..., i, i])
    return xp.stack(found, axis=-1)
