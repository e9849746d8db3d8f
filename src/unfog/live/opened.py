"""A decision that may still change something: its reward, or its true context, may come."""

from collections.abc import Sequence
from typing import Any

from unfog.live.mind import Seen

COMBINED = {
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "max": max,
    "min": min,
}


def combined(how: str, values: Sequence[float]) -> float:
    """Several rewards of one decision as one."""
    return float(COMBINED[how](values))  # type: ignore[operator]


class Open:
    """What is kept of it."""

    __slots__ = (
        "arm",
        "dropped",
        "expired",
        "id",
        "lost",
        "number",
        "paid",
        "place",
        "rewards",
        "seen",
        "settled",
        "shown",
        "time",
        "unit",
        "vector",
        "voided",
    )

    def __init__(
        self,
        id_: str,
        number: int,
        unit: str,
        time: float,
        arm: str,
        place: int,
        vector: Any,
        seen: dict[str, Seen],
        lost: tuple[int, ...] = (),
    ) -> None:
        """As it was decided."""
        self.id, self.number, self.unit, self.time = id_, number, unit, time
        self.arm, self.place, self.vector, self.seen = arm, place, vector, seen
        self.lost = lost  # coordinates of its reading
        self.rewards: list[float] = []  # kept until the wait is over
        self.paid: float | None = None  # what was learnt
        self.shown: dict[str, float] = {}  # of the true context
        self.settled = self.voided = self.expired = self.dropped = False

    @property
    def brought(self) -> dict[str, Any] | None:
        """The arm that was chosen with its vector, where arms came with the decision."""
        return None if self.vector is None else {self.arm: self.vector}

    def content(self) -> tuple[Any, ...]:
        """All of it, in nested values that do not change any more."""
        first = self.id, self.number, self.unit, self.time, self.arm, self.place, self.vector
        flags = self.settled, self.voided, self.expired, self.dropped
        return (*first, {**self.seen}, self.lost, [*self.rewards], self.paid, {**self.shown}, flags)

    @classmethod
    def filled(cls, content: Sequence[Any]) -> "Open":
        """As it was."""
        found = cls(*content[:9])
        found.rewards, found.paid, found.shown = content[9:12]
        found.settled, found.voided, found.expired, found.dropped = content[12]
        return found
