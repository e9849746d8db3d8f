"""Agrawal and Goyal's Thompson sampling against its formulas, written out for one trial."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.base import Optimism
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import LogisticProblem

AGENT: Any = BASELINES["ag-ts"].agent


class Plain:
    """B as it stands in the paper, and beside it the root of B^-1 that turns normals into the same draw."""

    def __init__(self, size: int, noise: float, delta: float = 0.05) -> None:
        self.b, self.f, self.root = np.eye(size), np.zeros(size), np.eye(size)
        self.noise, self.delta, self.t = noise, delta, 1

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        inverse = np.linalg.inv(self.b)
        np.testing.assert_allclose(self.root @ self.root.T, inverse, rtol=1e-7, atol=1e-10)
        v = self.noise * np.sqrt(9 * len(self.f) * np.log(self.t / self.delta))
        theta = inverse @ self.f + v * self.root @ normals
        return tied([x @ theta for x in rows])

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        x = rows[arm]
        half = self.root.T @ x
        total = 1 + half @ half
        self.root = self.root - np.outer(self.root @ half, half) / (total + np.sqrt(total))
        self.b, self.f, self.t = self.b + np.outer(x, x), self.f + reward * x, self.t + 1


def test_it_chooses_as_the_plain_loop() -> None:
    compare(AGENT, world(), lambda _: Plain(9, np.sqrt(0.5)))


def test_the_first_round_is_round_one() -> None:
    """How wide draws are: arms say little of it, as they hang on directions."""
    learner, known = AGENT.learner, world().knowledge()
    parameters, state = learner.setup(known), learner.start(known, None)
    for t in (1, 2, 3):
        spread = learner.belief(parameters, state).root @ learner.belief(parameters, state).root.mT
        v2 = 0.5 * 9 * 9 * np.log(t / 0.05)
        np.testing.assert_allclose(spread, v2 * np.diag([1 / (1 + 4 * (t - 1))] + [1.0] * 8), rtol=1e-12)
        state = learner.added(state, np.array([2.0] + [0.0] * 8), np.asarray(1.0))


def test_arms_with_features_of_their_own() -> None:
    compare(AGENT, world(features="per_arm"), lambda _: Plain(40, np.sqrt(0.5)), rounds=120)


def test_rewards_of_zero_or_one() -> None:
    problem = LogisticProblem(dim=3, actions=10, context_mean=[0.8, -0.5, 0.3], prior_mean=0.1)
    compare(AGENT.for_rewards("bernoulli"), problem, lambda _: Plain(9, 0.5))


def test_without_inflation_it_is_ridge_regression_alone() -> None:
    greedy = [
        replace(BASELINES["linucb"].agent, name="greedy", chooser=Optimism(alpha=0.0)),
        replace(AGENT, name="drawn", learner=replace(AGENT.learner, scale=0.0)),
    ]
    found = play(world(), greedy, rounds=60, trials=4).values["regret"]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_settings_are_checked() -> None:
    for wrong in ({"delta": 0.0}, {"scale": -1.0}, {"ridge": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            replace(AGENT.learner, **wrong)
