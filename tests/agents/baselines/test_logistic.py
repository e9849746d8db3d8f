"""Laplace Thompson sampling against a general minimiser of each posterior, and its exact limits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from tests.agents.baselines.chains import coin_world
from tests.agents.baselines.plain import compare, tied, world
from tests.problems import evidence, random_knowledge
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.logistic import Sequential
from unfog.agents.learn import Conjugate
from unfog.maths.arrays import Array
from unfog.maths.gaussian import as_matrix
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Problem

AGENT = BASELINES["laplacets"].agent


class Plain:
    """Algorithm 3, with a minimiser that knows nothing of the line."""

    def __init__(self, problem: Problem, *, full: bool = False, alpha: float = 1.0) -> None:
        known = problem.knowledge()
        self.w, q = known.prior_mean, np.linalg.inv(as_matrix(known.prior_cov))
        self.q = q if full else np.diag(np.diag(q))
        self.full, self.alpha, self.variance = full, alpha, known.reward_var

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        return tied(rows @ (self.w + self.alpha * np.diag(self.q) ** -0.5 * normals))

    def loss(self, w: Array, x: Array, reward: float) -> float:
        away, z = w - self.w, x @ w
        misfit = np.logaddexp(0, z) - reward * z
        if self.variance is not None:
            misfit = (z - reward) ** 2 / (2 * float(self.variance))
        return float(away @ self.q @ away / 2 + misfit)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x = rows[arm]

        def slope(w: Array) -> Array:
            z = x @ w
            miss = expit(z) - reward if self.variance is None else (z - reward) / float(self.variance)
            found: Array = self.q @ (w - self.w) + miss * x
            return found

        found = minimize(lambda w: self.loss(w, x, reward), self.w, jac=slope, method="BFGS", tol=1e-10)
        w, chance = np.asarray(found.x), expit(x @ found.x)
        curvature = chance * (1 - chance) if self.variance is None else 1 / float(self.variance)
        new = self.q + curvature * np.outer(x, x)
        self.w, self.q = w, new if self.full else np.diag(np.diag(new))


@pytest.mark.parametrize("make", [world, coin_world], ids=["gaussian", "coins"])
@pytest.mark.parametrize("features", ["quadratic", "per_arm"])
def test_it_chooses_as_the_plain_loop(make: Any, features: str) -> None:
    problem = make(features=features)
    compare(AGENT.for_rewards(problem.rewards.kind), problem, lambda _: Plain(problem), rounds=30)


def test_draws_are_scaled() -> None:
    agent = replace(AGENT, learner=Sequential(alpha=0.25))
    compare(agent, world(), lambda _: Plain(world(), alpha=0.25), rounds=30)


@pytest.mark.parametrize("make", [world, coin_world], ids=["gaussian", "coins"])
def test_all_of_the_hessian(make: Any, rng: np.random.Generator) -> None:
    """A correlated prior, and moments after a few rounds against the minimiser's."""
    problem = make()
    known = random_knowledge(4, dim=3, size=4)._replace(reward_var=problem.knowledge().reward_var)
    learner = Sequential(full=True, zero_one=make is coin_world)
    parameters, state = learner.setup(known), learner.start(known, None)
    plain: Any = Plain(problem, full=True)
    plain.w, plain.q = known.prior_mean, np.linalg.inv(known.prior_cov)
    for _ in range(12):
        row, reward = rng.normal(0.4, 1.5, 4), float(rng.random() < 0.7)
        state = learner.update(parameters, state, evidence(row), np.asarray(reward))
        plain.learn(0, row[None], reward, None)
    belief = learner.belief(parameters, state)
    np.testing.assert_allclose(belief.centre, plain.w, atol=1e-5)
    np.testing.assert_allclose(np.linalg.inv(belief.root @ belief.root.T), plain.q, rtol=1e-4, atol=1e-4)


def test_with_all_of_it_gaussian_rewards_are_learnt_exactly() -> None:
    agents = [
        replace(AGENT, name="full", learner=Sequential(full=True)),
        replace(AGENT, name="exact", learner=Conjugate()),
        AGENT,
    ]
    for features in ("quadratic", "per_arm"):
        found = play(world(features=features), agents, rounds=60, trials=3).values["regret"]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
        assert np.abs(found[2] - found[1]).max() > 0.01


def test_a_reward_that_was_certain_teaches_nothing() -> None:
    known = random_knowledge(4, dim=3, size=4)._replace(reward_var=None, prior_mean=np.full(4, 200.0))
    for full in (False, True):
        learner = Sequential(full=full, zero_one=True)
        state = learner.start(known, None)
        after = learner.update(learner.setup(known), state, evidence(np.ones(4)), np.ones(()))
        np.testing.assert_allclose(after.mean, state.mean, rtol=1e-12)
        np.testing.assert_allclose(after.root, state.root, atol=1e-9)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="alpha"):
        Sequential(alpha=-1.0)
