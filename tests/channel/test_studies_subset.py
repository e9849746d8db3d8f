"""The truth for some, against EM over the missing truths, the pairs alone, and readings that decided."""

import numpy as np
import pytest

from tests.channel import studies
from tests.channel.studies import BIAS, D, Sensor
from tests.problems import within
from unfog.channel.calibration import calibrate
from unfog.channel.studies import calibrate_subset
from unfog.maths.arrays import Array
from unfog.validation import InputError


def em(noisy: Array, true: Array, steps: int = 3000) -> tuple[Array, Array]:
    """Mean and covariance of (true, noisy), the likeliest ones, by EM over the truths that are missing."""
    lost = np.asarray(np.isnan(true).any(1))
    mean, cov = np.zeros(2 * D), 10 * np.eye(2 * D)
    for _ in range(steps):
        gain = cov[:D, D:] @ np.linalg.inv(cov[D:, D:])
        guess = np.where(lost[:, None], mean[:D] + (noisy - mean[D:]) @ gain.T, true)
        both = np.hstack([guess, noisy])
        left = np.zeros((2 * D, 2 * D))
        left[:D, :D] = lost.mean() * (cov[:D, :D] - gain @ cov[D:, :D])
        mean = both.mean(0)
        cov = (both - mean).T @ (both - mean) / len(both) + left
    return mean, cov


def test_it_is_the_maximum_of_the_likelihood(rng: np.random.Generator) -> None:
    noisy, true = studies.chosen(Sensor(rng), 90, 30)
    found = calibrate_subset(noisy, true)
    mean, cov = em(noisy, true)
    np.testing.assert_allclose(found.context_mean, mean[:D], rtol=1e-7)
    np.testing.assert_allclose(found.bias, mean[D:] - mean[:D], rtol=1e-7)
    # Likeliest covariances divide by n; ours by n - 1, for the line's rest and for the readings alike.
    slope = cov[:D, D:] @ np.linalg.inv(cov[D:, D:])
    rest = (cov[:D, :D] - slope @ cov[D:, :D]) * 30 / 29
    spread, off = cov[D:, D:] * 90 / 89, np.eye(D) - slope
    np.testing.assert_allclose(found.context_cov, rest + slope @ spread @ slope.T, rtol=1e-6)
    np.testing.assert_allclose(found.noise_cov, rest + off @ spread @ off.T, rtol=1e-6)


def test_with_every_truth_it_is_what_pairs_say(rng: np.random.Generator) -> None:
    sensor = Sensor(rng)
    true = sensor.contexts(40)
    noisy = sensor.read(true)
    one, other = calibrate_subset(noisy, true), calibrate(noisy, true)
    for part in ("context_mean", "context_cov", "bias", "noise_cov"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-9)
        np.testing.assert_allclose(getattr(one.errors, part), getattr(other.errors, part), rtol=0.12)
    assert one.pairs == other.pairs == 40


def test_readings_without_truth_help(rng: np.random.Generator) -> None:
    sensor = Sensor(rng)
    few, more = ([studies.subset(sensor, n, 60) for _ in range(150)] for n in (60, 1200))
    for part, gain in (("context_mean", 1.5), ("bias", 1.2), ("context_cov", 1.1)):
        spreads = [np.array([getattr(one, part) for one in found]).var(0).sum() for found in (few, more)]
        # In closed form the variance of the mean falls by 2.2, that of the bias by 1.6; the ratio is good to
        # 1 in 8 (two spreads of 150 repeats, three numbers each), so 2.2 is below 1.5 once in 2,000 seeds.
        assert spreads[0] / spreads[1] > gain, part


def test_readings_may_decide_whose_truth_is_known(rng: np.random.Generator) -> None:
    noisy, true = studies.chosen(Sensor(rng), 20_000, 4000)
    found, alone = calibrate_subset(noisy, true), calibrate(noisy, true)
    # 24 tests at 5 standard errors: 1e-5. A high reading is high by error too: pairs alone are far off.
    for part, right in studies.RIGHT.items():
        assert within(getattr(found, part), right, getattr(found.errors, part)), part
    assert (alone.bias - BIAS)[0] > 20 * alone.errors.bias[0]


def test_rows_that_lack_something(rng: np.random.Generator) -> None:
    noisy, true = studies.chosen(Sensor(rng), 60, 30)
    known = np.flatnonzero(np.isfinite(true[:, 0]))
    holes, gaps = noisy.copy(), true.copy()
    holes[known[0], 1] = np.nan
    gaps[known[1], 2] = np.nan
    right = np.delete(true, known[0], 0)
    right[known[1] - (known[0] < known[1])] = np.nan
    one, other = calibrate_subset(holes, gaps), calibrate_subset(np.delete(noisy, known[0], 0), right)
    np.testing.assert_array_equal(one.noise_cov, other.noise_cov)
    assert one.design.used == "59 readings, 28 of them with the truth"
    assert one.pairs == 28
    assert one.contexts is None  # those chosen by their readings are no fair sample


def test_too_few_truths_are_refused(rng: np.random.Generator) -> None:
    noisy, true = studies.chosen(Sensor(rng), 60, 8)
    calibrate_subset(noisy, true)
    true[np.flatnonzero(np.isfinite(true[:, 0]))[0]] = np.nan
    with pytest.raises(InputError, match=r"^true: 7 of 60 readings have a truth; allowed: at least 8 rows"):
        calibrate_subset(noisy, true)
    with pytest.raises(InputError, match=r"^true: 0 of 60 readings have a truth"):
        calibrate_subset(noisy, np.full_like(true, np.nan))
    with pytest.raises(InputError, match=r"^noisy: has shape \(60, 3\) and true \(60, 2\)"):
        calibrate_subset(noisy, true[:, :2])
    exact = np.where(np.arange(60)[:, None] < 30, noisy + BIAS, np.nan)
    with pytest.raises(InputError, match=r"^noisy: column 0 says the truth without noise"):
        calibrate_subset(noisy, exact)
