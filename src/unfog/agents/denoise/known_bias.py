"""Denoise with the bias known: N(A, M^-1) at gamma* (TS_oracle in the paper; its A and M).

The formula is that of `unfog.model.shrinkage`. After Park and Faradonbeh, *Analysis of Thompson Sampling for
Partially Observable Contextual Multi-Armed Bandits*. The bias is a privilege: the simulator shows it to this
denoiser alone.
"""

from typing import NamedTuple

from unfog.agents.parts import Privilege
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.model import shrinkage as shrinkages
from unfog.model.knowledge import Knowledge
from unfog.model.shrinkage import Shrinkage, posterior_mean


class Parameters(NamedTuple):
    """The channel, bias included."""

    shrinkage: Shrinkage
    bias: Array  # (..., d)


def shrinkage(known: Knowledge) -> Shrinkage:
    """The gain and the covariance that is left."""
    return shrinkages.shrinkage(known.context_mean, known.context_cov, known.noise_cov)


def setup(known: Knowledge, privilege: Privilege | None) -> Parameters:
    """The gain, and the bias that was shown."""
    if privilege is None:
        raise ValueError("known_bias needs a privilege: it must be shown the bias")
    return Parameters(shrinkage(known), privilege.bias)


def start(parameters: Parameters) -> tuple[()]:
    """Nothing is remembered: there is nothing to learn about the channel."""
    return ()


def predict(parameters: Parameters, state: tuple[()], noisy: Array) -> Context:
    """The posterior of the context given its measurement and the bias."""
    mean = posterior_mean(parameters.shrinkage, noisy, parameters.bias)
    return Context(mean, parameters.shrinkage.cov)


def update(parameters: Parameters, state: tuple[()], noisy: Array, revealed: Array | None) -> tuple[()]:
    """Nothing is remembered."""
    return state
