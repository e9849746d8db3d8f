"""Langevin Monte Carlo: a step by hand, and draws against sums over grids."""

from typing import Any

import numpy as np
import pytest

from tests.agents.learn.data import hessian_by_differences, make_data, remember, same_moments, walk
from tests.problems import (
    inverse,
)
from unfog.agents.learn import LMC
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import LogisticProblem

SMALL: dict[str, Any] = {"rounds": 20, "trials": 3}


def test_a_langevin_step_by_hand(rng: np.random.Generator) -> None:
    for decay in [0.0, 0.5, 1.0]:
        for marginal in [False, True]:
            check_a_langevin_step_by_hand(marginal, decay, rng)


def check_a_langevin_step_by_hand(marginal: bool, decay: float, rng: np.random.Generator) -> None:
    data, learner = make_data(3, 7), LMC(temperature=0.3, rate=0.2, decay=decay, marginal=marginal)
    parameters, state = remember(learner, data)
    theta, normals = rng.normal(size=3), rng.standard_normal(3)
    found = learner.step(parameters, state._replace(theta=theta), normals).theta
    rate = 0.2 / 8**decay  # seven rounds are over: this is round eight
    moves = 1e-6 * np.eye(3)
    slope = [(data.energy(theta + e, marginal) - data.energy(theta - e, marginal)) / 2e-6 for e in moves]
    right = theta - rate * np.array(slope) + np.sqrt(2 * rate * 0.3) * normals
    np.testing.assert_allclose(found, right, rtol=1e-7, atol=1e-8)


def test_the_first_langevin_step_is_that_of_round_one() -> None:
    known, learner = make_data(3, 1).known, LMC(temperature=1.0)
    for room in (None, 5):
        state = learner.start(known, room)
        assert np.array_equal(state.theta, known.prior_mean)
        found = learner.step(learner.setup(known), state, np.ones(3)).theta
        # At the prior mean the prior does not pull: noise alone, of variance 2 * 0.2 / 1.
        np.testing.assert_allclose(found - known.prior_mean, np.sqrt(0.4), rtol=1e-12)


def test_the_defaults_are_the_papers() -> None:
    learner = LMC()
    assert (learner.steps, learner.rate, learner.decay, learner.temperature) == (50, 0.2, 1.0, 0.001)
    assert not learner.averages_context
    assert learner.normals(make_data(3, 1).known, 99) == 3


@pytest.mark.slow
def test_langevin_draws_at_temperature_one_are_the_posteriors(rng: np.random.Generator) -> None:
    data, rate, chains = make_data(2, 6), 0.01, 20_000
    learner = LMC(temperature=1.0, rate=rate, decay=0.0)
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.tile(data.known.prior_mean, (chains, 1)))
    # The slowest mode relaxes at the prior's rate, 2/3: after 800 steps half a percent of the start is left.
    found = walk(learner, parameters, state, 800, lambda: rng.standard_normal((chains, 2))).theta
    mean, cov = data.moments(400)
    # Finite steps widen a Gaussian N(m, H^-1) to (H - rate H^2 / 2)^-1, to first order H^-1 + rate / 2, and
    # beyond it by (rate |H|)^2 / 4 < 0.001; right draws fail with probability 4e-4.
    same_moments(found, mean, cov + rate / 2 * np.eye(2), bias=0.01)
    assert np.abs(np.cov(found.T) / cov - 1).max() < 0.1


def test_a_lower_temperature_narrows_the_draws(rng: np.random.Generator) -> None:
    data, chains = make_data(2, 6), 5000
    learner = LMC(temperature=0.01, rate=0.01, decay=0.0)
    parameters, state = remember(learner, data)
    state = state._replace(theta=np.tile(data.mode(), (chains, 1)))
    found = walk(learner, parameters, state, 600, lambda: rng.standard_normal((chains, 2))).theta
    # So narrow a posterior is Gaussian: a hundredth of the inverse Hessian; 5 standard errors are 10 %.
    right = 0.01 * inverse(hessian_by_differences(data, data.mode()))
    np.testing.assert_allclose(np.cov(found.T), right, atol=0.1 * np.abs(right).max())


def test_at_temperature_zero_it_goes_to_the_mode() -> None:
    for marginal in [False, True]:
        check_at_temperature_zero_it_goes_to_the_mode(marginal)


def check_at_temperature_zero_it_goes_to_the_mode(marginal: bool) -> None:
    data, learner = make_data(3, 12), LMC(temperature=0, rate=0.05, decay=0, marginal=marginal)
    parameters, state = remember(learner, data)
    found = walk(learner, parameters, state, 3000, lambda: np.ones(3)).theta
    np.testing.assert_allclose(found, data.mode(marginal), atol=1e-5)


def test_a_step_too_long_for_the_prior_is_refused_before_the_run() -> None:
    narrow = LogisticProblem(dim=2, actions=5, prior_cov=0.05)
    with pytest.raises(InputError, match=r"^alg1\.rate: 0\.2 is too long a step for a prior precision of 20"):
        play(narrow, ["alg1"], **SMALL)
    assert np.isfinite(play(narrow, ["alg1-lmc:rate=0.09"], **SMALL).values["regret"]).all()
