"""Believe the measurement: c_t = chat_t, with certainty (TS_naive in the paper)."""

from unfog.agents.parts import Privilege
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.model.knowledge import Knowledge


def setup(known: Knowledge, privilege: Privilege | None) -> Array:
    """The covariance of a certain belief: zero."""
    return 0 * known.context_cov


def start(parameters: Array) -> tuple[()]:
    """Nothing is remembered."""
    return ()


def predict(parameters: Array, state: tuple[()], noisy: Array) -> Context:
    """The measurement itself."""
    return Context(noisy, parameters)


def update(parameters: Array, state: tuple[()], noisy: Array, revealed: Array | None) -> tuple[()]:
    """Nothing is remembered."""
    return state
