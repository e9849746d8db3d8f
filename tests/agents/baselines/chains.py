"""Langevin chains written out for one trial, and what tests of several of them share."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from tests.agents.baselines.plain import tied, world
from tests.problems import evidence
from unfog.agents.base import RunsChain
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import LogisticProblem

SEED = 3  # that of `compare`


class Walk:
    """LMC-TS with every past round at hand: no sums, no batch, and a loop that ends when steps are done."""

    def __init__(self, trial: int, size: int, *, binary: bool = False, **settings: Any) -> None:
        told = {"temperature": 1e-3 if binary else 1e-7, "steps": 100, "rate": 0.1, "ridge": 1.0}
        told |= {"cooling": 1.0, "hold": 1, "horizon": 1000}
        self.told, self.binary, self.size = told | settings, binary, size
        self.source = generator(SEED, trial, "learner")
        self.x, self.r = np.zeros((0, size)), np.zeros(0)
        self.theta, self.rate = np.zeros(size), self.told["rate"]

    def slope(self) -> Array:
        z = self.x @ self.theta
        errors = expit(z) - self.r if self.binary else 2 * (z - self.r)
        found: Array = errors @ self.x + 2 * self.told["ridge"] * self.theta
        return found

    def step(self, normals: Array) -> None:
        told = self.told
        beta = 1 / (told["temperature"] * self.size * np.log(told["horizon"]))
        beta = beta * (told["rate"] / self.rate) ** told["cooling"]
        noise = np.sqrt(2 * self.rate / beta) * normals
        self.theta = self.theta - self.rate * self.slope() + noise

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        drawn = self.source.standard_normal((self.told["steps"], self.size))
        if len(self.r) == 0:
            self.theta = drawn[0] / np.sqrt(3 * self.size)
        else:
            for normal in drawn[: min(len(self.r), self.told["steps"])]:
                self.step(normal)
        return tied(rows @ self.theta)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        self.x, self.r = np.vstack([self.x, rows[arm]]), np.append(self.r, reward)
        if len(self.r) % self.told["hold"] == 0:
            self.rate = self.told["rate"] / max(1.0, np.sum(self.x**2))


def coin_world(**changes: Any) -> LogisticProblem:
    """`world`, with rewards of 0 or 1."""
    like = world()
    told = {name: getattr(like, name) for name in ("dim", "actions", "context_mean", "context_cov")}
    told |= {name: getattr(like, name) for name in ("noise_cov", "bias_cov", "prior_mean", "prior_cov")}
    return LogisticProblem(**told | changes)


def remembered(learner: Any, known: Knowledge, rows: Array, rewards: Array, room: int | None = None) -> Any:
    """The state after these rounds."""
    state = learner.start(known, room)
    for row, reward in zip(rows, rewards, strict=True):
        state = learner.update((), state, evidence(row), reward)
    return state


def walked(learner: RunsChain, state: Any, steps: int, normals: Callable[[], Array]) -> Any:
    """So many steps on, as if each was the first of its round."""
    for _ in range(steps):
        state = learner.step((), state, normals())._replace(taken=np.zeros(()))
    return state
