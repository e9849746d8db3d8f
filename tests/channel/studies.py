"""One simulated sensor, anisotropic, correlated and not centred, and the studies one may make of it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tests.problems import spd
from unfog.channel.calibration import Calibration, calibrate
from unfog.channel.studies import calibrate_external, calibrate_replicates, calibrate_subset
from unfog.maths.arrays import Array

D = 3
LAWS = np.random.default_rng(8)
MEAN, BIAS = np.array([2.0, -1.0, 0.5]), np.array([0.7, -0.4, 1.5])
CONTEXT, NOISE = spd(LAWS, D), spd(LAWS, D, 0.2, 2.0)
RIGHT = {"context_mean": MEAN, "context_cov": CONTEXT, "bias": BIAS, "noise_cov": NOISE}

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


class Sensor(NamedTuple):
    """How standard numbers are drawn that contexts and errors are made of."""

    rng: np.random.Generator
    draw: Draw = np.random.Generator.standard_normal

    def contexts(self, n: int) -> Array:
        return MEAN + self.draw(self.rng, (n, D)) @ np.linalg.cholesky(CONTEXT).T

    def read(self, contexts: Array) -> Array:
        return contexts + BIAS + self.draw(self.rng, contexts.shape) @ np.linalg.cholesky(NOISE).T


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Laplace's law with variance 1: excess kurtosis 3."""
    return rng.laplace(size=shape) / np.sqrt(2)


def pairs(sensor: Sensor, n: int = 80) -> Calibration:
    true = sensor.contexts(n)
    return calibrate(sensor.read(true), true)


def replicates(sensor: Sensor, n: int = 150) -> Calibration:
    """Up to three readings a context, a quarter of them lost; the bias is told."""
    true = sensor.contexts(n)
    readings = sensor.read(np.repeat(true[:, None], 3, axis=1))
    readings[sensor.rng.random((n, 3)) < 0.25] = np.nan
    return calibrate_replicates(readings, bias=BIAS)


def subset(sensor: Sensor, n: int = 600, known: int = 80) -> Calibration:
    true = sensor.contexts(n)
    noisy, holes = sensor.read(true), true.copy()
    holes[known:] = np.nan
    return calibrate_subset(noisy, holes)


def chosen(sensor: Sensor, n: int = 600, known: int = 80) -> tuple[Array, Array]:
    """Those of the highest readings were looked at again: noisy, and true with NaN."""
    true = sensor.contexts(n)
    noisy = sensor.read(true)
    true[np.argsort(noisy[:, 0])[:-known]] = np.nan
    return noisy, true


def external(sensor: Sensor, n: int = 400, elsewhere: int = 60) -> Calibration:
    """Noise and bias from errors of another study, each with its error."""
    zero = np.zeros((elsewhere, D))
    cov = np.cov(sensor.read(zero).T)
    bias = sensor.read(zero).mean(0)
    noisy = sensor.read(sensor.contexts(n))
    told = {"noise_df": elsewhere - 1, "bias": bias, "bias_cov": NOISE / elsewhere}
    return calibrate_external(noisy, cov, **told)
