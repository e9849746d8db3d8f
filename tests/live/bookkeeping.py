"""What should become of every report, by the table of delays alone: no belief, no file, no store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unfog.live import ConflictError, DecisionClosedError
from unfog.validation import InputError

COMBINE: dict[str, Any] = {
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
}


@dataclass
class Entry:
    """One decision."""

    id: str
    time: float
    arm: str
    noisy: tuple[float | None, ...]
    rewards: list[float] = field(default_factory=list)
    paid: float | None = None
    told: dict[str, float] = field(default_factory=dict)
    is_cancelled: bool = False
    expired: bool = False
    dropped: bool = False

    @property
    def settled(self) -> bool:
        return self.is_cancelled or self.expired or self.paid is not None


@dataclass
class Book:
    """All of them, and the events that the log should have."""

    reward_window: float | None
    default: float | None
    at_close: bool
    reward_aggregation: str
    within: float | None
    awaits: bool  # an agent of setting 2
    sees: bool  # an agent that learns from true contexts
    entries: dict[str, Entry] = field(default_factory=dict)
    events: list[tuple[Any, ...]] = field(default_factory=list)

    def pending(self) -> list[str]:
        return [one.id for one in self.entries.values() if not one.settled]

    def learnt(self) -> list[Entry]:
        """Those from whose reward the belief has changed."""
        return [one for one in self.entries.values() if one.paid is not None and not self.hangs(one)]

    def hangs(self, one: Entry) -> bool:
        """A reward that has no true context yet, or never gets one."""
        return self.awaits and len(one.told) < 2

    def touch(self, now: float) -> None:
        """Time has passed, and somebody calls."""
        for one in self.entries.values():
            if not one.settled and self.reward_window is not None and one.time + self.reward_window <= now:
                value = COMBINE[self.reward_aggregation](one.rewards) if one.rewards else self.default
                one.expired, one.paid = True, value
                self.events.append(("expire", one.id, "reward", value))
        for one in self.entries.values():
            over = self.within is not None and one.time + self.within <= now
            hangs = one.paid is not None and self.hangs(one) and not one.is_cancelled
            if over and hangs and not one.dropped:
                one.dropped = True
                self.events.append(("expire", one.id, "context"))

    def reward(self, id_: str, value: float) -> str | type[InputError]:
        one = self.entries[id_]
        if one.is_cancelled:
            return DecisionClosedError
        if one.expired:
            return "late"
        if one.paid is not None:
            return (
                "known"
                if one.paid == value
                else "ignored"
                if self.reward_aggregation == "first"
                else ConflictError
            )
        if self.at_close:
            one.rewards.append(value)
            return "kept"
        one.paid = value
        return "waits" if self.hangs(one) else "learnt"

    def reveal(self, id_: str, told: Mapping[str, float], now: float) -> str | type[InputError]:
        one = self.entries[id_]
        if one.is_cancelled:
            return DecisionClosedError
        if any(one.told.get(name, value) != value for name, value in told.items()):
            return ConflictError
        if all(name in one.told for name in told):
            return "known"
        if self.within is not None and one.time + self.within <= now:
            return "late"
        if self.awaits and len(told) < 2:
            return InputError
        one.told |= told
        return "learnt" if self.sees else "noted"

    def cancel(self, id_: str) -> str | type[InputError]:
        one = self.entries[id_]
        if one.is_cancelled:
            return "known"
        if one.paid is not None and (not self.hangs(one) or one.dropped):
            return DecisionClosedError
        one.is_cancelled, one.paid = True, None
        return "cancelled"
