"""Laplace's approximation against SciPy's minimiser and finite differences."""

import numpy as np
from scipy.special import expit

from tests.agents.learn.data import hessian_by_differences, make_data, remember, walk
from tests.problems import (
    evidence,
    inverse,
    spd,
)
from unfog.agents.learn import Laplace
from unfog.agents.learn.logistic import energy, gradient
from unfog.maths import gaussian


def test_laplace_is_the_mode_and_the_curvature_there() -> None:
    for room in [None, 25]:
        for seed in [1, 2, 3]:
            check_laplace_is_the_mode_and_the_curvature_there(seed, room)


def check_laplace_is_the_mode_and_the_curvature_there(seed: int, room: int | None) -> None:
    data, learner = make_data(3, 15, seed, scale=2.0), Laplace()
    parameters, state = remember(learner, data, room)
    state = walk(learner, parameters, state, 20, lambda: np.empty(0))
    mode = data.mode()
    belief = learner.belief(parameters, state)
    np.testing.assert_allclose(belief.mean, mode, atol=1e-6)
    right = inverse(hessian_by_differences(data, mode))
    np.testing.assert_allclose(gaussian.covariance(belief), right, rtol=1e-4, atol=1e-6)


def test_with_contexts_averaged_out_it_is_at_that_mode() -> None:
    data, learner = make_data(3, 15, scale=2.0), Laplace(marginal=True)
    parameters, state = remember(learner, data)
    state = walk(learner, parameters, state, 40, lambda: np.empty(0))
    np.testing.assert_allclose(state.theta, data.mode(marginal=True), atol=1e-5)
    assert np.linalg.norm(state.theta - data.mode()) > 0.05


def test_before_the_first_reward_laplace_is_the_prior() -> None:
    known, learner = make_data(3, 1).known, Laplace()
    for room in (None, 6):
        parameters, state = learner.setup(known), learner.start(known, room)
        belief = learner.belief(parameters, learner.step(parameters, state, np.empty(0)))
        np.testing.assert_allclose(belief.mean, known.prior_mean, rtol=1e-12)
        np.testing.assert_allclose(gaussian.covariance(belief), known.prior_cov, rtol=1e-10, atol=1e-12)


def test_three_steps_a_round_keep_up_with_the_mode() -> None:
    data, learner = make_data(3, 60), Laplace()
    parameters, state = learner.setup(data.known), learner.start(data.known, None)
    for n, (row, reward) in enumerate(zip(data.rows, data.rewards, strict=True), 1):
        state = walk(learner, parameters, state, learner.steps, lambda: np.empty(0))
        state = learner.update(parameters, state, evidence(row), reward)
        if n % 10 == 0:
            settled = walk(learner, parameters, state, learner.steps, lambda: np.empty(0))
            seen = data._replace(rows=data.rows[:n], rewards=data.rewards[:n])
            np.testing.assert_allclose(settled.theta, seen.mode(), atol=1e-4)


def test_from_a_saturated_start_the_mode_is_found() -> None:
    """200 problems of 30 rounds with a wide prior, from where sigmoids are 0 or 1 and often the wrong one."""
    for away in [3.0, 50.0]:
        for scale in [1.0, 5.0, 30.0]:
            check_from_a_saturated_start_the_mode_is_found(scale, away)


def check_from_a_saturated_start_the_mode_is_found(scale: float, away: float) -> None:
    rng, cases = np.random.default_rng(int(scale + away)), 200
    known = make_data(4, 1).known._replace(prior_cov=spd(rng, 4, 0.5, 10.0))
    learner, truth = Laplace(), rng.normal(size=(cases, 4))
    parameters, state = learner.setup(known), learner.start(known, None)
    for _ in range(30):
        rows = rng.normal(0.3, scale, (cases, 4))
        rewards = (rng.random(cases) < expit(np.vecdot(rows, truth))).astype(np.float64)
        state = learner.update(parameters, state, evidence(rows), rewards)
    state = state._replace(theta=known.prior_mean + away * rng.normal(size=(cases, 4)))
    state = walk(learner, parameters, state, 60, lambda: np.empty((cases, 0)))
    slopes = np.abs(gradient(parameters, state.past, state.theta)).max(-1)
    assert np.count_nonzero(slopes > 1e-5) == 0


def test_a_step_never_climbs() -> None:
    data, learner = make_data(3, 20, scale=3.0), Laplace()
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.random.default_rng(0).normal(0, 4, (500, 3)))
    heights = [energy(parameters, state.past, state.theta)]
    for _ in range(15):
        state = learner.step(parameters, state, np.empty((500, 0)))
        heights.append(energy(parameters, state.past, state.theta))
    assert np.diff(heights, axis=0).max() < 1e-9
