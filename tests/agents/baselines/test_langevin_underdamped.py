"""Underdamped Langevin against a plain loop, the Gaussian that it samples, and LMC-TS as its limit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.chains import Walk, coin_world, remembered, walked
from tests.agents.baselines.plain import compare, world
from tests.problems import covariance_error, inverse, random_knowledge
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.langevin import Langevin, Underdamped
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError

AGENT = BASELINES["ulmcts"].agent


class Plain(Walk):
    """g and h as they stand in the equations."""

    def __init__(self, trial: int, size: int, *, friction: float = 0.63, **told: Any) -> None:
        super().__init__(trial, size, **{"temperature": 1e-3, "cooling": 0.0} | told)
        self.friction, self.p = friction, np.zeros(size)

    def step(self, normals: Array) -> None:
        h = np.sqrt(self.rate)
        g = self.friction / h
        heat = self.told["temperature"] * self.size * np.log(self.told["horizon"])
        self.p = (1 - g * h) * self.p - h * self.slope() + np.sqrt(2 * g * h * heat) * normals
        self.theta = self.theta + h * self.p


def test_it_chooses_as_the_plain_loop() -> None:
    compare(AGENT, world(), lambda trial: Plain(trial, 9), rounds=50, trials=(0, 1))


def test_rewards_of_zero_or_one_and_arms_of_their_own() -> None:
    told: dict[str, Any] = {"friction": 0.2, "temperature": 0.01, "steps": 20}
    learner = Underdamped(zero_one=True, **told)
    problem, agent = coin_world(features="per_arm"), replace(AGENT, learner=learner, binary_learner=None)
    compare(agent, problem, lambda trial: Plain(trial, 40, binary=True, **told), rounds=40)


@pytest.mark.parametrize("make", [world, coin_world], ids=["gaussian", "coins"])
def test_with_all_friction_it_is_lmcts(make: Any) -> None:
    problem = make()
    agent = AGENT.for_rewards(problem.rewards.kind)
    told: dict[str, Any] = {"temperature": 0.01, "steps": 20, "zero_one": make is coin_world}
    learners = [
        Underdamped(friction=1.0, **told),
        Langevin(cooling=0.0, **told),
        Underdamped(friction=0.5, **told),
    ]
    agents = [replace(agent, name=f"a{i}", learner=learner) for i, learner in enumerate(learners)]
    found = play(problem, agents, rounds=40, trials=3).values["regret"]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert np.abs(found[2] - found[1]).max() > 0.01


@pytest.mark.slow
def test_its_draws_are_those_of_the_gaussian(rng: np.random.Generator) -> None:
    """exp(-beta U) with 1 / beta = 2 sigma^2 is the posterior of theta ~ N(0, sigma^2 / l)."""
    m, n, chains, variance, ridge = 3, 8, 20_000, 0.7, 0.4
    rows, rewards = rng.normal(0.4, 1.2, (n, m)), rng.normal(0.5, 1.0, n)
    heat, rate = 2 * variance / (m * np.log(1000)), 0.01
    learner = Underdamped(temperature=heat, ridge=ridge, rate=rate, friction=0.05)
    state = remembered(learner, random_knowledge(1, dim=2, size=m), rows, rewards)
    state = state._replace(theta=np.zeros((chains, m)))
    found = walked(learner, state, 1200, lambda: rng.standard_normal((chains, m)))
    precision = (rows.T @ rows + ridge * np.eye(m)) / variance
    right = inverse(precision)
    mean = right @ rows.T @ rewards / variance
    # At four standard errors right draws fail with a probability of 6e-4; steps of this length widen them by
    # less than one hundredth.
    assert np.all(np.abs(found.theta.mean(0) - mean) < 4 * np.sqrt(np.diag(right) / chains) + 1e-3)
    gap = np.abs(np.cov(found.theta.T) - right)
    assert np.all(gap < 4 * covariance_error(right, chains) + 0.01 * np.sqrt(np.outer(*[np.diag(right)] * 2)))
    # A momentum of mass one has the variance 1 / beta, as long as it has the friction's noise.
    np.testing.assert_allclose(found.more.var(0), 2 * variance, rtol=0.08)


def test_without_heat_it_ends_at_the_ridge_regression(rng: np.random.Generator) -> None:
    rows, rewards = rng.normal(0.4, 1.2, (8, 3)), rng.normal(0.5, 1.0, 8)
    learner = Underdamped(temperature=0.0, rate=0.3, friction=0.3)
    state = remembered(learner, random_knowledge(1, dim=2, size=3), rows, rewards)
    found = walked(learner, state, 2000, lambda: rng.standard_normal(3)).theta
    right = np.linalg.solve(rows.T @ rows + np.eye(3), rows.T @ rewards)
    np.testing.assert_allclose(found, right, rtol=1e-9)


def test_bad_settings_are_refused() -> None:
    for setting in ({"friction": 0.0}, {"friction": 1.5}, {"rate": 0.0}):
        with pytest.raises(InputError, match=next(iter(setting))):
            Underdamped(**setting)  # type: ignore[arg-type]
