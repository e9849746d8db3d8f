"""The square-root belief against precision forms, exact rational arithmetic and Monte Carlo."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.problems import covariance_error, inverse, spd, within
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Blocks, Gaussian

GRID = 2**20  # rows and values are multiples of 1 / GRID, so that rational arithmetic on them stays small


def precision_form(belief: Gaussian, rows: Array, values: Array, variances: Array) -> tuple[Array, Array]:
    """The posterior of all observations at once."""
    prior = inverse(gaussian.covariance(belief))
    cov = inverse(prior + (rows.T / variances) @ rows)
    return cov @ (prior @ belief.mean + (rows.T / variances) @ values), cov


def condition_all(belief: Gaussian, rows: Array, values: Array, variances: Array) -> Gaussian:
    for row, value, variance in zip(rows, values, variances, strict=True):
        belief = belief.condition(row, value, variance)
    return belief


def rational(matrix: Array) -> list[list[Fraction]]:
    return [[Fraction(float(entry)) for entry in row] for row in matrix]


def rational_inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gauss-Jordan without rounding."""
    size = len(matrix)
    wide = [row + [Fraction(int(i == j)) for j in range(size)] for i, row in enumerate(matrix)]
    for i in range(size):
        wide[i] = [entry / wide[i][i] for entry in wide[i]]
        for j in range(size):
            if j != i:
                wide[j] = [entry - wide[j][i] * pivot for entry, pivot in zip(wide[j], wide[i], strict=True)]
    return [row[size:] for row in wide]


def rational_posterior(
    mean: Array, cov: Array, rows: Array, values: Array, variance: float
) -> tuple[Array, Array]:
    """The posterior without any rounding until the very end."""
    whole: Any = np.array([[int(entry * GRID) for entry in row] for row in rows], dtype=object)
    seen: Any = np.array([int(value * GRID) for value in values], dtype=object)
    unit = Fraction(variance) * GRID**2
    prior: Any = np.array(rational_inverse(rational(cov)))
    precision = prior + (whole.T @ whole) / unit
    pull = prior @ np.array(rational(mean[None])[0]) + (whole.T @ seen) / unit
    after = np.array(rational_inverse(precision.tolist()))
    return (after @ pull).astype(float), after.astype(float)


def on_grid(values: Array) -> Array:
    return np.round(values * GRID) / GRID


def relative(found: Array, truth: Array) -> float:
    return float(np.abs(found - truth).max() / np.abs(truth).max())


@pytest.fixture
def prior(rng: np.random.Generator) -> Gaussian:
    return gaussian.from_moments(rng.normal(1.0, 1.0, 5), spd(rng, 5, 0.05, 4.0))


def test_from_moments_keeps_mean_and_covariance(rng: np.random.Generator) -> None:
    mean, cov = rng.normal(1.0, 1.0, (4, 3)), np.stack([spd(rng, 3) for _ in range(4)])
    belief = gaussian.from_moments(mean, cov)
    assert np.array_equal(belief.mean, mean)
    np.testing.assert_allclose(gaussian.covariance(belief), cov, rtol=1e-13)


def test_condition_is_the_precision_form(prior: Gaussian, rng: np.random.Generator) -> None:
    rows, values, variances = rng.normal(size=(200, 5)), rng.normal(2, 3, 200), rng.uniform(0.1, 3, 200)
    belief = prior
    for n in range(200):
        belief = belief.condition(rows[n], values[n], variances[n])
        mean, cov = precision_form(prior, rows[: n + 1], values[: n + 1], variances[: n + 1])
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gaussian.covariance(belief), cov, rtol=1e-10, atol=1e-12)


def test_condition_of_a_batch_is_that_of_its_members(rng: np.random.Generator) -> None:
    means, covs = rng.normal(size=(2, 3, 4)), np.stack([[spd(rng, 4) for _ in range(3)] for _ in range(2)])
    rows, values = rng.normal(size=(6, 2, 3, 4)), rng.normal(size=(6, 2, 3))
    variances = rng.uniform(0.2, 2.0, (6, 2, 3))
    batch = condition_all(gaussian.from_moments(means, covs), rows, values, variances)
    for i, j in np.ndindex(2, 3):
        start = gaussian.from_moments(means[i, j], covs[i, j])
        mean, cov = precision_form(start, rows[:, i, j], values[:, i, j], variances[:, i, j])
        np.testing.assert_allclose(batch.mean[i, j], mean, rtol=1e-10)
        np.testing.assert_allclose(gaussian.covariance(batch)[i, j], cov, rtol=1e-10, atol=1e-13)


def test_a_shared_prior_spreads_over_the_batch(prior: Gaussian, rng: np.random.Generator) -> None:
    rows, values = rng.normal(size=(3, 5)), rng.normal(size=3)
    batch = prior.condition(rows, values, np.asarray(0.5))
    for i in range(3):
        mean, cov = precision_form(prior, rows[i : i + 1], values[i : i + 1], np.array([0.5]))
        np.testing.assert_allclose(batch.mean[i], mean, rtol=1e-10)
        np.testing.assert_allclose(gaussian.covariance(batch)[i], cov, rtol=1e-10, atol=1e-12)


