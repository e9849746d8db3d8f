"""A channel that is skew in every way, readings of it, and contexts by brute force: one joint Gaussian."""

from typing import Any, NamedTuple

import numpy as np

from unfog.features import Context
from unfog.maths.arrays import Array, Ints

DIM = 3
MEAN = np.array([1.0, -2.0, 30.0])
BIAS_SD = np.array([0.7, 1.5, 4.0])


def covariance(seed: int, scale: Array) -> Array:
    root = np.random.default_rng(seed).normal(size=(DIM, DIM)) * scale[:, None]
    return root @ root.T + np.diag(0.1 * scale**2)


CONTEXT_COV = covariance(1, np.array([1.0, 2.0, 9.0]))
NOISE_COV = covariance(2, np.array([0.8, 1.0, 6.0]))
BIAS_COV = covariance(3, BIAS_SD)
TOLD: dict[str, Any] = {
    "context_mean": MEAN,
    "context_cov": CONTEXT_COV,
    "noise_cov": NOISE_COV,
    "bias_cov": BIAS_COV,
}


class Readings(NamedTuple):
    true: Array  # (n, d)
    noisy: Array  # (n, d)
    bias: Array  # (devices, d)


def readings(rows: int, *, seed: int, devices: int = 1, noise: Array = NOISE_COV) -> Readings:
    """Row i is of device i modulo their number."""
    source = np.random.default_rng(seed)
    true = source.multivariate_normal(MEAN, CONTEXT_COV, size=rows)
    bias = source.multivariate_normal(np.zeros(DIM), BIAS_COV, size=devices)
    normals = source.normal(size=(rows, DIM))
    errors = (np.linalg.cholesky(noise) @ normals[..., None])[..., 0]
    return Readings(true, true + bias[np.arange(rows) % devices] + errors, bias)


def last_context(noisy: Array, true: Array, devices: Ints, noises: Array) -> Context:
    """The context of the last row given every number of noisy and true (n, d) that is there.

    All contexts, biases and noises stand in one vector; what is seen are sums of its entries.
    """
    rows, count = len(noisy), int(devices.max()) + 1
    blocks = [CONTEXT_COV] * rows + [BIAS_COV] * count + list(noises)
    cov = np.zeros((DIM * len(blocks),) * 2)
    for i, block in enumerate(blocks):
        cov[i * DIM : (i + 1) * DIM, i * DIM : (i + 1) * DIM] = block
    eye = np.eye(rows * DIM)
    whose = np.kron(np.eye(count)[devices], np.eye(DIM))
    seen = np.concatenate([np.hstack([eye, whose, eye]), np.hstack([eye, 0 * whose, 0 * eye])])
    values = np.concatenate([(noisy - MEAN).ravel(), (true - MEAN).ravel()])
    there = ~np.isnan(values)
    seen, values = seen[there], values[there]
    last = np.hstack([eye, 0 * whose, 0 * eye])[-DIM:]
    gain = np.linalg.solve(seen @ cov @ seen.T, seen @ cov @ last.T).T
    return Context(MEAN + gain @ values, last @ cov @ last.T - gain @ seen @ cov @ last.T)


def with_gaps(values: Array, share: float, seed: int) -> Array:
    return np.where(np.random.default_rng(seed).random(values.shape) < share, np.nan, values)
