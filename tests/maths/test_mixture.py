"""The posterior over a finite set of points against densities of scipy, one point after the other."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

from tests.problems import inverse, spd
from unfog.channel.knowledge import masked_inverse
from unfog.maths import mixture
from unfog.maths.arrays import Array

N, D = 11, 3
RNG = np.random.default_rng(4)
ATOMS = np.exp(RNG.normal(0.4, 0.8, (N, D))) @ np.linalg.cholesky(spd(RNG, D)).T + [2.0, -1.0, 0.5]
NOISE = spd(RNG, D, 0.2, 2.0)
SEEN = ATOMS[RNG.integers(0, N, (5, 4))] + RNG.multivariate_normal(np.zeros(D), NOISE, (5, 4))
POINTS = mixture.points(ATOMS)


def brute(densities: list[float]) -> tuple[Array, Array, Array]:
    """Weights and moments by Bayes' rule, written out."""
    total = sum(densities)
    weights = np.array([density / total for density in densities])
    mean = sum(w * atom for w, atom in zip(weights, ATOMS, strict=True))
    cov = sum(w * np.outer(atom - mean, atom - mean) for w, atom in zip(weights, ATOMS, strict=True))
    return weights, np.asarray(mean), np.asarray(cov)


def check(precision: Array, densities: dict[tuple[int, int], list[float]], nu: float = 0.0) -> None:
    weights = mixture.weights(POINTS, precision, SEEN, nu)
    mean, cov = mixture.points_posterior(POINTS, precision, SEEN, nu)
    assert mean.shape == SEEN.shape
    for place, given in densities.items():
        right = brute(given)
        assert right[0].max() < 0.999  # several points count, or the formula could not fail
        np.testing.assert_allclose(weights[place], right[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mean[place], right[1], rtol=1e-10)
        np.testing.assert_allclose(cov[place], right[2], rtol=1e-8, atol=1e-10)


PLACES = [(0, 0), (1, 2), (4, 3)]


def test_gaussian_noise() -> None:
    found = {p: [multivariate_normal.pdf(SEEN[p], atom, NOISE) for atom in ATOMS] for p in PLACES}
    check(inverse(NOISE), found)


@pytest.mark.parametrize("nu", [3.0, 8.0])
def test_students_noise(nu: float) -> None:
    found = {p: [multivariate_t.pdf(SEEN[p], atom, NOISE, df=nu) for atom in ATOMS] for p in PLACES}
    check(inverse(NOISE), found, nu)


def test_coordinates_that_were_lost_say_nothing() -> None:
    mask = np.ones_like(SEEN)
    mask[..., 1] = RNG.random(SEEN.shape[:-1]) < 0.5
    mask[1, 2], mask[4, 3] = [1, 0, 1], [0, 1, 0]
    found = {}
    for p in PLACES:
        kept = np.flatnonzero(mask[p])
        cov = NOISE[np.ix_(kept, kept)]
        found[p] = [multivariate_normal.pdf(SEEN[p][kept], atom[kept], cov) for atom in ATOMS]
    check(masked_inverse(NOISE, mask), found)


def test_a_context_lost_as_a_whole_leaves_the_sample() -> None:
    mean, cov = mixture.points_posterior(POINTS, np.zeros((D, D)), SEEN)
    np.testing.assert_allclose(mean, np.broadcast_to(ATOMS.mean(0), SEEN.shape), rtol=1e-12)
    np.testing.assert_allclose(cov[2, 1], np.cov(ATOMS.T, ddof=0), rtol=1e-10)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_far_from_all_points_the_nearest_is_named(size: float) -> None:
    far = size * RNG.normal(size=(6, D))
    mean, cov = mixture.points_posterior(POINTS, inverse(NOISE), far)
    for i, value in enumerate(far):
        gaps = [(value - atom) @ inverse(NOISE) @ (value - atom) for atom in ATOMS]
        np.testing.assert_allclose(mean[i], ATOMS[int(np.argmin(gaps))], rtol=1e-6)
    assert np.abs(cov).max() < 1e-6


def test_cuts_and_company_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = (RNG.random(SEEN.shape) < 0.6).astype(float)
    for precision in (inverse(NOISE), masked_inverse(NOISE, mask)):
        whole = mixture.points_posterior(POINTS, precision, SEEN)
        monkeypatch.setattr(mixture, "CELLS", 2 * 4 * N)
        for one, other in zip(whole, mixture.points_posterior(POINTS, precision, SEEN), strict=True):
            assert np.array_equal(one, other)
        monkeypatch.undo()
    few = mixture.points_posterior(POINTS, inverse(NOISE), SEEN[:2, 0])
    many = mixture.points_posterior(POINTS, inverse(NOISE), SEEN[:, 0])
    assert all(np.array_equal(one, other[:2]) for one, other in zip(few, many, strict=True))


def test_both_libraries_and_precisions_agree() -> None:
    right = mixture.points_posterior(POINTS, inverse(NOISE), SEEN, 5.0)
    for dtype, close in ((jnp.float64, 1e-11), (jnp.float32, 2e-4)):
        value = jnp.asarray(SEEN, dtype)
        found = mixture.points_posterior(
            mixture.like(POINTS, value), jnp.asarray(inverse(NOISE), dtype), value, 5.0
        )
        for one, other in zip(found, right, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, other, rtol=close, atol=close * np.abs(other).max())
