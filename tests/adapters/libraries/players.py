"""Each library round by round, as its documentation uses it: what its tests have in common.

A player is made of a function that puts something in front of a bandit, or does not. It remembers what it
decided. Contexts are rows of numbers here, and become what the library wants.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from unfog.maths.arrays import Array

ARMS = ["heat", "wait", "vent"]
NAMES = ["temperature", "rain", "wind"]

Front = Callable[..., Any]


def as_it_is(bandit: Any, **options: Any) -> Any:
    return bandit


class Mabwiser:
    def __init__(self, front: Front) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        mab = MAB(ARMS, LearningPolicy.LinTS(alpha=0.7), seed=3)
        mab.fit(ARMS, [0.0] * len(ARMS), np.zeros((len(ARMS), 1 + len(NAMES))))
        self.bandit = front(mab, as_is=[0])

    def decide(self, row: Array, **told: Any) -> str:
        return str(self.bandit.predict([[1.0, *row]], **_each(told)))

    def update(self, row: Array, arm: str, reward: float) -> None:
        self.bandit.partial_fit([arm], [reward], [[1.0, *row]])


class ContextualBandits:
    def __init__(self, front: Front) -> None:
        from contextualbandits.online import LinUCB

        self.bandit = front(LinUCB(ARMS, random_state=3))

    def decide(self, row: Array, **told: Any) -> str:
        return str(self.bandit.predict(row[None], **_each(told))[0])

    def update(self, row: Array, arm: str, reward: float) -> None:
        self.bandit.partial_fit(row[None], np.array([arm]), np.array([reward]))


class River:
    def __init__(self, front: Front) -> None:
        from river.bandit import LinUCBDisjoint

        self.bandit = front(LinUCBDisjoint(seed=3), as_is=["one"])

    def decide(self, row: Array, **told: Any) -> str:
        return str(self.bandit.pull(ARMS, self.context(row), **told))

    def update(self, row: Array, arm: str, reward: float) -> None:
        self.bandit.update(arm, self.context(row), reward)

    def context(self, row: Array) -> dict[str, float]:
        return {"one": 1.0} | dict(zip(NAMES, row.tolist(), strict=True))


class BayesianBandits:
    def __init__(self, front: Front) -> None:
        from bayesianbandits import Arm, ContextualAgent, NormalRegressor, ThompsonSampling

        arms = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=2.0)) for arm in ARMS]
        self.bandit = front(ContextualAgent(arms, ThompsonSampling(), random_seed=3), as_is=[3])

    def decide(self, row: Array, **told: Any) -> str:
        return str(self.bandit.pull(np.array([[*row, 1.0]]), **_each(told))[0])

    def update(self, row: Array, arm: str, reward: float) -> None:
        rows = np.array([[*row, 1.0]])
        self.bandit.select_for_update(arm).update(rows, np.array([reward]))
        self.bandit.decay(decay_rate=0.99)


class VowpalWabbit:
    """Alone, its lines are written here, a second time and by hand."""

    def __init__(self, front: Front) -> None:
        from vowpalwabbit import Workspace

        workspace = Workspace("--cb_explore_adf --squarecb -q ca --quiet --random_seed 3")
        self.bandit = front(workspace, actions=ARMS)
        self.alone, self.rng = self.bandit is workspace, random.Random(3)

    def decide(self, row: Array, **told: Any) -> str:
        context = dict(zip(NAMES, row.tolist(), strict=True))
        self.chances = self.bandit.predict(self.text(row, "", "") if self.alone else context, **told)
        return self.rng.choices(ARMS, self.chances)[0]

    def update(self, row: Array, arm: str, reward: float) -> None:
        chance = self.chances[ARMS.index(arm)]
        if self.alone:
            self.bandit.learn(self.text(row, arm, f"0:{-reward!r}:{chance!r} "))
        else:
            self.bandit.learn(dict(zip(NAMES, row.tolist(), strict=True)), arm, -reward, chance)

    def text(self, row: Array, chosen: str, label: str) -> str:
        numbers = [f"{name}:{value!r}" for name, value in zip(NAMES, row.tolist(), strict=True)]
        lines = [(label if arm == chosen else "") + f"|a {arm}" for arm in ARMS]
        return "\n".join(["shared |c " + " ".join(numbers), *lines])


PLAYERS = {
    "bayesianbandits": BayesianBandits,
    "contextualbandits": ContextualBandits,
    "mabwiser": Mabwiser,
    "river": River,
    "vowpalwabbit": VowpalWabbit,
}


def _each(told: dict[str, Any]) -> dict[str, Any]:
    return {name if name == "noise_cov" else "groups": [value] for name, value in told.items()}
