"""OFUL against its formulas, written out for one trial."""

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

OFUL = BASELINES["oful"].agent


class Plain:
    """V and its determinant as they stand in the paper, with l = 1."""

    def __init__(self, size: int, noise: float, norm: float, delta: float = 0.05) -> None:
        self.v, self.b = np.eye(size), np.zeros(size)
        self.noise, self.norm, self.delta = noise, norm, delta

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        inverse = np.linalg.inv(self.v)
        root = np.sqrt(np.linalg.det(self.v))
        beta = self.noise * np.sqrt(2 * np.log(root / self.delta)) + self.norm
        return tied([x @ inverse @ self.b + beta * np.sqrt(x @ inverse @ x) for x in rows])

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.v = self.v + np.outer(rows[arm], rows[arm])
        self.b = self.b + reward * rows[arm]


def norm(size: int) -> float:
    """That of theta ~ N(0.1, 0.3 I), in the mean of its square."""
    return float(np.sqrt(size * (0.1**2 + 0.3)))


def test_it_chooses_as_the_plain_loop() -> None:
    compare(OFUL, world(), lambda _: Plain(9, np.sqrt(0.5), norm(9)))


def test_arms_with_features_of_their_own() -> None:
    compare(OFUL, world(features="per_arm"), lambda _: Plain(40, np.sqrt(0.5), norm(40)), rounds=120)


def test_rewards_of_zero_or_one_have_the_tails_of_a_variance_of_a_fourth() -> None:
    told: dict[str, Any] = {"context_mean": [0.8, -0.5, 0.3], "prior_mean": 0.1, "prior_cov": 0.3}
    problem = LogisticProblem(dim=3, actions=10, **told)
    compare(OFUL.for_rewards("bernoulli"), problem, lambda _: Plain(9, 0.5, norm(9)))


def test_without_a_width_it_is_linucb_without_one() -> None:
    plain = [
        replace(BASELINES[name].agent, name=f"plain {name}", chooser=Optimism(alpha=0.0))
        for name in ("linucb", "oful")
    ]
    found = play(world(), plain, rounds=60, trials=4).values["regret"]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_with_hardly_a_doubt_it_finds_the_best_arm() -> None:
    """No noise in contexts or rewards: the ellipsoid shrinks to theta."""
    problem = world(noise_cov=1e-12, bias_cov=1e-12, reward_var=1e-8)
    regret = play(problem, ["oful"], rounds=300, trials=4, points=300).values["regret_true_context"][0]
    assert (regret[:, -1] < 1.1 * regret[:, 149]).all()


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="delta"):
        replace(OFUL.learner, delta=1.0)  # type: ignore[type-var]
