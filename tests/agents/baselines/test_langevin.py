"""LMC-TS against a plain loop over all past rounds, and against the Gaussian that it samples."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.chains import Walk, coin_world, remembered, walked
from tests.agents.baselines.plain import compare, world
from tests.problems import covariance_error, inverse, random_knowledge
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.langevin import Langevin
from unfog.validation import InputError

AGENT = BASELINES["lmcts"].agent


def with_settings(**settings: Any) -> Any:
    return replace(AGENT, learner=Langevin(**settings))


def test_it_chooses_as_the_plain_loop() -> None:
    compare(AGENT, world(), lambda trial: Walk(trial, 9), rounds=110, trials=(0, 1))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.01, "cooling": 0.0, "horizon": 50},
        {"temperature": 0.01, "hold": 7, "rate": 0.003, "ridge": 0.2, "steps": 5},
    ],
    ids=["hot", "held"],
)
def test_its_settings_are_the_plain_loops(settings: dict[str, Any]) -> None:
    compare(with_settings(**settings), world(), lambda trial: Walk(trial, 9, **settings), rounds=40)


def test_arms_with_features_of_their_own() -> None:
    told: dict[str, Any] = {"temperature": 0.1, "cooling": 0.0, "steps": 20}
    agent, problem = with_settings(**told), world(features="per_arm")
    compare(agent, problem, lambda trial: Walk(trial, 40, **told), rounds=60)


def test_rewards_of_zero_or_one() -> None:
    plain = compare(
        AGENT.for_rewards("bernoulli"), coin_world(), lambda trial: Walk(trial, 9, binary=True), rounds=60
    )
    assert len(plain) == 60


@pytest.mark.slow
def test_its_draws_are_those_of_the_gaussian(rng: np.random.Generator) -> None:
    """exp(-beta U) with 1 / beta = 2 sigma^2 is the posterior of theta ~ N(0, sigma^2 / l)."""
    m, n, chains, variance, ridge = 3, 8, 20_000, 0.7, 0.4
    rows, rewards = rng.normal(0.4, 1.2, (n, m)), rng.normal(0.5, 1.0, n)
    power = np.sum(rows**2)
    heat = 2 * variance / (m * np.log(1000))
    rate = 0.01 * power / 5
    learner = Langevin(temperature=heat, cooling=0.0, ridge=ridge, rate=rate)
    state = remembered(learner, random_knowledge(1, dim=2, size=m), rows, rewards)
    state = state._replace(theta=np.zeros((chains, m)))
    found = walked(learner, state, 1500, lambda: rng.standard_normal((chains, m))).theta
    precision = (rows.T @ rows + ridge * np.eye(m)) / variance
    right = inverse(precision)
    mean = right @ rows.T @ rewards / variance
    # A Langevin chain with steps e on a Gaussian has (P - e P^2 / 2)^-1, exactly; e is that of U / heat.
    step = rate / power * 2 * variance
    wide = inverse(precision - step / 2 * precision @ precision)
    # At four standard errors right draws fail with a probability of 6e-4.
    assert np.all(np.abs(found.mean(0) - mean) < 4 * np.sqrt(np.diag(wide) / chains) + 1e-3)
    assert np.all(np.abs(np.cov(found.T) - wide) < 4 * covariance_error(wide, chains))
    assert np.abs(wide / right - 1).max() < 0.1


def test_without_heat_it_ends_at_the_ridge_regression(rng: np.random.Generator) -> None:
    rows, rewards = rng.normal(0.4, 1.2, (8, 3)), rng.normal(0.5, 1.0, 8)
    learner = Langevin(temperature=0.0, rate=0.3)
    state = remembered(learner, random_knowledge(1, dim=2, size=3), rows, rewards)
    found = walked(learner, state, 3000, lambda: rng.standard_normal(3)).theta
    right = np.linalg.solve(rows.T @ rows + np.eye(3), rows.T @ rewards)
    np.testing.assert_allclose(found, right, rtol=1e-9)


@pytest.mark.parametrize("room", [None, 12])
def test_a_chain_on_coins_ends_where_the_slope_is_zero(room: int | None, rng: np.random.Generator) -> None:
    rows = rng.normal(0.4, 1.2, (8, 3))
    rewards = (rng.random(8) < 0.6).astype(float)
    known = random_knowledge(1, dim=2, size=3)._replace(reward_var=None)
    learner = Langevin(temperature=0.0, rate=0.3, zero_one=True)
    state = remembered(learner, known, rows, rewards, room)
    theta = walked(learner, state, 3000, lambda: rng.standard_normal(3)).theta
    slope = (1 / (1 + np.exp(-rows @ theta)) - rewards) @ rows + 2 * theta
    np.testing.assert_allclose(slope, 0, atol=1e-9)


def test_steps_are_taken_as_often_as_there_were_rounds(rng: np.random.Generator) -> None:
    known, learner = random_knowledge(1, dim=2, size=3), Langevin(steps=4)
    for rounds, moves in ((0, 1), (1, 1), (3, 3), (4, 4), (9, 4)):
        state = remembered(learner, known, rng.normal(size=(rounds, 3)), rng.normal(size=rounds))
        places = [state.theta]
        for _ in range(6):
            state = learner.step((), state, rng.standard_normal(3))
            places.append(state.theta)
        assert sum(not np.array_equal(a, b) for a, b in pairwise(places)) == moves


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_it_does_not_run_off_however_long_features_are(size: float, rng: np.random.Generator) -> None:
    rows = size * rng.normal(1.0, 1.0, (5, 3))
    state = remembered(Langevin(), random_knowledge(1, dim=2, size=3), rows, rows @ np.ones(3))
    found = walked(Langevin(), state, 500, lambda: rng.standard_normal(3)).theta
    assert np.abs(found).max() < 3


def test_short_features_do_not_make_its_steps_longer(rng: np.random.Generator) -> None:
    """The first step's length is divided by one where sum |x|^2 is less."""
    rows, rewards, theta = rng.normal(0, 0.1, (4, 3)), rng.normal(size=4), rng.normal(size=3)
    assert np.sum(rows**2) < 0.5
    learner = Langevin(temperature=0.0, rate=0.2)
    state = remembered(learner, random_knowledge(1, dim=2, size=3), rows, rewards)
    found = learner.step((), state._replace(theta=theta), np.zeros(3)).theta
    slope = 2 * (rows @ theta - rewards) @ rows + 2 * theta
    np.testing.assert_allclose(found, theta - 0.2 * slope, rtol=1e-12)


def test_bad_settings_are_refused() -> None:
    for setting in ({"steps": 0}, {"rate": 0.0}, {"temperature": -1.0}, {"hold": 0}, {"horizon": 0}):
        with pytest.raises(InputError, match=next(iter(setting))):
            Langevin(**setting)
