"""The log of a live problem, from its events: of a store, of a service, of an export, all the same.

A decision is a row when its reward was learnt: told in time, combined of several as the terms say, or the
default once the wait was over. Decisions that are void, open, erased, or expired without a default are left
out, and the notes say how many. With a floor f and K arms that might be chosen, an arm that the agent takes
with share s had the probability (1 - f) s + f / K. Which might be chosen is what the events before have left:
arms are added, retired and brought back. An arm that somebody else forced had the probability that was told.

A store is taken by what it offers, since the evaluation of logs is no part of deciding live.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import refusals, values
from unfog.evaluation.read.where import Where
from unfog.inputs import InputError, shown
from unfog.maths.arrays import Array, Bools

Event = Mapping[str, Any]
LEFT = {
    "void": "were void",
    "open": "have no reward yet",
    "expired": "have no reward: the wait for it was over",
    "erased": "were erased",
    "forced": "were forced by somebody else, and no probability was told",
    "partly": "were forced by somebody else, who told the probability of the chosen arm alone",
}


@runtime_checkable
class Problem(Protocol):
    """One live problem: `unfog.live.Problem`, or one of a service."""

    name: str

    def events(self, since: int = 0) -> Iterable[Event]:
        """All that happened."""


@runtime_checkable
class Store(Protocol):
    """Many of them: `unfog.live.Store`, or a service."""

    def names(self) -> Sequence[str]:
        """The problems."""

    def events(self, name: str, since: int = 0) -> Iterable[Event]:
        """All that happened in one."""


@dataclass
class Row:
    """A decision, and what became of it."""

    id: str
    body: Event
    law: dict[str, float] | None  # the probabilities of arms; None: only that of the chosen one is known
    reward: float | None = None
    state: str = "open"
    true: dict[str, float] = field(default_factory=dict)


class Fold:
    """Events into rows."""

    def __init__(self, terms: Event) -> None:
        """From the event that says the terms."""
        if terms.get("arm_size") is not None:
            said = f"arms of {terms['problem']!r} come with each decision"
            raise InputError("log", said, "a problem with arms of its own, which have a name for good")
        self.name, self.coordinates = str(terms["problem"]), tuple(terms["context"])
        self.floor, self.active = float(terms["floor"]), dict.fromkeys(terms["arms"], True)
        self.rows: dict[str, Row] = {}
        self.noises = 0

    def add(self, event: Event) -> None:
        """One more event."""
        kind, row = event["kind"], self.rows.get(event["decision"] or "")
        if kind == "decide":
            self._decide(event)
        elif kind == "arms":
            self.active |= dict.fromkeys((*event.get("add", ()), *event.get("restore", ())), True)
            self.active |= dict.fromkeys(event.get("retire", ()), False)
        elif row is not None and row.state != "erased":
            self._about(kind, row, event)

    def _decide(self, event: Event) -> None:
        law = None if event.get("erased") or "forced" in event else self._law(event)
        row = Row(event["decision"], event, law)
        row.state = "erased" if event.get("erased") else "open"
        self.rows[row.id] = row
        self.noises += "noise" in event

    def _law(self, event: Event) -> dict[str, float]:
        choice = event.get("arms") or [name for name, active in self.active.items() if active]
        floor = 0.0 if event.get("frozen") else self.floor
        law = dict.fromkeys(choice, floor / len(choice))
        for name, share in event["shares"].items():
            law[name] += (1 - floor) * share
        return law

    def _about(self, kind: str, row: Row, event: Event) -> None:
        if kind == "reveal":
            row.true |= event.get("context", {})
        elif kind == "void" and event["outcome"] == "void":
            row.reward, row.state = None, "void"
        elif kind == "expire" and event["what"] == "reward":
            row.reward = event.get("value")
            row.state = "expired" if row.reward is None else "learnt"
        elif kind == "reward" and event["outcome"] in ("learnt", "waits"):
            row.reward, row.state = event["value"], "learnt"


def read(events: Iterable[Event], problem: str | None, arms: Sequence[str] | None, source: str = "") -> Log:
    """The log of one problem, out of events that may be of several."""
    folds: dict[str, Fold] = {}
    for event in events:
        name = event.get("problem")
        if problem is not None and name != problem:
            continue
        if event["kind"] == "problem":
            folds[str(name)] = Fold(event)
        elif name not in folds:
            raise InputError("log", f"an event of {name!r} before its terms", "a log from its beginning")
        else:
            folds[name].add(event)
    if len(folds) != 1:
        said = f"the problems {', '.join(folds)}" if folds else "no such problem" if problem else "no problem"
        raise InputError("problem", said, "problem= with the name of one that is in the log")
    (fold,) = folds.values()
    return _log(fold, arms, source or f"live problem {fold.name!r}")


def of_store(store: Store, problem: str | None, arms: Sequence[str] | None) -> Log:
    """The log of a problem of a store; it need not be named where it is the only one."""
    names = list(store.names())
    if problem is None and len(names) == 1:
        problem = names[0]
    if problem is None or problem not in names:
        said = "not said, and there are several" if problem is None and names else shown(problem)
        raise InputError("problem", said, ", ".join(names) or "none: the store is empty")
    return read(store.events(problem), problem, arms)


def _log(fold: Fold, arms: Sequence[str] | None, source: str) -> Log:
    kept, notes = _kept(fold)
    if not kept:
        said = "; ".join(notes) or "no decisions"
        raise InputError("log", f"no rows: {said}", "one decision at least, with its reward and probability")
    where = Where("decision", [row.id for row in kept])
    listed = list(fold.active) if arms is None else list(arms)
    arm, order = values.arms("arm", [row.body["arm"] for row in kept], where, listed)
    true = _numbers([row.true for row in kept], fold.coordinates)
    unit, units = _units(kept)
    log = Log(
        fold.coordinates,
        order,
        _numbers([row.body["context"] for row in kept], fold.coordinates),
        arm,
        np.array([row.reward for row in kept], dtype=float),
        np.array([row.body["probability"] for row in kept], dtype=float),
        _laws(kept, order, where),
        None if np.isnan(true).all() else true,
        np.array([row.body["time"] for row in kept], dtype=float),
        unit,
        units,
        source,
        notes,
        _offered(kept, order),
    )
    return refusals.checked(log, where)


def _kept(fold: Fold) -> tuple[list[Row], tuple[str, ...]]:
    """The decisions that say something, and what was passed over.

    Of a forced arm only its own probability is known. Where most are so nothing is known of the other arms
    anyway; where few are, they would cost what is known of all other decisions, and are left out.
    """
    rows, left = [], Counter[str]()
    for row in fold.rows.values():
        why = row.state if row.state != "learnt" else "forced" if row.body["probability"] is None else ""
        left[why] += 1
        rows += [row] if not why else []
    partly = [row for row in rows if row.law is None]
    if 2 * len(partly) < len(rows):
        rows = [row for row in rows if row.law is not None]
        left["partly"] = len(partly)
    notes = [f"{left[why]} decisions {said}: left out" for why, said in LEFT.items() if left[why]]
    if 0 < len(rows) - len(partly) < len(rows) and left["partly"] == 0 and partly:
        notes.append(f"{len(partly)} arms were forced: the probabilities of all arms are not used")
    if fold.noises:
        notes.append(f"{fold.noises} readings had a noise of their own, which is not used")
    return rows, tuple(notes)


def _laws(kept: Sequence[Row], arms: Sequence[str], where: Where) -> Array | None:
    if any(row.law is None for row in kept):
        return None
    place = {name: i for i, name in enumerate(arms)}
    found = np.zeros((len(kept), len(arms)))
    for i, row in enumerate(kept):
        for name, chance in (row.law or {}).items():
            if name not in place:
                raise InputError(where.of(i), f"{name!r} might be chosen", f"arms in the list: {arms}")
            found[i, place[name]] = chance
    return found


def _offered(kept: Sequence[Row], arms: Sequence[str]) -> Bools | None:
    """The arms that might be chosen; None where that is all of them, or not known."""
    if any(row.law is None for row in kept):
        return None
    found = np.array([[name in (row.law or ()) for name in arms] for row in kept])
    return None if found.all() else found


def _numbers(told: Sequence[Mapping[str, float | None]], names: Sequence[str]) -> Array:
    return np.array([[one.get(name) for name in names] for one in told], dtype=float)


def _units(kept: Sequence[Row]) -> tuple[Any, tuple[str, ...]]:
    """Whose each context is, as the agent took it: those without a name are of one unit, too."""
    said = [row.body.get("unit", "") for row in kept]
    names = list(dict.fromkeys(said))
    place = {name: i for i, name in enumerate(names)}
    return (None, ()) if names == [""] else (np.array([place[one] for one in said]), tuple(names))
