"""What can be asked of a live problem: each verb as a command, which is checked first and applied then.

`prepare` raises an InputError for whatever cannot be done, changes nothing, and returns the event that will
be logged; or None if nothing is left to do, since it was done before. `apply` changes the state. It has no
reason to fail: an error in it is a bug of this package (see `InternalError`).

live/processor.py carries commands out. For a decision that is closed the log is asked: its rows say what has
become of it (`Past` in live/pending.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

from unfog.live.backend import Row
from unfog.live.config import fingerprint
from unfog.live.errors import Conflict, Gone, Unknown
from unfog.live.pending import Open, Past
from unfog.live.requests import Ask
from unfog.live.state import OBEYED, State
from unfog.validation import InputError

Rows: TypeAlias = Callable[[str], Sequence[Row]]
"""Asks the log for the rows of a decision."""


class Event(NamedTuple):
    """What is logged of a command."""

    decision: str | None
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that is asked of a problem. Its kind is that of its event."""

    kind: ClassVar[str]

    @property
    def target(self) -> str | None:
        """The decision that it reports on, if any."""
        return None

    @property
    def request(self) -> Mapping[str, Any]:
        """What was asked, as it is logged: another command with the same key must ask the same."""
        raise NotImplementedError

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:
        """The event that this will be; None if nothing is left to do."""
        raise NotImplementedError

    def apply(self, state: State, event: Event, now: float) -> Event:
        """Change the state; the event as it is logged."""
        state.apply(self.kind, event.decision, event.body, now)
        return event


@dataclass(frozen=True, slots=True)
class Decide(Command):
    """Choose an arm."""

    kind = "decide"
    ask: Ask

    @property
    def request(self) -> Mapping[str, Any]:
        """The reading, and what else was told with it."""
        return self.ask.request

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Its arm is not known yet."""
        state.arms.check(self.ask)
        state.runners.refuse(self.ask.unit, state.moment(self.ask))
        return Event(state.id_of(state.number), {})

    def apply(self, state: State, event: Event, now: float) -> Event:
        """With the arm that was chosen."""
        return event._replace(body=state.decide(self.ask, now))


@dataclass(frozen=True, slots=True)
class Expire(Command):
    """A wait is over. Nobody asks for it: its events are those that are due."""

    kind = "expire"


@dataclass(frozen=True, slots=True)
class Report(Command):
    """Something that has become known of a decision."""

    decision: str

    @property
    def target(self) -> str:
        """The decision."""
        return self.decision

    def find(self, state: State, rows: Rows) -> Open | Past:
        """The decision as it is remembered or, if it is closed, as the log has it."""
        return state.open.get(self.decision) or Past(self.decision, rows(self.decision))

    def find_valid(self, state: State, rows: Rows) -> Open | Past:
        """Likewise; one that is void is refused."""
        found = self.find(state, rows)
        if found.voided:
            raise Gone("decision", repr(self.decision), "a decision that is not void")
        return found


@dataclass(frozen=True, slots=True)
class Reward(Report):
    """Report what a decision earned."""

    kind = "reward"
    value: float

    @property
    def request(self) -> Mapping[str, Any]:
        """The reward."""
        return {"value": self.value}

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:  # noqa: ARG002
        """Learnt, kept or late; refused where the decision has another reward."""
        found = self.find_valid(state, rows)
        if found.expired:
            return self._with("late")
        if found.paid is not None:
            return self._second(found.paid, state)
        if state.terms.learn == "after_wait":
            return self._with("kept")
        waits = isinstance(found, Open) and state.runners.awaits_context(found)
        return self._with("waits" if waits else "learnt")

    def _second(self, paid: float, state: State) -> Event | None:
        if paid == self.value:
            return None
        if state.terms.combine == "first":
            return self._with("ignored")
        allowed = f"the reward it has, {paid:g}; several are combined where learn is 'after_wait'"
        raise Conflict("value", self.value, allowed)

    def _with(self, outcome: str) -> Event:
        return Event(self.decision, {"value": self.value, "outcome": outcome})


@dataclass(frozen=True, slots=True)
class Reveal(Report):
    """Tell the true context of a decision, whole or in part."""

    kind = "reveal"
    context: dict[str, float]

    @property
    def request(self) -> Mapping[str, Any]:
        """The coordinates that are known."""
        return {"context": self.context}

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:
        """Learnt, noted or late; refused where it contradicts what was told before."""
        found = self.find_valid(state, rows)
        known, agent, within = found.shown, state.runner.agent, state.terms.reveal_within
        for name, value in self.context.items():
            if name in known and known[name] != value:
                raise Conflict(f"context.{name}", value, f"what was told before: {known[name]:g}")
        if all(name in known for name in self.context):
            return None
        late = within is not None and found.time + within <= now
        if agent.awaits_context and not late and len(self.context) < len(state.terms.context):
            missing = next(name for name in state.terms.context if name not in self.context)
            allowed = f"the whole context: {agent.name!r} learns from no part"
            raise InputError(f"context.{missing}", "missing", allowed)
        outcome = "late" if late else "learnt" if agent.sees_context else "noted"
        body: dict[str, Any] = {"context": dict(self.context), "outcome": outcome}
        if isinstance(found, Past):
            then = {name: found.decided[name] for name in ("denoised", "sd")}
            body["then"] = {"noisy": found.decided["context"], **then}
        return Event(self.decision, body)


@dataclass(frozen=True, slots=True)
class Void(Report):
    """The decision was never shown."""

    kind = "void"

    @property
    def request(self) -> Mapping[str, Any]:
        """Nothing besides."""
        return {}

    def prepare(self, state: State, now: float, rows: Rows) -> Event | None:  # noqa: ARG002
        """Refused where something was learnt from it."""
        found = self.find(state, rows)
        if found.voided:
            return None
        waits = isinstance(found, Open) and state.runners.awaits(found)
        if found.paid is not None and not waits:
            allowed = "a decision without a reward: that of this one is learnt already"
            raise Gone("decision", repr(self.decision), allowed)
        return Event(self.decision, {"outcome": "void"})


@dataclass(frozen=True, slots=True)
class ChangeArms(Command):
    """Arms come, go and come back."""

    kind = "arms"
    changes: Mapping[str, Any]  # add, retire, restore: those that there are

    @property
    def request(self) -> Mapping[str, Any]:
        """All changes."""
        return self.changes

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Refused where one of them cannot be."""
        state.refuse_arms(self.changes)
        return Event(None, {**self.changes, "outcome": "done"})


