"""The law of contexts from noisy ones, by moments of what is there.

With readings x = c + n, the noise of row i of covariance N_i, and gaps,

    Sigma_c[j, k] = (sum over rows that have j and k of (x_j - mean_j)(x_k - mean_k)) / (count - 1)
                    - (mean over the same rows of N_i[j, k]),

which is unbiased where coordinates are lost at random (W. A. Fuller, *Measurement Error Models*, section
1.1, for one noise; pairs of coordinates that are there, for the gaps). The sums add up: to go on with more
rows is the same as to have had all of them at once. A difference of two covariances may be none: no
direction keeps less than a share `least` of the spread that is seen in it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array

SINGULAR = 1e-10  # of a coordinate's variance, that every direction has at least


class Moments(NamedTuple):
    """Sums over rows about a centre; entry [j, k] is over the rows that have both coordinates."""

    centre: Array  # (d,)
    both: Array  # (d, d)  how many they are
    total: Array  # (d, d)  of coordinate j
    product: Array  # (d, d)
    noise: Array  # (d, d)  of the covariances of their noise

    @property
    def mean(self) -> Array:
        """Of each coordinate; the centre where there was none."""
        return self.centre + np.diag(self.total) / np.maximum(np.diag(self.both), 1)

    @property
    def scatter(self) -> Array:
        """About the mean of the same rows."""
        return self.product - self.total * self.total.T / np.maximum(self.both, 1)


def summed(rows: Array, noise: Array, centre: Array | None = None) -> Moments:
    """The sums of rows (n, d), not a number where lost, whose noise is (d, d) or (n, d, d)."""
    seen = (~np.isnan(rows)).astype(np.float64)
    if centre is None:
        centre = middle(rows)
    away = np.where(seen > 0, rows - centre, 0.0)
    count = seen.T @ seen
    blur = noise * count if noise.ndim == 2 else np.einsum("nj,nk,njk->jk", seen, seen, noise)
    return Moments(centre, count, away.T @ seen, away.T @ away, blur)


def middle(rows: Array) -> Array:
    """The mean of what is there, zero where nothing is: sums about it lose no digits."""
    return np.asarray(np.nansum(rows, axis=0) / np.maximum((~np.isnan(rows)).sum(0), 1))


def plus(before: Moments, rows: Array, noise: Array) -> Moments:
    """With more rows."""
    more = summed(rows, noise, before.centre)
    return Moments(before.centre, *(old + new for old, new in zip(before[1:], more[1:], strict=True)))


def noise_mean(pools: Sequence[Moments]) -> Array:
    """The mean covariance of the noise."""
    count = np.maximum(sum(pool.both for pool in pools), 1)
    return np.asarray(sum(pool.noise for pool in pools) / count)


def context_cov(pools: Sequence[Moments]) -> Array:
    """The covariance of contexts; of each pool about a mean of its own."""
    degrees = sum(np.maximum(pool.both - 1, 0) for pool in pools)
    whole = sum(pool.scatter for pool in pools) / np.maximum(degrees, 1)
    rows = max(1.0, float(np.max(sum(pool.both for pool in pools))))
    return without(regular(whole), noise_mean(pools), 1 / (1 + rows))


def regular(cov: Array) -> Array:
    """A covariance that can be inverted, if this one cannot: each direction gets some spread."""
    variance = np.diag(cov)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    values, vectors = np.linalg.eigh(cov / scale / scale[:, None])
    if values[0] >= SINGULAR:
        return cov
    half = scale[:, None] * vectors * np.sqrt(np.maximum(values, SINGULAR))
    return half @ half.T


def without(whole: Array, noise: Array, least: float) -> Array:
    """What noise leaves of a covariance, in every direction a share `least` of it."""
    if not noise.any():
        return whole
    root = np.linalg.cholesky(whole)
    share = np.linalg.solve(root, np.linalg.solve(root, noise).T)
    values, vectors = np.linalg.eigh((share + share.T) / 2)
    if 1 - values[-1] >= least:
        return whole - noise
    half = root @ vectors * np.sqrt(np.maximum(1 - values, least))
    return half @ half.T
