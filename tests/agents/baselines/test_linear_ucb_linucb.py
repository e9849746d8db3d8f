"""LinUCB against its formulas, written out for one trial."""

import numpy as np

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.baselines import BASELINES
from unfog.maths.arrays import Array
from unfog.worlds.problem import Emission


class Plain:
    """A and b as they stand in the paper."""

    def __init__(self, size: int, alpha: float) -> None:
        self.a, self.b, self.alpha = np.eye(size), np.zeros(size), alpha

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        inverse = np.linalg.inv(self.a)
        theta = inverse @ self.b
        bounds = [x @ theta + self.alpha * np.sqrt(x @ inverse @ x) for x in rows]
        return tied(bounds)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.a = self.a + np.outer(rows[arm], rows[arm])
        self.b = self.b + reward * rows[arm]


def test_it_chooses_as_the_plain_loop() -> None:
    compare(BASELINES["linucb"].agent, world(), lambda _: Plain(9, 1 + np.sqrt(np.log(40) / 2)))


def test_arms_with_features_of_their_own() -> None:
    problem = world(features="per_arm")
    compare(BASELINES["linucb"].agent, problem, lambda _: Plain(40, 1 + np.sqrt(np.log(40) / 2)), rounds=120)
