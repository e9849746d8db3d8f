"""The events of a live problem into decisions, each with what became of it.

With a floor f and K arms that might be chosen, an arm that the agent takes with share s had the probability
(1 - f) s + f / K. Which might be chosen is what the events before have left: arms are added, retired and
brought back. An arm that somebody else forced had the probability that was told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unfog.channel.channel import channel
from unfog.evaluation.read import fields
from unfog.validation import InputError, shown

Event = Mapping[str, Any]
LATER = ("reward", "reveal", "void", "expire")  # what is said of a decision that was made
PAID = ("learnt", "waits")


@dataclass
class Row:
    """A decision, and what became of it; of one that was erased its name alone is left."""

    id: str
    context: Mapping[str, float] = field(default_factory=dict)
    arm: str = ""
    probability: float | None = None  # None: somebody else chose, and did not say
    time: float = float("nan")
    unit: str = ""
    law: dict[str, float] | None = None  # the probabilities of arms; None: only the arm's own is known
    reward: float | None = None
    state: str = "open"
    true: dict[str, float] = field(default_factory=dict)


class Fold:
    """What the events up to now have left."""

    def __init__(self, where: str, terms: Event) -> None:
        """From the event that says the terms."""
        self.name = fields.text(where, terms, "problem")
        if terms.get("arm_size") is not None:
            said = f"arms of {self.name!r} come with each decision"
            raise InputError("log", said, "a problem with arms of its own, which have a name for good")
        self.coordinates = tuple(fields.names(where, terms, "context"))
        self.floor = fields.number(where, terms, "floor")
        self.active = dict.fromkeys(fields.names(where, terms, "arms"), True)
        told = terms.get("channel")
        self.channel = None if told is None else channel(told, self.coordinates)
        self.rows: dict[str, Row] = {}
        self.noises = 0

    def add(self, where: str, event: Event) -> None:
        """One more event; `where` it stands, for complaints."""
        kind = event["kind"]
        if kind == "decide":
            self._decide(where, event)
        elif kind == "arms":
            for change, active in (("add", True), ("restore", True), ("retire", False)):
                self.active |= dict.fromkeys(fields.some_names(where, event, change), active)
        elif kind in LATER:
            row = self.rows.get(fields.text(where, event, "decision"))
            if row is not None and row.state != "erased":
                _about(where, kind, row, event)

    def _decide(self, where: str, event: Event) -> None:
        name = fields.text(where, event, "decision")
        if event.get("erased"):
            self.rows[name] = Row(name, state="erased")
            return
        self.rows[name] = Row(
            name,
            fields.numbers(where, event, "context"),
            fields.text(where, event, "arm"),
            fields.number_or_none(where, event, "probability"),
            fields.number(where, event, "time"),
            fields.text(where, event, "unit") if event.get("unit") else "",
            None if "forced" in event else self._law(where, event),
        )
        self.noises += "noise" in event

    def _law(self, where: str, event: Event) -> dict[str, float]:
        active = [name for name, active in self.active.items() if active]
        choice = fields.some_names(where, event, "arms") or active
        floor = 0.0 if event.get("frozen") else self.floor
        law = {name: floor / len(choice) for name in choice}
        for name, share in fields.numbers(where, event, "shares").items():
            if name not in law:
                raise InputError(f"{where}, shares", shown(name), f"arms of that time: {', '.join(choice)}")
            law[name] += (1 - floor) * share
        return law


def _about(where: str, kind: str, row: Row, event: Event) -> None:
    """What is said of a decision later."""
    if kind == "reveal" and event.get("context") is not None:
        row.true |= fields.numbers(where, event, "context")
    elif kind == "void" and event.get("outcome") == "void":
        row.reward, row.state = None, "void"
    elif kind == "expire" and event.get("what") == "reward":
        row.reward = fields.number_or_none(where, event, "value")
        row.state = "expired" if row.reward is None else "learnt"
    elif kind == "reward" and event.get("outcome") in PAID:
        row.reward, row.state = fields.number(where, event, "value"), "learnt"
