"""Exponents against known power laws, a loop over trials left out, and how often the interval covers."""

import numpy as np
import pytest

from tests.each import each
from unfog.maths.arrays import Array
from unfog.theory import bounds
from unfog.validation import InputError

POINTS = np.array([10.0, 30.0, 100.0, 400.0, 1000.0])


@each("power", [-1.0, 0.0, 0.5, 1.0, 2.7])
@each("scale", [1e-6, 3.0, 1e8])
def test_a_power_law_has_its_exponent_and_no_error(power: float, scale: float) -> None:
    found = bounds.exponent(POINTS, np.tile(scale * POINTS**power, (5, 1)))
    assert found.mean == pytest.approx(power, abs=1e-12)
    assert found.se == pytest.approx(0, abs=1e-12)


def test_the_slope_is_least_squares_of_every_row(rng: np.random.Generator) -> None:
    values = rng.gamma(2.0, 1.0, (3, 4, 5))
    found = bounds.slope(POINTS, values)
    assert found.shape == (3, 4)
    for i in np.ndindex(3, 4):
        assert found[i] == pytest.approx(np.polyfit(np.log(POINTS), np.log(values[i]), 1)[0])


def test_it_is_the_exponent_of_the_mean_and_the_jackknife(rng: np.random.Generator) -> None:
    values = rng.gamma(2.0, 1.0, (12, 5)) * POINTS**0.4
    found = bounds.exponent(POINTS, values)

    def fitted(trials: Array) -> float:
        return float(np.polyfit(np.log(POINTS), np.log(trials.mean(0)), 1)[0])

    rest = np.array([fitted(np.delete(values, i, 0)) for i in range(12)])
    assert found.mean == pytest.approx(fitted(values))
    assert found.se == pytest.approx(np.sqrt(11 / 12 * ((rest - rest.mean()) ** 2).sum()))


@pytest.mark.slow
def test_the_interval_covers_as_often_as_it_says(rng: np.random.Generator) -> None:
    """Cumulative sums: the values of a trial hang together, as regret does."""
    runs, trials, power = 1000, 200, 0.5
    rounds = np.arange(1.0, 41)
    steps = rounds**power - (rounds - 1) ** power
    covered = 0
    for _ in range(runs):
        level = rng.gamma(4.0, 0.25, (trials, 1))
        paths = np.cumsum(level * steps * rng.gamma(2.0, 0.5, (trials, 40)), 1)
        low, high = bounds.exponent(rounds[4:], paths[:, 4:]).interval()
        covered += low <= power <= high
    # A binomial share of 95 %, 4 standard errors and a point for skewness: wrong 6e-5 of the time.
    assert abs(covered / runs - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs) + 0.01


def test_one_trial_has_no_standard_error() -> None:
    found = bounds.exponent(POINTS, POINTS[None] ** 0.5)
    assert found.mean == pytest.approx(0.5)
    assert np.isnan(found.se)


def test_trials_may_be_zero_or_negative_where_the_mean_is_not() -> None:
    values = np.stack([0 * POINTS, -0.1 * POINTS, 4 * POINTS, 3 * POINTS])
    found = bounds.exponent(POINTS, values)
    assert found.mean == pytest.approx(1)
    assert found.se == pytest.approx(0, abs=1e-12)


@each("others", [0.0, -0.1])
def test_a_mean_above_zero_thanks_to_one_trial_has_no_standard_error(others: float) -> None:
    found = bounds.exponent(POINTS, np.stack([others * POINTS, others * POINTS, 4 * POINTS]))
    assert found.mean == pytest.approx(1)
    assert np.isnan(found.se)


@each("points", [[5.0], [5.0, 5.0], [0.0, 1.0], [-1.0, 1.0]])
def test_odd_points_are_refused(points: list[float]) -> None:
    with pytest.raises(InputError, match=r"^points: "):
        bounds.exponent(np.array(points), np.ones((3, len(points))))


@each("worst", [0.0, -1.0])
def test_means_that_have_no_logarithm_are_refused(worst: float) -> None:
    with pytest.raises(InputError, match=r"^values: .*means above zero"):
        bounds.exponent(np.array([1.0, 2.0]), np.array([[1.0, worst], [1.0, worst]]))
