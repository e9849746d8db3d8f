"""Feel-good Langevin against a plain loop over all arms of all past rounds."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.chains import Walk, coin_world
from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.langevin import FeelGood, Langevin
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Emission

AGENT = BASELINES["feelgood"].agent
PUBLISHED: dict[str, Any] = {"temperature": 0.001, "steps": 25, "ridge": 0.01, "cooling": 0.0}


class Plain(Walk):
    """The feel-good term, round by round and arm by arm."""

    def __init__(self, trial: int, size: int, **told: Any) -> None:
        settings = {"optimism": 0.5, "cap": 1000.0, **PUBLISHED, **told}
        self.optimism, self.cap = settings.pop("optimism"), settings.pop("cap")
        super().__init__(trial, size, **settings)
        self.shown = list[Array]()

    def slope(self) -> Array:
        found = super().slope()
        for rows in self.shown:
            scores = [float(row @ self.theta) for row in rows]
            top = tied(scores)[0]
            if scores[top] < self.cap:
                found = found - self.optimism * rows[top]
        return found

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        super().learn(arm, rows, reward, seen)
        self.shown.append(rows)


def test_it_chooses_as_the_plain_loop() -> None:
    compare(AGENT, world(), lambda trial: Plain(trial, 9), rounds=35, trials=(0, 1))


def test_what_is_above_the_cap_does_not_count() -> None:
    told: dict[str, Any] = {"optimism": 3.0, "cap": 0.8, "temperature": 0.01, "steps": 10}
    agent = replace(AGENT, learner=FeelGood(**told))
    arms = compare(agent, world(), lambda trial: Plain(trial, 9, **told), rounds=30)
    free = replace(AGENT, learner=FeelGood(**told | {"cap": 1e3}))
    with pytest.raises(AssertionError, match="round"):
        compare(free, world(), lambda trial: Plain(trial, 9, **told), rounds=30)
    assert len(arms) == 30


def test_rewards_of_zero_or_one_and_arms_of_their_own() -> None:
    problem, agent = coin_world(features="per_arm"), AGENT.for_rewards("bernoulli")
    compare(agent, problem, lambda trial: Plain(trial, 40, binary=True), rounds=30)


@pytest.mark.parametrize("make", [world, coin_world], ids=["gaussian", "coins"])
def test_with_no_such_term_it_is_lmcts(make: Any) -> None:
    problem = make()
    kind = problem.rewards.kind
    agent = AGENT.for_rewards(kind)
    none: Any = replace(agent.learner, optimism=0.0)  # type: ignore[type-var]
    parent = Langevin(**{field.name: getattr(none, field.name) for field in fields(Langevin)})
    agents = [replace(agent, name="none", learner=none), replace(agent, name="parent", learner=parent)]
    found = play(problem, [*agents, agent], rounds=30, trials=3).values["regret"]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert np.abs(found[2] - found[1]).max() > 0.01


def test_bad_settings_are_refused() -> None:
    for setting in ({"optimism": -1.0}, {"cap": 0.0}, {"steps": 0}):
        with pytest.raises(InputError, match=next(iter(setting))):
            FeelGood(**setting)
