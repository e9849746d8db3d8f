"""Series in time the long way: all covariances between readings written out, draws by their Cholesky root."""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints


class Truth(NamedTuple):
    """Sizes as shares of one covariance between coordinates."""

    walk: float
    time: float
    white: float
    slow: float = np.inf  # time constant of what walks, where it comes back
    cycles: tuple[tuple[float, float], ...] = ()  # period, size


def irregular(rng: np.random.Generator, n: int) -> Array:
    """Steps of 1 on average, some short, some long."""
    return np.cumsum(rng.exponential(0.9, n) + 0.1)


def kernel(truth: Truth, times: Array, labels: Ints) -> Array:
    """(n, n): covariance of the readings of all series, each from a start of zero, where S = 1."""
    begun = np.array([times[labels == label][0] for label in labels])
    apart = np.abs(np.subtract.outer(times, times))
    walked = truth.walk * np.minimum.outer(times - begun, times - begun)
    if truth.slow < np.inf:
        walked = truth.walk * truth.slow / 2 * np.exp(-apart / truth.slow)
    fast = (1 - truth.white) * np.exp(-apart / truth.time)
    waves = sum(size * np.cos(2 * np.pi * apart / period) for period, size in truth.cycles)
    return (labels[:, None] == labels) * (walked + fast + waves) + truth.white * np.eye(len(times))


def drawn(rng: np.random.Generator, truth: Truth, times: Array, labels: Ints, cov: Array) -> Array:
    """(n, d)."""
    shape = (len(times), len(cov))
    root = np.linalg.cholesky(kernel(truth, times, labels) + 1e-10 * np.eye(len(times)))
    return root @ rng.standard_normal(shape) @ np.linalg.cholesky(cov).T


def density(truth: Truth, times: Array, labels: Ints, values: Array, cov: Array) -> float:
    """Log density of the differences from each series' first reading, as one long Gaussian vector."""
    begun = np.array([np.flatnonzero(labels == label)[0] for label in labels])
    less = (np.eye(len(times)) - np.eye(len(times))[begun])[begun != np.arange(len(times))]
    joint = np.kron(less @ kernel(truth, times, labels) @ less.T, cov)
    gap = (less @ values).ravel()
    distance = gap @ np.linalg.solve(joint, gap)
    return float(-(distance + np.linalg.slogdet(joint)[1] + len(gap) * np.log(2 * np.pi)) / 2)
