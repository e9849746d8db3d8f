"""What a caller can ask of a live problem: each verb is a command, which is first checked, then applied.

`prepare` changes nothing. It raises InputError for whatever cannot be done, and returns the event that will
be logged, or None if nothing is left to do since it was done before. `apply` changes the state. It has no
reason to fail: an error in it is a bug of this package (see `InternalError`).

live/processor.py carries commands out. What became of a closed decision is read from its rows in the log
(`Past` in live/pending.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

from unfog.live.backend import Row
from unfog.live.config import module_hash
from unfog.live.errors import ConflictError, DecisionClosedError, NotFoundError
from unfog.live.pending import Past, PendingDecision
from unfog.live.requests import DecisionRequest
from unfog.live.state import PRIMARY, State
from unfog.validation import InputError, nearest, nearest_arm

Rows: TypeAlias = Callable[[str], Sequence[Row]]
"""Reads the rows of a decision from the log."""


class Event(NamedTuple):
    """The event of a command, as it is logged."""

    decision: str | None
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A request to a problem. Its kind is that of its event."""

    kind: ClassVar[str]

    @property
    def target(self) -> str | None:
        """The id of the decision that it reports on, if any."""
        return None

    @property
    def request(self) -> Mapping[str, Any]:
        """The request as it is logged: another command with the same key must have the same request."""
        raise NotImplementedError

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:
        """The event that this command will be; None if nothing is left to do."""
        raise NotImplementedError

    def apply(self, state: State, event: Event, now: float) -> Event:
        """Change the state, and return the event as it is logged."""
        state.apply(self.kind, event.decision, event.body, now)
        return event


@dataclass(frozen=True, slots=True)
class Decide(Command):
    """Choose an arm."""

    kind = "decide"
    ask: DecisionRequest

    @property
    def request(self) -> Mapping[str, Any]:
        """The noisy context, and the other arguments."""
        return self.ask.request

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """An event without a body: the arm is not known yet."""
        state.arms.check(self.ask)
        state.runners.check_reading(self.ask, state.moment(self.ask))
        return Event(state.id_of(state.number), {})

    def apply(self, state: State, event: Event, now: float) -> Event:
        """Choose an arm, and return the event with it."""
        return event._replace(body=state.decide(self.ask, now))


@dataclass(frozen=True, slots=True)
class Expire(Command):
    """The reward window of a decision is over. No caller asks for it: the state says what is due."""

    kind = "expire"


@dataclass(frozen=True, slots=True)
class Report(Command):
    """A report on a decision."""

    decision: str

    @property
    def target(self) -> str:
        """The id of the decision."""
        return self.decision

    def find(self, state: State, rows: Rows) -> PendingDecision | Past:
        """The decision, from the state if it is open and from the log if it is closed."""
        pending = state.open.get(self.decision)
        if pending is not None:
            return pending
        past = rows(self.decision)
        if not any(row.kind == "decide" for row in past):
            raise self._describe_missing(state)
        return Past(self.decision, past)

    def _describe_missing(self, state: State) -> NotFoundError:
        """The error for an id that no decision has; it suggests the one that was probably meant."""
        number, _, suffix = self.decision.partition("-")
        index = int(number) if number.isdecimal() and len(number) < 20 else -1
        if index >= state.number and suffix in ("", state.terms.uid[:8]):
            made = f"{state.number} so far, numbered from 0" if state.number else "none so far"
            allowed = f"the id of a decision that was made: this problem has {made}"
            return NotFoundError("decision", repr(self.decision), allowed, "")
        name = state.id_of(max(index, 0))
        near = nearest(self.decision, [name]) if suffix or index < 0 else name
        return NotFoundError("decision", repr(self.decision), "the id of a decision of this problem", near)

    def find_valid(self, state: State, rows: Rows) -> PendingDecision | Past:
        """As `find`, but raise DecisionClosedError if the decision was cancelled."""
        record = self.find(state, rows)
        if record.is_cancelled:
            raise DecisionClosedError("decision", repr(self.decision), "a decision that was not cancelled")
        return record


@dataclass(frozen=True, slots=True)
class Reward(Report):
    """Report the reward of a decision."""

    kind = "reward"
    value: float

    @property
    def request(self) -> Mapping[str, Any]:
        """The reward."""
        return {"value": self.value}

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:  # noqa: ARG002
        """Whether it is learnt, kept until its window is over, or late; ConflictError if there is another."""
        record = self.find_valid(state, rows)
        if record.expired:
            return self._event("late")
        if record.paid is not None:
            return self._aggregate(record.paid, state)
        if state.terms.update == "at_close":
            return self._event("kept")
        waits = isinstance(record, PendingDecision) and state.runners.awaits_context(record)
        return self._event("waits" if waits else "learnt")

    def _aggregate(self, paid: float, state: State) -> Event | None:
        if paid == self.value:
            return None
        if state.terms.reward_aggregation == "first":
            return self._event("ignored")
        allowed = f"the reward it has, {paid:g}; several are combined where update is 'at_close'"
        raise ConflictError("value", self.value, allowed)

    def _event(self, outcome: str) -> Event:
        return Event(self.decision, {"value": self.value, "outcome": outcome})


