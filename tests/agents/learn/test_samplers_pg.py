"""Polya-Gamma Gibbs sampling: draws against sums over grids, sweeps against hand sums."""

import numpy as np
import pytest

from tests.agents.learn.data import make_data, remember, same_moments, walk
from tests.problems import (
    inverse,
)
from unfog.agents.learn import PG
from unfog.maths import logistic
from unfog.maths.arrays import Array


@pytest.mark.slow
@pytest.mark.parametrize(("size", "n", "points"), [(2, 12, 300), (3, 8, 110)])
def test_gibbs_draws_are_the_posteriors(size: int, n: int, points: int, rng: np.random.Generator) -> None:
    data, learner, chains = make_data(size, n, scale=1.6), PG(), 20_000
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.tile(data.known.prior_mean, (chains, 1)))
    width = learner.normals(data.known, n)
    found = walk(learner, parameters, state, 25, lambda: rng.standard_normal((chains, width))).theta
    # 5 and 9 two-sided tests at 4 standard errors: right draws fail with probability 9e-4.
    same_moments(found, *data.moments(points))


def test_the_grid_is_fine_and_wide_enough() -> None:
    data = make_data(3, 8, scale=1.6)
    for coarse, fine in zip(data.moments(60), data.moments(110), strict=True):
        np.testing.assert_allclose(coarse, fine, atol=1e-6)


def test_without_data_a_sweep_draws_from_the_prior_exactly() -> None:
    for room in [None, 4]:
        check_without_data_a_sweep_draws_from_the_prior_exactly(room)


def check_without_data_a_sweep_draws_from_the_prior_exactly(room: int | None) -> None:
    known, learner = make_data(3, 1).known, PG()
    parameters, state = learner.setup(known), learner.start(known, room)
    width = learner.normals(known, room or 0)
    centre = learner.step(parameters, state, np.zeros(width)).theta
    np.testing.assert_allclose(centre, known.prior_mean, rtol=1e-12)
    # theta is linear in its three normals: what multiplies them must be a root of the covariance.
    units = np.concatenate([np.eye(3), np.zeros((3, width - 3))], 1)
    root = np.stack([learner.step(parameters, state, unit).theta - centre for unit in units], 1)
    np.testing.assert_allclose(root @ root.T, known.prior_cov, rtol=1e-11, atol=1e-12)


def test_a_sweep_is_gaussian_given_its_latent_variables(rng: np.random.Generator) -> None:
    data, learner = make_data(3, 6), PG()
    parameters, state = remember(learner, data)
    theta, latent = rng.normal(size=3), rng.standard_normal((6, logistic.normals()))
    omega = np.array([logistic.draw(x @ theta, z) for x, z in zip(data.rows, latent, strict=True)])
    prior = inverse(data.known.prior_cov)
    cov = inverse(prior + data.rows.T @ np.diag(omega) @ data.rows)
    mean = cov @ (prior @ data.known.prior_mean + data.rows.T @ (data.rewards - 0.5))

    def draw(normals: Array) -> Array:
        given = np.concatenate([normals, latent.ravel()])
        return learner.step(parameters, state._replace(theta=theta), given).theta

    centre = draw(np.zeros(3))
    root = np.stack([draw(unit) - centre for unit in np.eye(3)], 1)
    np.testing.assert_allclose(centre, mean, rtol=1e-10)
    np.testing.assert_allclose(root @ root.T, cov, rtol=1e-10, atol=1e-12)


def test_sweeps_are_steps_and_take_normals_for_every_round() -> None:
    learner, known = PG(sweeps=7), make_data(3, 1).known
    assert (PG().steps, learner.steps) == (5, 7)
    assert [learner.normals(known, seen) for seen in (0, 1, 10)] == [3, 14, 113]
