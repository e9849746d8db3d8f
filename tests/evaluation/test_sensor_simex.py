"""Curves that are read off elsewhere, and errors by leaving out."""

import numpy as np

from tests.each import each
from unfog.evaluation.sensor import CURVES, DEGREES, STRETCHES, coefficients, jackknife

LEVELS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
MODEL = np.array([0.7, 0.65, 0.61, 0.585, 0.57])


@each("curve", DEGREES)
@each("at", [-1.0, -0.25])
def test_a_polynomial_is_read_off_exactly(curve: str, at: float) -> None:
    truth = np.random.default_rng(1).normal(size=DEGREES[curve] + 1)
    found = coefficients(curve, LEVELS, at, MODEL, 0.8) @ np.polyval(truth, LEVELS)
    np.testing.assert_allclose(found, np.polyval(truth, at), rtol=1e-9)


@each("curve", DEGREES)
def test_through_other_values_it_is_least_squares(curve: str) -> None:
    values = np.random.default_rng(2).normal(size=5)
    fit = np.polyfit(LEVELS, values, DEGREES[curve])
    found = coefficients(curve, LEVELS, -1.0, MODEL, 0.8) @ values
    np.testing.assert_allclose(found, np.polyval(fit, -1.0), rtol=1e-8)


def test_the_models_curve_is_a_line_over_what_the_model_says() -> None:
    found = coefficients("model", LEVELS, -1.0, MODEL, 0.8) @ (2.0 - 3.0 * MODEL)
    np.testing.assert_allclose(found, 2.0 - 3.0 * 0.8, rtol=1e-9)


@each("curve", CURVES)
def test_at_level_zero_a_constant_is_that_constant(curve: str) -> None:
    for at in (-1.0, 0.0):
        np.testing.assert_allclose(coefficients(curve, LEVELS, at, MODEL, 0.8).sum(), 1.0, rtol=1e-9)


def test_of_independent_scores_the_jackknife_is_the_standard_error() -> None:
    """With one round left out at a time exactly; with stretches within 4 / sqrt(2 * 49), four errors."""
    few = np.random.default_rng(3).exponential(2.0, STRETCHES)
    np.testing.assert_allclose(jackknife(few).se, few.std(ddof=1) / np.sqrt(STRETCHES), rtol=1e-10)
    many = np.random.default_rng(4).exponential(2.0, 20_000)
    np.testing.assert_allclose(jackknife(many).se, many.std() / np.sqrt(20_000), rtol=0.4)
    np.testing.assert_allclose(jackknife(many).mean, many.mean())


def test_of_scores_that_hang_together_it_sees_more() -> None:
    blocks = np.repeat(np.random.default_rng(5).normal(size=500), 40)
    assert jackknife(blocks).se > 4 * blocks.std() / np.sqrt(len(blocks))


def test_one_score_has_no_error() -> None:
    assert np.isnan(jackknife(np.array([2.0])).se)
