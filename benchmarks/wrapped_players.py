"""The libraries of `wrapped.py`: a linear learner for every arm, with the defaults where there are any.

A player is given a bandit, alone or behind the denoiser: the verbs are the same, which is the point.
"""

import random
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from benchmarks.wrapped_worlds import ARMS, Array

Wrap = Callable[..., Any]  # puts the denoiser in front, or does nothing


class Player(Protocol):
    """A library in the middle of a run."""

    def decide(self, row: Array) -> int:
        """The arm for a context."""

    def update(self, row: Array, arm: int, reward: float) -> None:
        """Take in its reward."""


class Mabwiser:
    """`LearningPolicy.LinTS()`, its defaults; an intercept is a column of ones."""

    def __init__(self, wrap: Wrap, intercept: bool, width: int, seed: int) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self._intercept = intercept
        mab = MAB(list(range(ARMS)), LearningPolicy.LinTS(), seed=seed)
        mab.fit([0], [0.0], np.zeros((1, width + intercept)))  # it has to come before `predict`
        self._mab = wrap(mab, as_is=[0] if intercept else [])

    def decide(self, row: Array) -> int:
        return int(self._mab.predict(_rows(row, self._intercept)))

    def update(self, row: Array, arm: int, reward: float) -> None:
        self._mab.partial_fit([arm], [reward], _rows(row, self._intercept))


class ContextualBandits:
    """`LinUCB`, its defaults, with an intercept of its own or without."""

    def __init__(self, wrap: Wrap, intercept: bool, width: int, seed: int) -> None:
        from contextualbandits.online import LinUCB

        del width
        self._policy = wrap(LinUCB(ARMS, fit_intercept=intercept, random_state=seed + 1))

    def decide(self, row: Array) -> int:
        return int(self._policy.predict(row[None])[0])

    def update(self, row: Array, arm: int, reward: float) -> None:
        self._policy.partial_fit(row[None], np.array([arm]), np.array([reward]))


class River:
    """`LinUCBDisjoint`, its defaults; an intercept is a name that is always 1."""

    def __init__(self, wrap: Wrap, intercept: bool, width: int, seed: int) -> None:
        from river.bandit import LinUCBDisjoint

        del width
        self._one = {"one": 1.0} if intercept else {}
        self._policy = wrap(LinUCBDisjoint(seed=seed), as_is=["one"])

    def _context(self, row: Array) -> dict[Any, float]:
        return self._one | dict(enumerate(row.tolist()))

    def decide(self, row: Array) -> int:
        return int(self._policy.pull(list(range(ARMS)), self._context(row)))

    def update(self, row: Array, arm: int, reward: float) -> None:
        self._policy.update(arm, self._context(row), reward)


class BayesianBandits:
    """`ContextualAgent` with `ThompsonSampling` over `NormalRegressor`s; an intercept is a column of ones."""

    def __init__(self, wrap: Wrap, intercept: bool, width: int, seed: int) -> None:
        from bayesianbandits import Arm, ContextualAgent, NormalRegressor, ThompsonSampling

        del width
        arms = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=1.0)) for arm in range(ARMS)]
        self._intercept = intercept
        agent = ContextualAgent(arms, ThompsonSampling(), random_seed=seed)
        self._agent = wrap(agent, as_is=[0] if intercept else [])

    def decide(self, row: Array) -> int:
        return int(self._agent.pull(_rows(row, self._intercept))[0])

    def update(self, row: Array, arm: int, reward: float) -> None:
        rows = _rows(row, self._intercept)
        self._agent.select_for_update(arm).update(rows, np.array([reward]))


class VowpalWabbit:
    """`--cb_explore_adf --squarecb -q ca`: an intercept and slopes for every action, by gradient steps.

    Costs are a tenth of a reward, because its exploration is made for costs of about one. Alone it goes
    through `wrap` as well, with a denoiser that does nothing: the text is then the same.
    """

    def __init__(self, wrap: Wrap, intercept: bool, width: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        del width
        terms = "-q ca" if intercept else "-q ca --ignore_linear a --noconstant"
        options = f"--cb_explore_adf --squarecb {terms} --quiet --random_seed {seed + 1}"
        self._workspace = wrap(Workspace(options), actions=range(ARMS))
        self._rng = random.Random(seed)

    def decide(self, row: Array) -> int:
        self._chances = self._workspace.predict(row)
        return self._rng.choices(range(ARMS), self._chances)[0]

    def update(self, row: Array, arm: int, reward: float) -> None:
        self._workspace.learn(row, arm, -reward / 10, self._chances[arm])


PLAYERS: dict[str, Any] = {
    "mabwiser": Mabwiser,
    "contextualbandits": ContextualBandits,
    "river": River,
    "bayesianbandits": BayesianBandits,
    "vowpalwabbit": VowpalWabbit,
}


def _rows(row: Array, intercept: bool) -> Array:
    return np.concatenate([[1.0], row])[None] if intercept else row[None]