def test_sample_has_the_moments_of_the_belief(prior: Gaussian, rng: np.random.Generator) -> None:
    belief = prior.condition(np.array([1.0, -2, 0.5, 0, 1]), np.asarray(3.0), np.asarray(0.4))
    mean, cov = precision_form(prior, np.array([[1.0, -2, 0.5, 0, 1]]), np.array([3.0]), np.array([0.4]))
    n = 200_000
    draws = belief.sample(rng.standard_normal((n, 5)))
    # 20 two-sided tests at 5 standard errors: a right sampler fails with probability 1.2e-5.
    assert within(draws.mean(0), mean, np.sqrt(np.diag(cov) / n))
    assert within(np.cov(draws.T), cov, covariance_error(cov, n))


def test_a_wide_root_is_drawn_from_with_as_many_normals_as_there_are_rows(rng: np.random.Generator) -> None:
    # A draw is affine in its normals: the unit vectors give the root that was drawn with.
    wide = Gaussian(rng.normal(size=(2, 4)), rng.normal(size=(2, 4, 7)))
    drawn = wide.sample(np.eye(4)[:, None]) - wide.sample(np.zeros(4))
    root = np.moveaxis(drawn, 0, -1)
    np.testing.assert_allclose(root @ root.mT, gaussian.covariance(wide), rtol=1e-10, atol=1e-12)
    assert gaussian.square(root) is root
    cut = Blocks(wide.mean.reshape(2, 2, 2), wide.root.reshape(2, 2, 2, 7))
    drawn = cut.sample(np.eye(4)[:, None]) - cut.sample(np.zeros(4))
    for first in (0, 2):
        own = np.moveaxis(drawn[first : first + 2, :, first : first + 2], 0, -1)
        right = gaussian.covariance(wide)[:, first : first + 2, first : first + 2]
        np.testing.assert_allclose(own @ own.mT, right, rtol=1e-10, atol=1e-12)


def test_scores_have_these_variances(prior: Gaussian, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(7, 5))
    cov = prior.root @ prior.root.T
    spreads = [sum(row[i] * cov[i, j] * row[j] for i in range(5) for j in range(5)) for row in rows]
    np.testing.assert_allclose(prior.variance(rows), spreads, rtol=1e-12)


def test_the_variance_of_one_score(rng: np.random.Generator) -> None:
    belief = gaussian.from_moments(rng.normal(size=(3, 5)), np.stack([spd(rng, 5) for _ in range(3)]))
    rows = rng.normal(size=(2, 3, 5))
    right = np.einsum("bti,tij,btj->bt", rows, gaussian.covariance(belief), rows)
    np.testing.assert_allclose(belief.variance(rows), right, rtol=1e-12)


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), order=st.permutations(range(12)))
@pytest.mark.slow
def test_order_does_not_matter(seed: int, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    start = gaussian.from_moments(rng.normal(1.0, 1.0, 4), spd(rng, 4, 0.1, 10.0))
    rows, values, variances = rng.normal(size=(12, 4)), rng.normal(1.0, 2.0, 12), rng.uniform(0.1, 5.0, 12)
    straight = condition_all(start, rows, values, variances)
    shuffled = condition_all(start, rows[order], values[order], variances[order])
    mean, cov = precision_form(start, rows, values, variances)
    np.testing.assert_allclose(shuffled.mean, straight.mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        gaussian.covariance(shuffled), gaussian.covariance(straight), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(shuffled.mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gaussian.covariance(shuffled), cov, rtol=1e-9, atol=1e-9)


def test_twenty_thousand_updates_stay_definite_and_accurate(rng: np.random.Generator) -> None:
    n, variance = 20_000, 0.75
    mean, cov = rng.normal(1.0, 1.0, 3), spd(rng, 3, 0.1, 10.0)
    rows = on_grid(rng.normal([0.5, -1.0, 2.0], [1.0, 0.3, 3.0], (n, 3)))
    values = on_grid(rows @ np.array([1.0, -2.0, 0.5]) + rng.normal(0, 0.8, n))
    belief = condition_all(gaussian.from_moments(mean, cov), rows, values, np.full(n, variance))
    right_mean, right_cov = rational_posterior(mean, cov, rows, values, variance)
    assert relative(belief.mean, right_mean) < 1e-10
    assert relative(gaussian.covariance(belief), right_cov) < 1e-10
    least = np.linalg.eigvalsh(gaussian.covariance(belief))[0]
    assert least == pytest.approx(np.linalg.eigvalsh(right_cov)[0], rel=1e-9)


def test_a_prior_of_condition_1e12_is_conditioned_accurately(rng: np.random.Generator) -> None:
    mean, cov = rng.normal(1.0, 1.0, 3), spd(rng, 3, 1e-12, 1.0)
    assert np.linalg.cond(cov) > 1e11
    rows, values = on_grid(rng.normal(size=(200, 3))), on_grid(rng.normal(size=200))
    belief = condition_all(gaussian.from_moments(mean, cov), rows, values, np.full(200, 0.25))
    right_mean, right_cov = rational_posterior(mean, cov, rows, values, 0.25)
    assert relative(belief.mean, right_mean) < 1e-9
    assert relative(gaussian.covariance(belief), right_cov) < 1e-9
    assert np.linalg.svd(belief.root)[1].min() > 0


def test_roots_of_several_covariances_at_once(rng: np.random.Generator) -> None:
    """A singular one among them."""
    covs = np.stack([spd(rng, 3), spd(rng, 3), np.diag([2.0, 0.0, 1.0])])
    roots = gaussian.singular_root(covs)
    assert np.allclose(roots @ roots.mT, covs, rtol=1e-12, atol=1e-12)
    assert np.array_equal(roots[1], gaussian.singular_root(covs[1]))
