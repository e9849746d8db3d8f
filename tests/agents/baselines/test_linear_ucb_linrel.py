"""LinRel against its formulas, written out for one trial."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.baselines import BASELINES
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import LogisticProblem

AGENT: Any = BASELINES["linrel"].agent


class Plain:
    """All past features and rewards, and the weights a of every reward as in the paper."""

    def __init__(self, arms: int = 10, horizon: int = 1000, delta: float = 0.05, scale: float = 1.0) -> None:
        self.seen, self.paid = list[Array](), list[float]()
        self.few, self.many, self.scale = 0, 0, scale
        self.factor = np.sqrt(np.log(2 * horizon * arms / delta))

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        z = np.array(self.seen).reshape(-1, rows.shape[1]).T
        values, vectors = np.linalg.eigh(z @ z.T)
        kept = [i for i, value in enumerate(values) if value >= 1]
        self.few, self.many = self.few + (len(kept) < len(values)), self.many + bool(kept)
        bounds = []
        for x in rows:
            weights, rest = np.zeros(z.shape[1]), x
            for i in kept:
                along = vectors[:, i] @ x
                weights = weights + along / values[i] * (vectors[:, i] @ z)
                rest = rest - along * vectors[:, i]
            width = np.linalg.norm(weights) * self.factor + np.linalg.norm(rest)
            bounds.append(np.array(self.paid) @ weights + self.scale * width)
        return tied(bounds)  # arms of which nothing was seen are equally good

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.seen.append(rows[arm])
        self.paid.append(reward)


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_it_chooses_as_the_plain_loop(scale: float) -> None:
    plain = [Plain(scale=scale) for _ in range(3)]
    agent = replace(AGENT, chooser=replace(AGENT.chooser, scale=scale))
    compare(agent, world(), lambda trial: plain[trial])
    assert min(one.few for one in plain) > 3
    assert min(one.many for one in plain) > 30


def test_arms_with_features_of_their_own() -> None:
    compare(AGENT, world(features="per_arm"), lambda _: Plain(), rounds=120)


def test_rewards_of_zero_or_one() -> None:
    problem = LogisticProblem(dim=3, actions=10, context_mean=[0.8, -0.5, 0.3], prior_mean=0.1)
    compare(AGENT.for_rewards("bernoulli"), problem, lambda _: Plain())


def test_without_noise_least_squares_know_theta() -> None:
    """Where all directions were seen and nothing is noisy the best arm is known, and widths alone mislead."""
    sure = replace(AGENT, name="sure", chooser=replace(AGENT.chooser, scale=1e-9))
    laws: dict[str, Any] = {"context_mean": 0.3, "context_cov": 1.0, "noise_cov": 1e-12, "bias_cov": 1e-12}
    problem = world(dim=20, features="own", reward_var=1e-12, **laws)
    regret = play(problem, [sure], rounds=120, trials=4, points=120).values["regret_true_context"][0]
    np.testing.assert_allclose(regret[:, -1], regret[:, 59], rtol=1e-6)
    assert (regret[:, 59] > 0.1).all()


def test_settings_are_checked() -> None:
    for wrong in ({"delta": 0.0}, {"scale": -1.0}, {"horizon": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            replace(AGENT.chooser, **wrong)
