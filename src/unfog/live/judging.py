"""What becomes of a report: learnt, kept, late, or refused. Nothing is changed here.

Of a decision that is open the state knows everything. Of one that is closed the log is asked: its rows say
whether it was void, paid or expired, and what was revealed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from unfog.live.errors import Conflict, Gone, Unknown
from unfog.live.opened import Open
from unfog.live.place import Row
from unfog.validation import InputError

if TYPE_CHECKING:
    from unfog.live.state import State

Rows: TypeAlias = Callable[[], Sequence[Row]]
"""Asks the log for the rows of a decision."""


class Past:
    """A decision that is closed, by what the log says of it."""

    def __init__(self, decision: str, rows: Sequence[Row]) -> None:
        """Refuse one that there never was."""
        self.bodies = [(row.kind, json.loads(row.body)) for row in rows]
        if not any(kind == "decide" for kind, _ in self.bodies):
            raise Unknown("decision", repr(decision), "the id of a decision of this problem")
        self.time = next(row.time for row in rows if row.kind == "decide")
        self.decided = next(body for kind, body in self.bodies if kind == "decide")
        if self.decided.get("erased"):
            raise Gone("decision", repr(decision), "a decision that was not erased")

    @property
    def voided(self) -> bool:
        """Whether it was never shown."""
        return any(kind == "void" for kind, _ in self.bodies)

    @property
    def paid(self) -> float | None:
        """What was learnt of its reward."""
        for kind, body in self.bodies:
            if kind == "reward" and body["outcome"] in ("learnt", "waits"):
                return float(body["value"])
            if kind == "expire" and body["what"] == "reward" and body["value"] is not None:
                return float(body["value"])
        return None

    @property
    def expired(self) -> bool:
        """Whether the wait for its reward was over."""
        return any(kind == "expire" and body["what"] == "reward" for kind, body in self.bodies)

    @property
    def shown(self) -> dict[str, float]:
        """What was revealed."""
        found: dict[str, float] = {}
        for kind, body in self.bodies:
            if kind == "reveal" and body["outcome"] in ("learnt", "noted"):
                found |= body["context"]
        return found


def reward(state: "State", decision: str, value: float, rows: Rows) -> str | None:
    """The outcome of a reward; None for one that is known already."""
    found: Open | Past = state.open.get(decision) or Past(decision, rows())
    _refuse_void(decision, found.voided)
    if found.expired:
        return "late"
    if found.paid is not None:
        if found.paid == value:
            return None
        if state.terms.combine == "first":
            return "ignored"
        allowed = f"the reward it has, {found.paid:g}; several are combined where learn is 'after_wait'"
        raise Conflict("value", value, allowed)
    if state.terms.learn == "after_wait":
        return "kept"
    seen = state.mind.agent.awaits_context and isinstance(found, Open) and state.minds.awaits_context(found)
    return "waits" if seen else "learnt"


def reveal(
    state: "State", decision: str, told: Mapping[str, float], now: float, rows: Rows
) -> dict[str, Any] | None:
    """The event of a true context; None for one that is known already."""
    found: Open | Past = state.open.get(decision) or Past(decision, rows())
    _refuse_void(decision, found.voided)
    known = found.shown
    for name, value in told.items():
        if name in known and known[name] != value:
            raise Conflict(f"context.{name}", value, f"what was told before: {known[name]:g}")
    if all(name in known for name in told):
        return None
    agent, within = state.mind.agent, state.terms.reveal_within
    late = within is not None and found.time + within <= now
    if agent.awaits_context and not late and len(told) < len(state.terms.context):
        missing = next(name for name in state.terms.context if name not in told)
        raise InputError(
            f"context.{missing}", "missing", f"the whole context: {agent.name!r} learns from no part"
        )
    outcome = "late" if late else "learnt" if agent.sees_context else "noted"
    if isinstance(found, Open):
        return {"context": dict(told), "outcome": outcome}
    then = {name: found.decided[name] for name in ("denoised", "sd")}
    return {"context": dict(told), "outcome": outcome, "then": {"noisy": found.decided["context"], **then}}


def void(state: "State", decision: str, rows: Rows) -> bool:
    """Whether it is not void already; refused where something was learnt from it."""
    found: Open | Past = state.open.get(decision) or Past(decision, rows())
    if found.voided:
        return False
    waits = isinstance(found, Open) and state.minds.awaits(found)
    if found.paid is not None and not waits:
        raise Gone(
            "decision", repr(decision), "a decision without a reward: that of this one is learnt already"
        )
    return True


def _refuse_void(decision: str, voided: bool) -> None:
    if voided:
        raise Gone("decision", repr(decision), "a decision that is not void")
