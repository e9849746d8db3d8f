"""Heavy-tailed noise against scipy's t, closed forms and dense quadrature with an inverse for every node."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import gamma, multivariate_t

from tests.problems import spd
from unfog.maths import student
from unfog.maths.arrays import Array


def by_quadrature(
    prior: Array, other: Array, scale: Array, nu: float, surprise: Array, first: float = -30
) -> tuple[Array, Array]:
    """Moments of x ~ N(0, prior) given x + N(0, other) + t = surprise, ten times as many nodes as needed."""
    logs = np.arange(first, 6, 0.005 if nu < 100 else 0.002)
    w = np.exp(logs)
    precision = np.linalg.inv(prior + other + scale / w[:, None, None])
    fit = np.linalg.slogdet(precision)[1] - np.einsum("i,nij,j->n", surprise, precision, surprise)
    density = nu / 2 * (logs - w) + fit / 2
    weights = np.exp(density - density.max())
    weights /= weights.sum()
    means = np.einsum("ij,njk,k->ni", prior, precision, surprise)
    mean = weights @ means
    inner = prior - prior @ np.einsum("n,nij->ij", weights, precision) @ prior
    return mean, inner + np.einsum("n,ni,nj->ij", weights, means - mean, means - mean)


def found(prior: Array, other: Array, scale: Array, nu: float, surprise: Array) -> tuple[Array, Array]:
    return student.moments(student.mixture(student.noise(scale, nu), prior + other, surprise), prior)


def test_moments_are_those_of_dense_quadrature(rng: np.random.Generator) -> None:
    for dim in [1, 2, 5]:
        for nu in [1, 3, 4.5, 30, 1000]:
            check_moments_are_those_of_dense_quadrature(nu, dim, rng)


def check_moments_are_those_of_dense_quadrature(nu: float, dim: int, rng: np.random.Generator) -> None:
    prior, other, scale = spd(rng, dim), spd(rng, dim, 0.01, 1), spd(rng, dim, 0.2, 4)
    for size in (0.0, 1.0, 4.0, 30.0, 600.0):
        surprise = size * rng.standard_normal(dim)
        right = by_quadrature(prior, other, scale, nu, surprise)
        for ours, theirs in zip(found(prior, other, scale, nu, surprise), right, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6 if nu < 3 else 1e-8)


@pytest.mark.slow
def test_twenty_dimensions(rng: np.random.Generator) -> None:
    for nu in [3, 1000]:
        check_twenty_dimensions(nu, rng)


def check_twenty_dimensions(nu: float, rng: np.random.Generator) -> None:
    prior, other, scale = spd(rng, 20), spd(rng, 20, 0.01, 1), spd(rng, 20, 0.2, 4)
    for size in (0.0, 1.0, 50.0):  # none at all: w is then far above 1
        surprise = size * rng.standard_normal(20)
        right = by_quadrature(prior, other, scale, nu, surprise, first=-13)
        for ours, theirs in zip(found(prior, other, scale, nu, surprise), right, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_one_dimension_is_prior_times_scipys_t() -> None:
    x = np.linspace(-40, 40, 200_001)
    for nu, surprise in ((3, 0.7), (3, 9.0), (8, 4.0)):
        density = np.exp(-(x**2) / 2.6) * multivariate_t([0], [[0.6]], df=nu).pdf((surprise - x)[:, None])
        density /= density.sum()
        mean = density @ x
        ours, var = found(np.array([[1.3]]), np.zeros((1, 1)), np.array([[0.6]]), nu, np.array([surprise]))
        np.testing.assert_allclose([*ours, *var[0]], [mean, density @ (x - mean) ** 2], rtol=1e-7)


def test_two_dimensions_are_prior_times_scipys_t(rng: np.random.Generator) -> None:
    prior, scale, surprise = spd(rng, 2), spd(rng, 2, 0.2, 4), np.array([4.0, -3.0])
    axis = np.linspace(-12, 12, 701)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    far = np.einsum("ni,ij,nj->n", points, np.linalg.inv(prior), points)
    density = np.exp(-far / 2) * multivariate_t([0, 0], scale, df=3).pdf(surprise - points)
    density /= density.sum()
    mean = density @ points
    cov = np.einsum("n,ni,nj->ij", density, points - mean, points - mean)
    ours = found(prior, np.zeros((2, 2)), scale, 3, surprise)
    np.testing.assert_allclose(ours[0], mean, atol=1e-6)
    np.testing.assert_allclose(ours[1], cov, atol=1e-6)


def test_where_all_is_noise_its_precision_has_a_gamma_law(rng: np.random.Generator) -> None:
    for nu, dim, far in [(3, 1, 0.0), (3, 20, 0.0), (4, 2, 50.0), (50, 3, 5.0)]:
        check_where_all_is_noise_its_precision_has_a_gamma_law(nu, dim, far, rng)


def check_where_all_is_noise_its_precision_has_a_gamma_law(
    nu: float, dim: int, far: float, rng: np.random.Generator
) -> None:
    scale = spd(rng, dim, 0.2, 4)
    surprise = far * rng.standard_normal(dim)
    noise = student.noise(scale, nu)
    weights = student.mixture(noise, 0 * scale, surprise).weights
    distance = surprise @ np.linalg.solve(scale, surprise)
    law = gamma((nu + dim) / 2, scale=2 / (nu + distance))
    w = np.exp(noise.logs)
    right = law.pdf(w) * w * (noise.logs[1] - noise.logs[0])
    np.testing.assert_allclose(weights, right, atol=1e-9)
    assert weights @ w == pytest.approx((nu + dim) / (nu + distance), rel=1e-8)


def test_many_degrees_of_freedom_are_gaussian(rng: np.random.Generator) -> None:
    prior, other, scale = spd(rng, 3), spd(rng, 3, 0.01, 1), spd(rng, 3, 0.2, 4)
    surprise = np.array([1.0, -2.0, 0.5])
    gain = prior @ np.linalg.inv(prior + other + scale)
    gaps = []
    for nu in (250, 500, 1000):
        mean, cov = found(prior, other, scale, nu, surprise)
        gaps.append([np.abs(mean - gain @ surprise).max(), np.abs(cov - prior + gain @ prior).max()])
    np.testing.assert_allclose(np.array(gaps[:2]) / np.array(gaps[1:]), 2, rtol=0.02)  # of order 1 / nu
    assert np.max(gaps[-1]) < 2e-3


def test_the_farther_off_the_less_is_believed() -> None:
    eye = np.eye(2)
    moved = [
        found(eye, 0 * eye, eye, 4, np.array([size, 0.0]))[0][0] for size in (1.0, 3.0, 30.0, 3e3, 1e5, 1e6)
    ]
    assert moved[0] < moved[1] > moved[2] > moved[3] > 0
    assert moved[1] < 1.5  # a Gaussian would say half of it
    assert moved[2] < 0.25
    assert abs(moved[4]) < 0.05  # past the grid
    assert abs(moved[5]) < 0.5


@pytest.mark.slow
def test_a_batch_is_its_members_on_either_engine(rng: np.random.Generator) -> None:
    prior, scale = spd(rng, 3), spd(rng, 3, 0.2, 4)
    others = np.stack([spd(rng, 3, 0.01, 1) for _ in range(8)]).reshape(2, 4, 3, 3)
    surprise = 3 * rng.standard_normal((2, 4, 3))
    noise = student.noise(scale, 4)

    def both(noise: Any, prior: Any, others: Any, surprise: Any) -> Any:
        shared = student.moments(student.mixture(noise, prior, surprise), prior)
        own = student.moments(student.mixture(noise, prior + others, surprise), others)
        return *shared, *own

    every = both(noise, prior, others, surprise)
    for i in np.ndindex(2, 4):
        one = both(noise, prior, others[i], surprise[i])
        for whole, single in zip(every, one, strict=True):
            np.testing.assert_allclose(whole[i], single, atol=1e-12)
    compiled = jax.jit(both)(*jax.tree.map(jnp.asarray, (noise, prior, others, surprise)))
    for ours, theirs in zip(compiled, every, strict=True):
        assert isinstance(ours, jax.Array)
        np.testing.assert_allclose(ours, theirs, atol=1e-11)


def test_single_precision_is_near(rng: np.random.Generator) -> None:
    prior, scale, surprise = spd(rng, 3), spd(rng, 3, 0.2, 4), 3 * rng.standard_normal((50, 3))
    a, b, c, d = (np.asarray(x, np.float32) for x in (prior, 0 * prior, scale, surprise))
    single: Any = (a, b, c, 4, d)
    ours = found(*single)
    right = found(prior, 0 * prior, scale, 4, surprise)
    for near, exact in zip(ours, right, strict=True):
        assert near.dtype == np.float32
        np.testing.assert_allclose(near, exact, atol=2e-5)
