"""One call on a store, from its request to its answer."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from unfog.live.state import State


class Event(NamedTuple):
    """What a verb did to the state, and has to be written down."""

    decision: str | None
    body: dict[str, Any]


Work: TypeAlias = Callable[[State, float], Event | None]
"""Changes the state at a time, and says what is to be written; None where it was all known already."""


class Turn(NamedTuple):
    """What is to be done."""

    problem: str
    kind: str
    decision: str | None
    key: str | None
    request: Mapping[str, Any]
    work: Work


class Done(NamedTuple):
    """What was."""

    seq: int
    decision: str | None
    body: dict[str, Any]
