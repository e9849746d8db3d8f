"""A denoiser to start from.

The docstring of its class says what it believes, with the formula and its reference (CONTRIBUTING.md).
What it can do beyond its contract: it inherits protocols of agents/base.py too, such as `PredictsReading`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.agents.base import Denoiser, Privilege
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array


class Parameters(NamedTuple):
    """What depends on the problem alone: factorise here, not in a round."""

    mean: Array  # (d,)    mu_c
    cov: Array  # (d, d)  Sigma_c


class State(NamedTuple):
    """What is remembered: arrays with the trials' axes in front, in (nested) tuples."""

    seen: Array  # (...,)    how many
    total: Array  # (..., d)  sum of chat - mu_c


@dataclass(frozen=True, kw_only=True)
class Skeleton(Denoiser):
    """Trust a measurement by a fixed share, and learn the bias by a running mean.

        c_t ~ N(mu_c + w (chat_t - mu_c - g),  Sigma_c),    g = mean of chat - mu_c
        w: the share of a surprise that is put down to the context

    Here stands its reference.

    Settings
    --------
    The `share` of a surprise that is put down to the context.
    """

    share: float = 0.5

    name = "skeleton"
    note = "a fixed share of every surprise"

    def __post_init__(self) -> None:
        """Refuse bad settings by name."""
        validation.positive("share", self.share)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """What is told of contexts; a privilege is not for this one."""
        return Parameters(known.context_mean, known.context_cov)

    def start(self, parameters: Parameters) -> State:
        """Nothing seen."""
        xp = parameters.mean.__array_namespace__()
        return State(xp.zeros_like(parameters.mean[0]), xp.zeros_like(parameters.mean))

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The belief about this round's context: noisy (..., d)."""
        bias = state.total / (state.seen[..., None] + 1)
        return Context(parameters.mean + self.share * (noisy - parameters.mean - bias), parameters.cov)

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """One more measurement."""
        return State(state.seen + 1, state.total + noisy - parameters.mean)
