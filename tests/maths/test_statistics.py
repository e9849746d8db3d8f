"""Means with their standard errors; ratios of paired means, against a bootstrap and samples drawn anew."""

import numpy as np
import pytest

from unfog.maths.arrays import Array
from unfog.maths.statistics import Estimate, estimate, jackknife_error, quotient, standard_error


def paired(rng: np.random.Generator, *shape: int) -> tuple[Array, Array]:
    """Regrets that share their trials' luck, skewed, with 1.5 as the ratio of means."""
    shared = rng.gamma(4.0, 5.0, shape)
    return 1.5 * shared * rng.gamma(9.0, 1 / 9, shape), shared * rng.gamma(9.0, 1 / 9, shape)


def test_it_is_that_of_a_bootstrap(rng: np.random.Generator) -> None:
    """Of 10,000 bootstrap ratios the spread is known to 0.7 %; four of these, and the delta method's own."""
    other, reference = paired(rng, 400)
    drawn = rng.integers(0, 400, (10_000, 400))
    again = other[drawn].mean(1) / reference[drawn].mean(1)
    found = quotient(other, reference)
    assert found.value == pytest.approx(other.mean() / reference.mean(), rel=1e-12)
    assert found.se == pytest.approx(again.std(), rel=0.035)


def test_it_is_the_spread_of_ratios_of_samples_drawn_anew(rng: np.random.Generator) -> None:
    """Of 3,000 samples the spread is known to 1.3 %, and the mean of the estimates far better."""
    others, references = paired(rng, 3000, 100)
    found = [quotient(*pair) for pair in zip(others, references, strict=True)]
    spread = np.std([one.value for one in found], ddof=1)
    assert np.sqrt(np.mean([one.se**2 for one in found])) == pytest.approx(spread, rel=0.05)


def test_by_hand() -> None:
    """With r = 2, x - 2 y = (1, -1, 0), variance 1, mean(y) = 2, n = 3."""
    found = quotient(np.array([3.0, 3.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx((2.0, 1 / (np.sqrt(3) * 2)))


def test_what_cannot_be_said_is_not_a_number() -> None:
    one, none = np.array([2.0]), np.zeros(3)
    assert np.isnan(quotient(none, none)).all()
    assert np.isnan(quotient(np.ones(3), -np.ones(3))).all()
    assert (quotient(one, one).value, np.isnan(quotient(one, one).se)) == (1.0, True)
    assert quotient(none, np.ones(3)) == (0.0, 0.0)


def test_the_estimate_is_mean_and_standard_error(rng: np.random.Generator) -> None:
    values = rng.exponential(3.0, 57)
    found = estimate(values)
    assert found.mean == pytest.approx(sum(values) / 57)
    assert found.se == pytest.approx(np.sqrt(sum((values - values.mean()) ** 2) / 56 / 57))


def test_one_value_has_no_standard_error() -> None:
    found = estimate(np.array([3.0]))
    assert found.mean == 3
    assert np.isnan(found.se)


def test_the_interval_is_normal() -> None:
    low, high = Estimate(10.0, 2.0).interval()
    assert (low, high) == pytest.approx((10 - 3.919928, 10 + 3.919928), abs=1e-6)
    assert Estimate(10.0, 2.0).interval(0.682689492137086) == pytest.approx((8, 12))


def test_the_interval_covers_as_often_as_it_says(rng: np.random.Generator) -> None:
    runs = 4000
    samples = rng.gamma(9.0, 5.0, (runs, 400))
    intervals = np.array([estimate(sample).interval() for sample in samples])
    covered = ((intervals[:, 0] <= 45) & (intervals[:, 1] >= 45)).mean()
    # A binomial share of 95 %, 4 standard errors and half a point for the skewness: wrong 6e-5 of the time.
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs) + 0.005


def test_errors_of_columns_are_those_of_each(rng: np.random.Generator) -> None:
    values = rng.exponential(3.0, (57, 2))
    assert standard_error(values) == pytest.approx([estimate(column).se for column in values.T])
    assert np.isnan(standard_error(values[:1])).tolist() == [True, True]


def test_the_jackknife_of_a_mean_is_its_standard_error(rng: np.random.Generator) -> None:
    values = rng.exponential(3.0, 57)
    assert jackknife_error((values.sum() - values) / 56) == pytest.approx(estimate(values).se)
