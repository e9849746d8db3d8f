"""What learners have in common that keep all past rounds and find theta anew before every decision."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog.agents.evidence import Evidence
from unfog.agents.learn import history
from unfog.agents.learn.history import History
from unfog.agents.learn.posterior import Prior, prior
from unfog.agents.parts import Chain, Grows, Learner
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian, certain

MOST_STEPS = 10_000


class State(NamedTuple):
    """The rounds so far and where the steps have come to."""

    past: History
    theta: Array  # (..., m)


@dataclass(frozen=True, kw_only=True)
class Refit(Grows, Learner, Chain):
    """A learner but for its steps; its own fields are its settings."""

    rewards = "bernoulli"
    dense = True

    def room(self, known: Knowledge, rounds: int) -> int:
        """All rounds, twice over while one is added, and the normals of a decision."""
        m = known.prior_mean.shape[-1]
        normals = self.normals(known, rounds) * self.steps
        return 4 * rounds * m * (m if self.averages_context else 1) + 2 * normals

    def setup(self, known: Knowledge) -> Prior:
        """The prior."""
        return prior(known)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """At the prior mean, with nothing to remember."""
        return State(history.blank(known, rounds, self.averages_context), np.asarray(known.prior_mean))

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """Past rounds are zero in what is new, and the steps go on from its prior mean."""
        past = history.longer(state.past, new.prior_mean.shape[-1])
        return State(past, gaussian.longer(state.theta, np.asarray(new.prior_mean), -1))

    def belief(self, parameters: Prior, state: State) -> Gaussian:
        """A sampler is certain of its current sample."""
        return certain(state.theta)

    def update(self, parameters: Prior, state: State, evidence: Evidence, reward: Array) -> State:
        """Remember the round."""
        return state._replace(past=history.add(state.past, evidence, reward))
