"""Denoise with the bias known: N(A, M^-1) at gamma* (TS_oracle in the paper; its A and M).

Without the paper's inverses: A = mu_c + B (chat - mu_c - gamma*) and M^-1 = Sigma_c - B Sigma_c, where
B = Sigma_c (Sigma_c + Sigma_n)^-1. After Park and Faradonbeh, *Analysis of Thompson Sampling for Partially
Observable Contextual Multi-Armed Bandits*. The bias is a privilege: the simulator shows it to this denoiser
alone.
"""

from typing import NamedTuple

from unfog.agents.parts import Privilege
from unfog.arrays import Array, matvec
from unfog.features import Context
from unfog.knowledge import Knowledge


class Shrinkage(NamedTuple):
    """The posterior of c given chat when the bias is known."""

    mean: Array  # (d,)    mu_c
    gain: Array  # (d, d)  B
    cov: Array  # (d, d)  M^-1


class Parameters(NamedTuple):
    """The channel, bias included."""

    shrinkage: Shrinkage
    bias: Array  # (..., d)


def shrinkage(known: Knowledge) -> Shrinkage:
    """The gain and the covariance that is left."""
    xp = known.context_cov.__array_namespace__()
    gain = xp.linalg.solve(known.context_cov + known.noise_cov, known.context_cov).mT
    return Shrinkage(known.context_mean, gain, known.context_cov - gain @ known.context_cov)


def posterior_mean(shrinkage: Shrinkage, noisy: Array, bias: Array) -> Array:
    """The mean A of the context, were the bias this."""
    return shrinkage.mean + matvec(shrinkage.gain, noisy - shrinkage.mean - bias)


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
