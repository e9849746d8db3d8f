"""Ignore the measurement: c_t ~ N(mu_c, Sigma_c) in every round (TS_kk in the paper).

After Kirschner and Krause, *Stochastic Bandits with Context Distributions*, where the agent is shown the
distribution of the context instead of the context.
"""

from unfog.agents.parts import Privilege
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.model.knowledge import Knowledge


def setup(known: Knowledge, privilege: Privilege | None) -> Context:
    """The context's law."""
    return Context(known.context_mean, known.context_cov)


def start(parameters: Context) -> tuple[()]:
    """Nothing is remembered."""
    return ()


def predict(parameters: Context, state: tuple[()], noisy: Array) -> Context:
    """The context's law, whatever was measured; the mean takes the batch axes of the measurement."""
    xp = noisy.__array_namespace__()
    return Context(xp.broadcast_to(parameters.mean, noisy.shape), parameters.cov)


def update(parameters: Context, state: tuple[()], noisy: Array, revealed: Array | None) -> tuple[()]:
    """Nothing is remembered."""
    return state
