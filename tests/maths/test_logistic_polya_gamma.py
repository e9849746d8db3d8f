"""Polya-Gamma draws against the series that defines the law, its density, and SciPy's inverse Gaussian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.stats import invgauss, kstest

from unfog.maths import logistic
from unfog.maths.arrays import Array

DRAWS = 400_000
TILTS = [0.0, 0.1, 0.29, 0.31, 1.0, 3.0, 10.0, 50.0, -2.0]


def weights(z: float, terms: int) -> Array:
    """What multiplies the exponentials e_1, e_2, ... in the sum that PG(1, z) is."""
    k = np.arange(1, terms + 1)
    return 1 / (2 * np.pi**2 * ((k - 0.5) ** 2 + (z / (2 * np.pi)) ** 2))


def mean_and_variance(z: float, terms: int = 100_000) -> tuple[float, float]:
    """Sums over the series; past its end an integral, of which midpoints leave 1e-16."""
    summed = weights(z, terms)[::-1]
    tilt = abs(z) / (2 * np.pi)
    rest = 1 / terms if tilt == 0 else np.arctan(tilt / terms) / tilt
    return summed.sum() + rest / (2 * np.pi**2), (summed**2).sum()


class Exact:
    """The distribution function of PG(1, z), from its density.

    cosh(z/2) exp(-z^2 x / 2) sum_n (-1)^n (2n + 1) (2 pi x^3)^(-1/2) exp(-(2n + 1)^2 / (8 x)), integrated
    over a fine grid of log x.
    """

    def __init__(self, z: float) -> None:
        mean, variance = mean_and_variance(z)
        logs = np.linspace(np.log(mean) - 5.0, np.log(mean + 40 * variance**0.5), 6001)
        x, n = np.exp(logs)[:, None], np.arange(60)
        waves = (-1.0) ** n * (2 * n + 1) * np.exp(-((2 * n + 1) ** 2) / (8 * x) - z**2 * x / 2 + abs(z) / 2)
        density = waves.sum(-1) / np.sqrt(2 * np.pi * x[:, 0] ** 3) * (1 + np.exp(-abs(z))) / 2
        self.x, self.cdf = x[:, 0], cumulative_simpson(density * x[:, 0], x=logs, initial=0.0)

    def __call__(self, x: Array) -> Array:
        return np.interp(x, self.x, self.cdf)


def draws(z: float, seed: int = 0, terms: int = logistic.TERMS) -> Array:
    """So many draws, in pieces that stay in the cache."""
    rng, size = np.random.default_rng([seed, terms]), 20_000
    tilt, width = np.full(size, z), logistic.normals(terms)
    pieces = [rng.standard_normal((size, width)) for _ in range(DRAWS // size)]
    return np.concatenate([logistic.draw(tilt, piece, terms) for piece in pieces])


def test_moments_are_those_of_the_series() -> None:
    for z in [*TILTS, 0.2999999, 0.3, -0.3, 1e-8, 700.0]:
        check_moments_are_those_of_the_series(z)


def check_moments_are_those_of_the_series(z: float) -> None:
    found = logistic.moments(np.asarray(z))
    np.testing.assert_allclose(found, mean_and_variance(z), rtol=1e-9)


def test_the_mean_is_half_a_hyperbolic_tangent() -> None:
    z = np.array([-4.0, 0.5, 2.0, 9.0])
    np.testing.assert_allclose(logistic.moments(z)[0], np.tanh(z / 2) / (2 * z), rtol=1e-14)


def test_the_distribution_function_to_compare_with_is_right() -> None:
    for z in TILTS:
        exact, (mean, variance) = Exact(z), mean_and_variance(z)
        assert exact.cdf[-1] == pytest.approx(1.0, abs=1e-8)
        middle, mass = (exact.x[1:] + exact.x[:-1]) / 2, np.diff(exact.cdf)
        assert middle @ mass == pytest.approx(mean, rel=1e-5)
        assert (middle - mean) ** 2 @ mass == pytest.approx(variance, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("z", TILTS)
def test_draws_have_their_law(z: float) -> None:
    found, (mean, variance) = draws(z), mean_and_variance(z)
    assert found.min() > 0
    fourth = ((found - mean) ** 4).mean()
    # Two tests of nine laws at 4.5 standard errors: right draws fail with probability 1e-4.
    assert abs(found.mean() - mean) < 4.5 * np.sqrt(variance / DRAWS)
    assert abs(found.var() - variance) < 4.5 * np.sqrt((fourth - variance**2) / DRAWS)
    # Kolmogorov and Smirnov: right draws of nine laws fail with probability 0.001 together.
    assert kstest(found, Exact(z)).pvalue > 1e-4


@pytest.mark.slow
def test_they_are_sums_of_hundreds_of_exponentials() -> None:
    for z in [0.0, 1.0, 10.0]:
        check_they_are_sums_of_hundreds_of_exponentials(z)


def check_they_are_sums_of_hundreds_of_exponentials(z: float) -> None:
    rng = np.random.default_rng(5)
    sums = np.concatenate([rng.exponential(size=(2000, 300)) @ weights(z, 300) for _ in range(50)])
    sums += mean_and_variance(z)[0] - weights(z, 300).sum()  # the rest hardly varies: by 1e-5
    # Two samples, one of 100,000: right draws fail with probability 0.001 at each of three.
    assert kstest(draws(z, seed=1), sums).pvalue > 1e-3


def test_without_terms_it_is_an_inverse_gaussian_of_the_same_moments() -> None:
    for z in [0.0, 0.5, 4.0]:
        check_without_terms_it_is_an_inverse_gaussian_of_the_same_moments(z)


def check_without_terms_it_is_an_inverse_gaussian_of_the_same_moments(z: float) -> None:
    mean, variance = mean_and_variance(z)
    shape = mean**3 / variance
    law = invgauss(mean / shape, scale=shape)
    assert (law.mean(), law.var()) == pytest.approx((mean, variance), rel=1e-9)
    # Right draws fail with probability 0.001 at each of three.
    assert kstest(draws(z, seed=2, terms=0), law.cdf).pvalue > 1e-3


def distance(z: float) -> float:
    """How far the distribution function of what is drawn is from the exact one, no randomness in it.

    By inverting the difference of the characteristic functions: products of exponentials' and an inverse
    Gaussian's, and cosh(z/2) / cosh(sqrt((z^2/2 - i t) / 2)).
    """
    mean, variance = (float(moment) for moment in logistic.moments(np.asarray(z)))
    first = weights(z, logistic.TERMS)
    rest, spread = mean - first.sum(), variance - (first**2).sum()
    t = (np.arange(20_000) + 0.5) * (0.05 / variance**0.5)
    root, shape = np.sqrt((z**2 / 2 - 1j * t) / 2), rest**2 / spread
    exact = np.exp(abs(z) / 2 - root) * (1 + np.exp(-abs(z))) / (1 + np.exp(-2 * root))
    drawn = np.exp(shape * (1 - np.sqrt(1 - 2j * t * rest / shape))) / np.prod(1 - 1j * t[:, None] * first, 1)
    x = mean + variance**0.5 * np.linspace(-2.0, 6.0, 161)
    waves = np.exp(-1j * t * x[x > 0, None]) * (drawn - exact) / t
    return float(np.abs(waves.imag.sum(1)).max() * (t[1] - t[0]) / np.pi)


def test_the_law_that_is_drawn_is_near_the_exact_one() -> None:
    for z, bound in [(0, 1e-5), (1, 1.1e-5), (3, 2e-5), (10, 1.4e-4), (50, 1.2e-3)]:
        check_the_law_that_is_drawn_is_near_the_exact_one(z, bound)


def check_the_law_that_is_drawn_is_near_the_exact_one(z: float, bound: float) -> None:
    assert distance(z) < bound


def test_fewer_terms_keep_the_moments() -> None:
    for terms in [1, 2]:
        check_fewer_terms_keep_the_moments(terms)


def check_fewer_terms_keep_the_moments(terms: int) -> None:
    mean, variance = mean_and_variance(1.5)
    found = draws(1.5, seed=3, terms=terms)
    # Four tests at 4.5 standard errors, 7e-6 each; the fourth moment of PG is below 12 variances squared.
    assert abs(found.mean() - mean) < 4.5 * np.sqrt(variance / DRAWS)
    assert abs(found.var() - variance) < 4.5 * np.sqrt(11 * variance**2 / DRAWS)


def test_a_draw_takes_two_normals_a_term_and_three_more() -> None:
    assert [logistic.normals(terms) for terms in (0, 1, 4)] == [3, 5, 11]
    assert logistic.normals() == 11


def test_only_the_size_of_the_tilt_matters_and_batches_are_their_members(rng: np.random.Generator) -> None:
    z, normals = rng.normal(0, 3, (4, 6)), rng.standard_normal((4, 6, 11))
    found = logistic.draw(z, normals)
    assert found.shape == (4, 6)
    np.testing.assert_array_equal(logistic.draw(-z, normals), found)
    for i, j in np.ndindex(4, 6):
        assert float(logistic.draw(z[i, j], normals[i, j])) == pytest.approx(found[i, j], rel=1e-13)


def test_jax_gives_the_same_numbers(rng: np.random.Generator) -> None:
    z, normals = rng.normal(0, 4, 500), rng.standard_normal((500, 11))
    found = jax.jit(logistic.draw)(jnp.asarray(z), jnp.asarray(normals))
    np.testing.assert_allclose(found, logistic.draw(z, normals), rtol=1e-11)


def test_single_precision_draws_are_near_and_positive(rng: np.random.Generator) -> None:
    z = np.concatenate([[0.0, 1e-3, 0.2999, 0.3001, 80.0, 500.0], rng.normal(0, 4, 20_000)])
    normals = rng.standard_normal((len(z), 11))
    found = jax.jit(logistic.draw)(jnp.asarray(z, jnp.float32), jnp.asarray(normals, jnp.float32))
    assert found.dtype == jnp.float32
    assert float(found.min()) > 0
    right = logistic.draw(z, normals)
    # A rare draw of the inverse Gaussian falls on the other of its two roots: these are few.
    assert np.quantile(np.abs(np.asarray(found) / right - 1), 0.999) < 1e-3
