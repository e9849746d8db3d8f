"""The covariance of contexts from that of noisy ones, S = C + N, with S by moments of what is there.

With readings x = c + n, the noise of row i of covariance N_i, and gaps,

    C[j, k] = (sum over rows that have j and k of (x_j - mean_j)(x_k - mean_k)) / (count - 1)
              - (mean over the same rows of N_i[j, k]),

which is unbiased where coordinates are lost at random (W. A. Fuller, *Measurement Error Models*, section
1.1, for one noise; pairs of coordinates that are there, for the gaps). A difference of two covariances may be
none: no direction keeps less than a share `least` of the spread that is seen in it.
"""

import numpy as np

from unfog.maths.arrays import Array

SINGULAR = 1e-10  # of a coordinate's variance, that every direction has at least


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