@dataclass(frozen=True, slots=True)
class Reveal(Report):
    """Reveal the true context of a decision, or some of its coordinates."""

    kind = "reveal"
    context: dict[str, float]

    @property
    def request(self) -> Mapping[str, Any]:
        """The coordinates that are known."""
        return {"context": self.context}

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:
        """Whether it is learnt, only noted, or late; ConflictError if it contradicts an earlier one."""
        record = self.find_valid(state, rows)
        known, agent, within = record.revealed, state.runner.agent, state.terms.context_window
        for name, value in self.context.items():
            if name in known and known[name] != value:
                raise ConflictError(f"context.{name}", value, f"the value revealed before, {known[name]:g}")
        if all(name in known for name in self.context):
            return None
        late = within is not None and record.time + within <= now
        if agent.awaits_context and not late and len(self.context) < len(state.terms.context):
            missing = next(name for name in state.terms.context if name not in self.context)
            allowed = f"the complete context: {agent.name!r} cannot learn from a part of it"
            raise InputError(f"context.{missing}", "missing", allowed)
        outcome = "late" if late else "learnt" if agent.sees_context else "noted"
        body: dict[str, Any] = {"context": dict(self.context), "outcome": outcome}
        if isinstance(record, Past):
            belief = {name: record.decided[name] for name in ("denoised", "sd")}
            body["believed"] = {"noisy": record.decided["context"], **belief}
        return Event(self.decision, body)


@dataclass(frozen=True, slots=True)
class Cancel(Report):
    """Report that a decision was never carried out."""

    kind = "cancel"

    @property
    def request(self) -> Mapping[str, Any]:
        """Empty: there is nothing to say but the decision."""
        return {}

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:  # noqa: ARG002
        """Raise DecisionClosedError if something was learnt from the decision."""
        record = self.find(state, rows)
        if record.is_cancelled:
            return None
        waits = isinstance(record, PendingDecision) and state.runners.awaits(record)
        if record.paid is not None and not waits:
            allowed = "a decision without a reward: that of this one is learnt already"
            raise DecisionClosedError("decision", repr(self.decision), allowed)
        return Event(self.decision, {"outcome": "cancelled"})


@dataclass(frozen=True, slots=True)
class UpdateArms(Command):
    """Add, retire or restore arms."""

    kind = "arms"
    changes: Mapping[str, Any]  # of the keys add, retire and restore those that are needed

    @property
    def request(self) -> Mapping[str, Any]:
        """The changes."""
        return self.changes

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Raise InputError if one of the changes is impossible."""
        state.check_arms(self.changes)
        return Event(None, {**self.changes, "outcome": "done"})


@dataclass(frozen=True, slots=True)
class PinArm(Command):
    """Take one arm from now on, whatever the context; None: let the agent decide again."""

    kind = "pin"
    arm: str | None

    @property
    def request(self) -> Mapping[str, Any]:
        """The arm."""
        return {"arm": self.arm}

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Raise InputError if the arm may not be chosen."""
        known = state.arms.available
        if self.arm is not None and state.arms.vectors and self.arm not in known:
            raise InputError("arm", repr(self.arm), ", ".join(known), nearest_arm(self.arm, known))
        return Event(None, {"arm": self.arm, "outcome": "done"})


@dataclass(frozen=True, slots=True)
class AddShadow(Command):
    """Let one more agent decide on the same readings, without carrying out its choices."""

    kind = "shadow"
    agent: str

    @property
    def request(self) -> Mapping[str, Any]:
        """Its name."""
        return {"agent": self.agent}

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Raise InputError if it is a shadow already, or cannot play this problem."""
        if self.agent in state.runners:
            raise InputError("agent", repr(self.agent), "one that is not a shadow already")
        state.made.agent_named("agent", self.agent, state.arms.features, new="agent")
        own = module_hash("agent", self.agent)
        body = {"agent": self.agent, "outcome": "done"}
        return Event(None, body if own is None else {**body, "module_hash": own})


@dataclass(frozen=True, slots=True)
class RemoveShadow(Command):
    """Remove a shadow."""

    kind = "shadow"
    agent: str

    @property
    def request(self) -> Mapping[str, Any]:
        """Its name, and that it is removed."""
        return {"agent": self.agent, "removed": True}

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Raise NotFoundError if there is no such shadow."""
        shadows = [name for name in state.runners if name != PRIMARY]
        if self.agent not in shadows:
            raise NotFoundError("agent", repr(self.agent), ", ".join(shadows) or "none: there are no shadows")
        return Event(None, {**self.request, "outcome": "done"})
