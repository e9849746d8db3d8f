"""What learners have in common that keep all past rounds and walk through theta before every decision."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from unfog.agents.learn import history
from unfog.agents.learn.history import History
from unfog.agents.learn.posterior import Prior, prior
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian, certain
from unfog.model.knowledge import Knowledge

MOST_STEPS = 10_000


class State(NamedTuple):
    """The rounds so far and where the walk has come to."""

    past: History
    theta: Array  # (..., m)


@dataclass(frozen=True, kw_only=True)
class Walker(ABC):
    """A learner but for its steps; its own fields are its settings."""

    kind = "bernoulli"

    @property
    def chain(self) -> Self:
        """It is its own chain."""
        return self

    @property
    def spread(self) -> bool:
        """Whether Cov(phi) of past rounds is kept: where the context is averaged out of the likelihood."""
        return False

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps before a decision."""

    @abstractmethod
    def normals(self, known: Knowledge, seen: int) -> int:
        """How many standard normals a step takes."""

    @abstractmethod
    def step(self, parameters: Prior, state: State, normals: Array) -> State:
        """One step."""

    @abstractmethod
    def work(self, known: Knowledge) -> int:
        """How much a step does for each round remembered."""

    def setup(self, known: Knowledge) -> Prior:
        """The prior."""
        return prior(known)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """At the prior mean, with nothing to remember."""
        return State(history.blank(known, rounds, self.spread), np.asarray(known.prior_mean))

    def belief(self, parameters: Prior, state: State) -> Gaussian:
        """A sampler is certain of its current sample."""
        return certain(state.theta)

    def update(
        self, parameters: Prior, state: State, row: Array, spread: Array | None, reward: Array
    ) -> State:
        """Remember the round."""
        return state._replace(past=history.add(state.past, row, spread, reward))
