"""Extreme deconvolution: the likelihood never falls, and a mixture seen through noise is found again."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.each import each
from tests.problems import spd
from unfog.channel import deconvolution
from unfog.channel.deconvolution import deconvolve
from unfog.maths import mixture
from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture
from unfog.validation import InputError

RNG = np.random.default_rng(5)
NOISE = spd(RNG, 2, 0.2, 0.9)
LAW = Mixture(
    np.array([0.3, 0.7]),
    np.array([[3.0, -2.0], [-1.0, 1.0]]),
    np.stack([spd(RNG, 2, 0.05, 0.6) for _ in "ab"]),
)


def noisy(number: int, seed: int = 1, law: Mixture = LAW) -> Array:
    rng = np.random.default_rng(seed)
    which = rng.choice(len(law.weights), number, p=law.weights)
    true = np.stack([rng.multivariate_normal(law.means[j], law.covs[j]) for j in which])
    return true + rng.multivariate_normal(np.zeros(2), NOISE, number)


def density(law: Mixture, values: Array) -> Array:
    parts = zip(*law, strict=True)
    return np.sum([w * multivariate_normal.pdf(values, u, h + NOISE) for w, u, h in parts], 0)


def test_the_likelihood_is_that_of_the_measurements() -> None:
    values = noisy(50)
    right = np.log(density(LAW, values)).mean()
    assert deconvolution.likelihood(LAW, values, NOISE) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("components", [1, 2, 4])
def test_no_step_lowers_the_likelihood(components: int) -> None:
    values = noisy(300)
    law = deconvolution._start(values, NOISE, components, np.random.default_rng(3))
    seen = []
    for _ in range(60):
        seen.append(deconvolution.likelihood(law, values, NOISE))
        law = deconvolution.step(law, values, NOISE)
        assert law.weights.sum() == pytest.approx(1)
        assert np.linalg.eigvalsh(law.covs).min() > -1e-12
    assert np.diff(seen).min() > -1e-12
    assert seen[-1] > seen[0] + 0.005


def test_a_known_mixture_is_found_again() -> None:
    """20,000 measurements: weights to 0.02, means to 0.1, covariances to 0.15, about four standard errors."""
    found = deconvolve(noisy(20_000), NOISE, components=2)
    order = np.argsort(found.weights)
    np.testing.assert_allclose(found.weights[order], LAW.weights, atol=0.02)
    np.testing.assert_allclose(found.means[order], LAW.means, atol=0.1)
    np.testing.assert_allclose(found.covs[order], LAW.covs, atol=0.15)


def test_one_component_is_the_covariance_less_the_noise() -> None:
    values = noisy(4000)
    found = deconvolve(values, NOISE, components=1)
    np.testing.assert_allclose(found.means[0], values.mean(0), atol=1e-3)
    np.testing.assert_allclose(found.covs[0], np.cov(values.T, bias=True) - NOISE, atol=2e-3)


def test_the_bias_goes_where_the_mean_is_told() -> None:
    values, told = noisy(500), np.array([0.4, -0.9])
    plain, moved = (
        deconvolve(values, NOISE, components=2),
        deconvolve(values + 7.0, NOISE, components=2, mean=told),
    )
    np.testing.assert_allclose(moved.weights @ moved.means, told, atol=1e-12)
    np.testing.assert_allclose(np.diff(moved.means, axis=0), np.diff(plain.means, axis=0), rtol=1e-6)
    np.testing.assert_allclose(moved.covs, plain.covs, rtol=1e-6)


def test_what_has_no_spread_beyond_the_noise_gets_none() -> None:
    rng = np.random.default_rng(2)
    values = np.stack([rng.normal(0, NOISE[0, 0] ** 0.5, 900), rng.normal(0, 2, 900)], 1)
    found = deconvolve(values, [NOISE[0, 0], 0.1], components=1)
    assert found.covs[0, 0, 0] < 0.1
    assert found.covs[0, 1, 1] == pytest.approx(3.9, rel=0.15)


def test_seeds_repeat() -> None:
    values = noisy(200)
    first, again = (deconvolve(values, NOISE, components=3, seed=4) for _ in "ab")
    np.testing.assert_array_equal(first.means, again.means)


@each(
    "change, complaint",
    [
        ({"noisy": [1.0, 2.0]}, r"^noisy: .*has shape \(2,\); allowed: a matrix"),
        ({"noisy": [[1.0, np.nan]] * 9}, "^noisy: .*not finite; allowed: a matrix"),
        ({"noisy": np.zeros((4, 2, 2))}, "^noisy: has shape"),
        ({"noisy": np.ones((8, 2))}, "^noisy: 8 rows; allowed: at least 9, for 3 components"),
        ({"noise_cov": -1.0}, "^noise_cov: "),
        ({"components": 0}, "^components: 0; allowed: a whole number"),
        ({"mean": [1.0]}, "^mean: "),
        ({"seed": -1}, "^seed: "),
    ],
)
def test_refusals(change: dict[str, object], complaint: str) -> None:
    fields: dict[str, object] = {"noisy": noisy(50), "noise_cov": NOISE, "components": 3, **change}
    with pytest.raises(InputError, match=complaint):
        deconvolve(fields.pop("noisy"), fields.pop("noise_cov"), **fields)  # type: ignore[arg-type]


@each("column", [lambda x: 0 * x + 2.0, lambda x: 3 * x - 1.0])
def test_readings_that_do_not_spread_are_refused(column: Any) -> None:
    first = np.random.default_rng(1).normal(size=60)
    with pytest.raises(InputError, match=r"^noisy: it does not spread in every direction; allowed: "):
        deconvolve(np.stack([first, column(first)], 1), 0.1, components=2)


def test_a_component_without_weight_takes_no_part(rng: np.random.Generator) -> None:
    law = Mixture(np.asarray([1.0, 0.0]), rng.normal(size=(2, 2)), np.stack([np.eye(2)] * 2))
    found = mixture.posterior(law, 0.3 * np.eye(2), rng.normal(size=(5, 2)))
    np.testing.assert_allclose(found.weights, [[1.0, 0.0]] * 5, atol=1e-300)


def test_exact_columns_and_those_with_the_least_noise_are_fitted_alike() -> None:
    """A column of a few levels, where a component could end in a point and its law in no density."""
    rng = np.random.default_rng(5)
    true = np.column_stack([rng.normal(size=400), rng.integers(0, 3, 400)])
    noisy = true + rng.normal(size=(400, 2)) * [1.0, 0.0]
    one = deconvolve(noisy, [1.0, 0.0], components=1)
    np.testing.assert_allclose(one.covs[0, 1, 1], true[:, 1].var(), rtol=1e-4)
    several = deconvolve(noisy, [1.0, 0.0])
    assert all(np.isfinite(part).all() for part in several)
    assert np.linalg.eigvalsh(several.covs).min() > 0
