"""Standard errors of means and covariances, whatever the law of the numbers.

An estimate is, but for small terms, a mean of what each row (or context, or group) contributes to it. So with
contributions p_i, about their mean,

    standard error^2 = sum_i p_i^2 / (n (n - 1)),

the infinitesimal jackknife (B. Efron, *The Jackknife, the Bootstrap and Other Resampling Plans*, chapter 6).
Heavy tails make it larger, as they should; a formula for Gaussian numbers would not see them. Of a covariance
within groups of m rows each deviation is short by the mean that was taken off, and so counts m / (m - 1).
Rows that follow each other in time and are alike count for less than they seem to: errors are then too small.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints


class Errors(NamedTuple):
    """Standard errors of the numbers of a calibration; NaN: the study cannot tell."""

    context_mean: Array  # (d,)
    context_cov: Array  # (d, d)
    bias: Array  # (d,)
    noise_cov: Array  # (d, d)


UNTOLD = Errors(*(np.asarray(np.nan),) * 4)  # of numbers that no study gave


def of_mean(contributions: Array) -> Array:
    """Of the mean of rows (n, d)."""
    return np.asarray(contributions.std(axis=0, ddof=1) / np.sqrt(len(contributions)))


def of_matrix(line: Callable[[int], Array], size: int) -> Array:
    """Of a matrix (d, d): `line(a)` are contributions (n, d) to its line a, one at a time to save memory."""
    return np.stack([of_mean(line(a)) for a in range(size)])


def of_covariance(values: Array) -> Array:
    """Of the sample covariance of rows (n, d)."""
    away = values - values.mean(axis=0)
    return of_matrix(lambda a: away[:, [a]] * away, values.shape[1])


def of_within(away: Array, labels: Ints, cov: Array) -> Array:
    """Of a covariance within groups, from deviations (n, d) of rows from their group's mean."""
    sizes = np.bincount(labels)
    free = len(labels) - len(sizes)
    size = sizes[labels].astype(np.float64)
    stretch = np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
    weight = (size - 1) / size / free**2
    squares, second = away**2, (weight * stretch)[:, None] * away
    total = ((weight * stretch**2)[:, None] * squares).T @ squares
    return np.sqrt(np.maximum(total - 2 * cov * (second.T @ away) + weight.sum() * cov**2, 0.0))


def of_wishart(cov: Array, free: float) -> Array:
    """Of a covariance of Gaussian numbers with so many degrees of freedom."""
    variances = np.diag(cov)
    return np.asarray(np.sqrt((variances[:, None] * variances + cov**2) / free))
