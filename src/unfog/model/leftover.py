"""What a law leaves over: innovations in units of what it expected are independent N(0, 1), if it is right.

    whiteness   Q = N (N + 2) sum_l r_l^2 / (N - l), summed over coordinates: chi-squared of d * lags
                (G. M. Ljung and G. E. P. Box, *On a Measure of Lack of Fit in Time Series Models*)
    tails       the fourth moment less 3, standard error sqrt(24 / (N d))
    coverage    how many lie within 1.96

Steps count, not time: over gaps a lag is longer.
"""

from math import erfc, sqrt
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array

LAGS = 10
BAND = 1.959964
DOUBT = 0.001  # probability below which a check speaks up


class Leftover(NamedTuple):
    """Checks of one series."""

    numbers: int  # looked at
    lag1: float  # correlation with the step before
    lag1_error: float
    whiteness: float  # probability of as much correlation by chance, over 10 lags
    kurtosis: float  # above that of a Gaussian
    kurtosis_error: float
    coverage: float  # of 95 % bands
    coverage_error: float

    def __str__(self) -> str:
        return (
            f"lag-1 correlation {self.lag1:.3f} ± {self.lag1_error:.3f}, whiteness p = {self.whiteness:.2g}; "
            f"excess kurtosis {self.kurtosis:.2f} ± {self.kurtosis_error:.2f}; "
            f"95 % bands cover {100 * self.coverage:.1f} ± {100 * self.coverage_error:.1f} %"
        )

    def doubts(self) -> tuple[str, ...]:
        """What does not look as it should, in words."""
        heavy = "heavier" if self.kurtosis > 0 else "lighter"
        said = {
            "what is left over is correlated in time: limits are too narrow": self.whiteness < DOUBT,
            f"tails are {heavy} than a Gaussian's": _beyond(self.kurtosis / self.kurtosis_error) < DOUBT,
            "95 % bands do not cover 95 %": _beyond((self.coverage - 0.95) / self.coverage_error) < DOUBT,
        }
        return tuple(words for words, holds in said.items() if holds)


def leftover(news: Array, sizes: Array, cov: Array) -> Leftover:
    """Checks of innovations (N, d) whose covariances are sizes (N,) times cov."""
    z = np.linalg.solve(np.linalg.cholesky(cov), (news / np.sqrt(sizes)[:, None]).T).T
    n, d = z.shape
    power = (z**2).sum(axis=0)
    lags = [lag for lag in range(1, LAGS + 1) if lag < n]
    each = np.array([(z[lag:] * z[:-lag]).sum(axis=0) / power for lag in lags])
    statistic = n * (n + 2) * float((each**2 / (n - np.array(lags))[:, None]).sum())
    inside = float((np.abs(z) <= BAND).mean())
    return Leftover(
        z.size,
        float(each[0].mean()),
        1 / sqrt(z.size),
        _exceeded(statistic, d * len(lags)),
        float((z**4).mean() / (z**2).mean() ** 2 - 3),
        sqrt(24 / z.size),
        inside,
        sqrt(0.95 * 0.05 / z.size),
    )


def _beyond(score: float) -> float:
    """Probability that a standard normal is as far from zero."""
    return erfc(abs(score) / sqrt(2))


def _exceeded(value: float, degrees: int) -> float:
    """Probability of more than this, chi-squared: its cube root is nearly normal (Wilson and Hilferty)."""
    part = 2 / (9 * degrees)
    return erfc(((value / degrees) ** (1 / 3) - 1 + part) / sqrt(2 * part)) / 2