@dataclass(frozen=True, slots=True)
class Freeze(Command):
    """From now on one arm, whatever the context; None: the agent decides again."""

    kind = "freeze"
    arm: str | None

    @property
    def request(self) -> Mapping[str, Any]:
        """The arm."""
        return {"arm": self.arm}

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Refused for an arm that may not be chosen."""
        known = state.arms.available
        if self.arm is not None and state.arms.vectors and self.arm not in known:
            raise InputError("arm", repr(self.arm), ", ".join(known))
        return Event(None, {"arm": self.arm, "outcome": "done"})


@dataclass(frozen=True, slots=True)
class AddShadow(Command):
    """One more agent decides on the same stream, without being obeyed."""

    kind = "shadow"
    agent: str

    @property
    def request(self) -> Mapping[str, Any]:
        """Its name."""
        return {"agent": self.agent}

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Refused for an agent that is there already, or cannot play this problem."""
        if self.agent in state.runners:
            raise InputError("agent", repr(self.agent), "one that is not a shadow already")
        state.made.agent_named("agent", self.agent, state.arms.features, new="agent")
        own = fingerprint("agent", self.agent)
        body = {"agent": self.agent, "outcome": "done"}
        return Event(None, body if own is None else {**body, "fingerprint": own})


@dataclass(frozen=True, slots=True)
class RemoveShadow(Command):
    """A shadow decides no more."""

    kind = "shadow"
    agent: str

    @property
    def request(self) -> Mapping[str, Any]:
        """Its name, and that it leaves."""
        return {"agent": self.agent, "leaves": True}

    def prepare(self, state: State, now: float, rows: Rows) -> Event:  # noqa: ARG002
        """Refused where there is no such shadow."""
        shadows = [name for name in state.runners if name != OBEYED]
        if self.agent not in shadows:
            raise Unknown("agent", repr(self.agent), ", ".join(shadows) or "no shadow there is")
        return Event(None, {**self.request, "outcome": "done"})
