"""The square-root filter against covariances written out."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from unfog.maths.arrays import Array
from unfog.maths.kalman import Belief, forward, triangle

N, D, WIDE = 5, 2, 9


def dense(belief: Belief, rows: Array, noise_root: Array, value: Array) -> tuple[Array, Array]:
    """Kalman's formulas for one trial."""
    cov = belief.root @ belief.root.T
    seen = rows @ cov @ rows.T + noise_root @ noise_root.T
    gain = cov @ rows.T @ np.linalg.inv(seen)
    return belief.mean + gain @ (value - rows @ belief.mean), cov - gain @ seen @ gain.T


@pytest.fixture
def made(rng: np.random.Generator) -> tuple[Belief, Array, Array, Array]:
    belief = Belief(rng.normal(size=(3, N)), rng.normal(size=(3, N, WIDE)) * [[0.1], [1], [3], [1], [0.5]])
    return belief, rng.normal(size=(D, N)), rng.normal(size=(D, D + 1)), rng.normal(size=(3, D))


def trial(belief: Belief, i: int) -> Belief:
    return Belief(belief.mean[i], belief.root[i])


def test_a_value_is_taken_in_as_the_formulas_say(made: tuple[Belief, Array, Array, Array]) -> None:
    belief, rows, noise, value = made
    found = belief.seen(rows, noise, value)
    assert found.root.shape == (3, N, N)
    for i in range(3):
        mean, cov = dense(trial(belief, i), rows, noise, value[i])
        np.testing.assert_allclose(found.mean[i], mean, rtol=0, atol=1e-11)
        np.testing.assert_allclose(found.cov()[i], cov, rtol=0, atol=1e-11)


def test_what_was_lost_says_nothing(made: tuple[Belief, Array, Array, Array]) -> None:
    belief, rows, noise, value = made
    lost = np.array([[False, True], [True, True], [False, False]])
    found = belief.seen(rows, noise, np.where(lost, np.nan, value), lost)
    for i in range(3):
        kept = ~lost[i]
        mean, cov = dense(trial(belief, i), rows[kept], noise[kept], value[i][kept])
        np.testing.assert_allclose(found.mean[i], mean, rtol=0, atol=1e-11)
        np.testing.assert_allclose(found.cov()[i], cov, rtol=0, atol=1e-11)


def test_an_exact_observation_is_believed(made: tuple[Belief, Array, Array, Array]) -> None:
    belief, rows, _, value = made
    found = belief.seen(rows, np.zeros((D, D)), value)
    np.testing.assert_allclose(found.mean @ rows.T, value, rtol=0, atol=1e-12)
    assert np.abs(rows @ found.root).max() < 1e-13


def test_a_step_keeps_and_adds(made: tuple[Belief, Array, Array, Array], rng: np.random.Generator) -> None:
    belief, *_ = made
    keeps, adds = rng.random((3, N)), rng.normal(size=(N, 3))
    found = belief.moved(keeps, adds)
    np.testing.assert_allclose(found.mean, keeps * belief.mean)
    expected = keeps[:, :, None] * belief.cov() * keeps[:, None, :] + adds @ adds.T
    np.testing.assert_allclose(found.cov(), expected, rtol=0, atol=1e-11)


def library(name: str) -> Any:
    return np if name == "numpy" else pytest.importorskip("jax.numpy")


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_a_triangle_has_the_same_square(name: str, rng: np.random.Generator) -> None:
    """Also where a row is zero, or hangs on others."""
    xp, wide = library(name), rng.normal(size=(4, N, WIDE))
    wide[1, 0] = 0
    wide[2, 3] = wide[2, 1] - 2 * wide[2, 2]
    found = np.asarray(triangle(xp.asarray(wide)))
    np.testing.assert_allclose(
        found @ found.mT, wide @ wide.mT, rtol=0, atol=1e-12 if name == "numpy" else 1e-4
    )
    assert not np.triu(found, 1).any()


def test_forward_substitution_solves(rng: np.random.Generator) -> None:
    lower, value = np.tril(rng.normal(size=(3, N, N))) + 3 * np.eye(N), rng.normal(size=(3, N))
    np.testing.assert_allclose(np.matvec(lower, forward(lower, value)), value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ratio", [1e-14, 1e14])
def test_roots_stay_roots_whatever_the_scales(ratio: float, rng: np.random.Generator) -> None:
    """Ten thousand observations of one number, far more and far less precise than what is believed."""
    belief, row = Belief(np.zeros(2), np.diag([1.0, 1e-3])), np.array([[1.0, 1.0]])
    noise = np.array([[np.sqrt(ratio)]])
    for _ in range(10_000):
        belief = belief.seen(row, noise, rng.normal(size=1))
        belief = belief.moved(np.ones(2), 1e-9 * np.eye(2))
    values = np.linalg.svd(belief.root, compute_uv=False)
    assert np.isfinite(values).all()
    assert values.min() > 0


def test_the_density_of_a_value_is_that_of_its_gaussian(made: tuple[Belief, Array, Array, Array]) -> None:
    belief, rows, noise, value = made
    seen = Belief((rows @ belief.mean[..., None])[..., 0], rows @ belief.root)
    lost = np.array([[False, True], [True, True], [False, False]])
    whole, found = seen.density(noise, value), seen.density(noise, np.where(lost, np.nan, value), lost)
    assert found[1] == 0
    for i in range(3):
        cov = seen.root[i] @ seen.root[i].T + noise @ noise.T
        for kept, density in ((np.full(D, True), whole[i]), (~lost[i], found[i])):
            if kept.any():
                law = multivariate_normal(seen.mean[i][kept], cov[np.ix_(kept, kept)])
                np.testing.assert_allclose(density, law.logpdf(value[i][kept]), rtol=1e-11)
