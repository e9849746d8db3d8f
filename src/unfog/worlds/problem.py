"""What a world must offer the simulator: its truth, its measurements, its rewards."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from unfog.channel.knowledge import Knowledge
from unfog.features.base import Context, FeatureMap
from unfog.features.link import Rewards
from unfog.maths.arrays import Array, Ints


class Truth(NamedTuple):
    """What nature draws once per trial. Agents see nothing of it but the features."""

    theta: Array  # (..., m)  theta*
    bias: Array  # (..., d)  gamma*
    features: FeatureMap
    first: Array | None = None  # (...,) the number of the first round in the data, for worlds made of data
    path: Array | None = None  # (..., rounds, d)  the bias of every round, where it drifts
    biases: Array | None = None  # (..., units, d)  where there are several units
    context: Array | None = None  # (..., d)  where it is the same in all rounds
    course: Any = None  # of contexts and errors in time, where the world has one: worlds/temporal.py


class Emission(NamedTuple):
    """What nature draws in every round."""

    context: Array  # (..., d)  c_t
    noisy: Array  # (..., d)  chat_t; mu_c where a coordinate was lost
    bias: Array | None = None  # (..., d)  gamma_t, where it is not the same in all rounds
    mask: Array | None = None  # (..., d)  1 where a coordinate was measured, 0 where it was lost
    revealed: Array | None = None  # (...,) or (..., d)  1 where the true context will be shown; None: always
    at: Array | None = None  # (...,)  the time; None: the number of the round
    unit: Ints | None = None  # (...,)  whose context it is; None: there is one unit
    best: Context | None = (
        None  # the belief of an oracle that knows the channel; None: it is as agents are told
    )


class Draws(NamedTuple):
    """The standard draws a quantity needs."""

    law: Literal["normal", "uniform"]
    shape: tuple[int, ...]

    def of(self, rng: np.random.Generator, *number: int) -> Array:
        """Draws (*number, *shape) from a generator."""
        shape = (*number, *self.shape)
        return rng.standard_normal(shape) if self.law == "normal" else rng.random(shape)


class Problem(Protocol):
    """A world. Randomness is an argument everywhere: standard draws in, quantities out."""

    def knowledge(self) -> Knowledge:
        """What agents are told."""
        ...

    @property
    def rewards(self) -> Rewards:
        """How rewards depend on scores."""
        ...

    @property
    def has_bias(self) -> bool:
        """Whether there is a true bias: without one no agent can be told it, and regret is against c_t."""
        ...

    @property
    def discrete(self) -> bool:
        """Whether contexts are drawn from a finite sample, so that exact posteriors can be computed."""
        ...

    @property
    def note(self) -> str:
        """What every table and figure must say of the data; empty where nothing needs to be said."""
        ...

    @property
    def several(self) -> int:
        """How many units agents are told of, whose biases differ; 1: they are told of none."""
        ...

    @property
    def reveal_delay(self) -> int:
        """How many rounds after its reward a true context is shown, to agents that are shown it."""
        ...

    @property
    def partial(self) -> bool:
        """Whether some of true contexts is never shown, or only later than their rewards."""
        ...

    @property
    def revealed(self) -> float:
        """The share of rounds whose true context is shown, to agents that are shown it."""
        ...

    @property
    def on_request(self) -> bool:
        """Whether true contexts are revealed where an agent requests them, and not otherwise."""
        ...

    @property
    def has_reveal_mask(self) -> bool:
        """Whether what is shown differs by round: `reveal_mask` then takes 1 + d uniforms a round."""
        ...

    def reveal_mask(self, uniforms: Array, number: Ints) -> Array | None:
        """A mask: 1 where a true context (...,) or coordinate (..., d) is shown, else 0; None: all are."""
        ...

    def arms(self) -> int:
        """How many actions there are: K."""
        ...

    def cells(self) -> int:
        """Numbers that the features of one round keep in memory temporarily."""
        ...

    def table(self) -> int:
        """Numbers that the features of a trial keep as long as it is played."""
        ...

    def truth_draws(self) -> Mapping[str, Draws]:
        """The draws that make one trial's truth, by name."""
        ...

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """One trial's truth."""
        ...

    def round_normals(self) -> int:
        """How many standard normals one round takes: w."""
        ...

    def emit(self, truth: Truth, normals: Array, number: Ints) -> Emission:
        """A round's context and its measurement: normals (..., w); rounds are numbered from 0."""
        ...

    def posterior(self, truth: Truth, emission: Emission) -> Context:
        """The posterior of a context by Bayes' rule over the sample, given the channel, if `discrete`."""
        ...

    def reward(self, score: Array, normals: Array) -> Array:
        """A round's reward, from phi(a, c)'theta* (...,) and the round's normals (..., w)."""
        ...
