"""Checks that stay silent where all is well, and speak where something was planted."""

import numpy as np
import pytest
from scipy import stats

from tests.problems import spd
from unfog.channel.dynamics import _exceeded, diagnose_residuals
from unfog.maths.arrays import Array

N, D = 800, 3


def checked(rng: np.random.Generator, z: Array) -> tuple[float, float, float, tuple[str, ...]]:
    """Of z in units and sizes that the law knows of."""
    cov, sizes = spd(rng, D), rng.uniform(0.1, 3.0, N)
    found = diagnose_residuals(np.sqrt(sizes)[:, None] * z @ np.linalg.cholesky(cov).T, sizes, cov)
    return found.lag1, found.whiteness, found.kurtosis, found.doubts()


def test_probabilities_are_right() -> None:
    for degrees in (10, 40):
        for tail in (0.9, 0.3, 0.01, 1e-4):
            value = stats.chi2.isf(tail, degrees)
            assert _exceeded(value, degrees) == pytest.approx(tail, rel=0.2)


def test_no_doubts_without_reason(rng: np.random.Generator) -> None:
    found = [checked(rng, rng.standard_normal((N, D))) for _ in range(60)]
    lag1, whiteness, kurtosis, doubts = zip(*found, strict=True)
    # Each of three checks speaks up by chance in about one of 1000 (kurtosis, skewed, in up to 4): more than
    # three of 60 do in less than 1e-3 of the seeds.
    assert sum(map(len, doubts)) <= 3
    # Means of 60 at 4 standard errors, and a test of Kolmogorov's: 3e-4.
    assert abs(np.mean(lag1)) < 4 / np.sqrt(60 * N * D)
    assert abs(np.mean(kurtosis)) < 4 * np.sqrt(24 / (60 * N * D))
    assert stats.kstest(whiteness, "uniform").pvalue > 1e-4


def test_what_is_planted_is_found(rng: np.random.Generator) -> None:
    z = rng.standard_normal((N, D))
    slow = (z + 0.4 * np.roll(z, 1, 0)) / np.sqrt(1.16)
    lag1, _, _, doubts = checked(rng, slow)
    assert lag1 == pytest.approx(0.4 / 1.16, abs=0.08)  # 4 standard errors
    assert any("correlated" in words for words in doubts)
    heavy = rng.standard_t(4, (N, D)) / np.sqrt(2)
    assert any("heavier" in words for words in checked(rng, heavy)[3])
    assert any("cover" in words for words in checked(rng, 1.3 * z)[3])
