"""The log of a live problem, from its events: of a store, of a service, of an export, all the same.

A decision is a row when its reward was learnt: told in time, combined of several as the terms say, or the
default once the wait was over. Decisions that are void, open, erased, or expired without a default are left
out, and the notes say how many. What the terms say of the noise is in the log, too. A store is taken by what
it offers, since the evaluation of logs is no part of deciding live.

With a floor f and K arms that might be chosen, an arm that the agent takes with share s had the probability
(1 - f) s + f / K. Which might be chosen is what the events before have left: arms are added, retired and
brought back. An arm that somebody else forced had the probability that was told.

Also here, for every reader: what a caller says besides the log (`Asked`), and fields of JSON objects, whoever
wrote them (`text`, `number` and so on).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from unfog._table import Column, Where
from unfog.channel.channel import channel
from unfog.evaluation import log as logs
from unfog.evaluation.log import Log
from unfog.evaluation.readers import table
from unfog.evaluation.readers.table import Columns
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError, shown

Told = Mapping[str, Any]
Event = Mapping[str, Any]
LATER = ("reward", "reveal", "void", "expire")  # what is said of a decision that was made
TAKES = ("problem", "arms")  # of what a caller may say
LEFT = {
    "void": "were void",
    "open": "have no reward yet",
    "expired": "have no reward: the wait for it was over",
    "erased": "were erased",
    "forced": "were forced by somebody else, and no probability was told",
    "partly": "were forced by somebody else, who told the probability of the chosen arm alone",
}
WHY = {
    "columns": "only tables have columns",
    "problem": "only live logs have problems",
    "arms": "it lists its arms itself",
    "coordinates": "it names its coordinates itself",
    "probability": "it has its own probabilities",
}


@runtime_checkable
class Problem(Protocol):
    """One live problem: `unfog.live.Problem`, or one of a service."""

    name: str

    def events(self, since: int = 0) -> Iterable[Event]:
        """All events of the problem."""


@runtime_checkable
class Store(Protocol):
    """Many of them: `unfog.live.Store`, or a service."""

    def names(self) -> Sequence[str]:
        """The problems."""

    def events(self, name: str, since: int = 0) -> Iterable[Event]:
        """All events of one of them."""


Opener = Callable[[Path], AbstractContextManager[Store]]
"""Opens the file of a live store, such as `unfog.live.open`."""


class Asked(NamedTuple):
    """What a caller says besides the log; None for what is not said.

    What does not concern a log is refused: who names a column of a live store would take it to be used.
    """

    columns: Columns | None
    problem: str | None
    arms: list[str] | None
    coordinates: list[str] | None
    probability: float | None
    opener: Opener | None

    def only(self, what: str, *taken: str) -> "Asked":
        """Refuse whatever else is said than what such a log takes."""
        for name, why in WHY.items():
            value = getattr(self, name)
            if value is not None and name not in taken:
                field = "coordinates of the context" if name == "coordinates" else name
                said = value if isinstance(value, str) else shown(value)
                raise InputError(field, said, f"nothing, for {what}: {why}")
        return self

    @property
    def of_table(self) -> Columns:
        """The columns, and the probability where all arms were drawn evenly."""
        found = self.columns or Columns()
        own = {} if self.probability is None else {"probability": self.probability}
        return Columns(**{**vars(found), **own})


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
    """What the events up to now have left: decisions, each with what became of it, and arms."""

    def __init__(self, where: str, terms: Event) -> None:
        """Start from the event that says the terms."""
        self.name = text(where, terms, "problem")
        if terms.get("arm_size") is not None:
            said = f"arms of {self.name!r} come with each decision"
            raise InputError("log", said, "a problem with arms of its own, which have a name for good")
        self.coordinates = tuple(names(where, terms, "context"))
        self.floor = number(where, terms, "floor")
        self.active = dict.fromkeys(names(where, terms, "arms"), True)
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
                self.active |= dict.fromkeys(some_names(where, event, change), active)
        elif kind in LATER:
            row = self.rows.get(text(where, event, "decision"))
            if row is not None and row.state != "erased":
                _about(where, kind, row, event)

    def _decide(self, where: str, event: Event) -> None:
        name = text(where, event, "decision")
        if event.get("erased"):
            self.rows[name] = Row(name, state="erased")
            return
        self.rows[name] = Row(
            name,
            numbers(where, event, "context"),
            text(where, event, "arm"),
            number_or_none(where, event, "probability"),
            number(where, event, "time"),
            text(where, event, "unit") if event.get("unit") else "",
            None if "forced" in event else self._law(where, event),
        )
        self.noises += "noise" in event

    def _law(self, where: str, event: Event) -> dict[str, float]:
        active = [name for name, active in self.active.items() if active]
        choice = some_names(where, event, "arms") or active
        floor = 0.0 if event.get("frozen") else self.floor
        law = {name: floor / len(choice) for name in choice}
        for name, share in numbers(where, event, "shares").items():
            if name not in law:
                raise InputError(f"{where}, shares", shown(name), f"arms of that time: {', '.join(choice)}")
            law[name] += (1 - floor) * share
        return law


def _about(where: str, kind: str, row: Row, event: Event) -> None:
    """What is said of a decision later."""
    if kind == "reveal" and event.get("context") is not None:
        row.true |= numbers(where, event, "context")
    elif kind == "void" and event.get("outcome") == "void":
        row.reward, row.state = None, "void"
    elif kind == "expire" and event.get("what") == "reward":
        row.reward = number_or_none(where, event, "value")
        row.state = "expired" if row.reward is None else "learnt"
    elif kind == "reward" and event.get("outcome") in table.LEARNT:
        row.reward, row.state = number(where, event, "value"), "learnt"


def read(events: Iterable[Event], problem: str | None, arms: Sequence[str] | None, source: str = "") -> Log:
    """The log of one problem, out of events that may be of several."""
    return of_lines(((f"event {one.get('seq')}", one) for one in events), problem, arms, source)


def of_lines(
    lines: Iterable[tuple[str, Event]], problem: str | None, arms: Sequence[str] | None, source: str
) -> Log:
    """The log of one problem, out of events of which each is said where it stands."""
    folds: dict[str, Fold] = {}
    for where, event in lines:
        name, kind = text(where, event, "problem"), text(where, event, "kind")
        if problem is not None and name != problem:
            continue
        if kind == "problem":
            folds[name] = Fold(where, event)
        elif name not in folds:
            raise InputError("log", f"an event of {name!r} before its terms", "a log from its beginning")
        else:
            folds[name].add(where, event)
    if len(folds) != 1:
        said = f"the problems {', '.join(folds)}" if folds else "no such problem" if problem else "no problem"
        raise InputError("problem", said, "the name of one that is in the log")
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
    drawn = Column("arm", np.array([row.arm for row in kept], object), where)
    arm, order = table.arm_numbers(drawn, listed)
    true = matrix([row.true for row in kept], fold.coordinates)
    unit, units = _units(kept)
    log = Log(
        fold.coordinates,
        order,
        matrix([row.context for row in kept], fold.coordinates),
        arm,
        np.array([row.reward for row in kept], dtype=float),
        np.array([row.probability for row in kept], dtype=float),
        laws([row.law for row in kept], order, where),
        None if np.isnan(true).all() else true,
        np.array([row.time for row in kept], dtype=float),
        unit,
        units,
        source,
        notes,
        _offered(kept, order),
        fold.channel,
    )
    return logs.check_log(log, where)


def _kept(fold: Fold) -> tuple[list[Row], tuple[str, ...]]:
    """The decisions that say something, and what was passed over.

    Of a forced arm only its own probability is known. Where most are so nothing is known of the other arms
    anyway; where few are, they would cost what is known of all other decisions, and are left out.
    """
    rows, left = [], Counter[str]()
    for row in fold.rows.values():
        why = row.state if row.state != "learnt" else "forced" if row.probability is None else ""
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


def laws(told: Sequence[Mapping[str, float] | None], arms: Sequence[str], where: Where) -> Array | None:
    """The probabilities of all arms, (n, K); None where those of a round are not known."""
    if None in told:
        return None
    place = {name: i for i, name in enumerate(arms)}
    found = np.zeros((len(told), len(arms)))
    for i, law in enumerate(told):
        for name, chance in (law or {}).items():
            if name not in place:
                raise InputError(
                    where.of(i), f"{name!r} might be chosen", f"arms in the list: {', '.join(arms)}"
                )
            found[i, place[name]] = chance
    return found


def _offered(kept: Sequence[Row], arms: Sequence[str]) -> Bools | None:
    """The arms that might be chosen; None where that is all of them, or not known."""
    if any(row.law is None for row in kept):
        return None
    found = np.array([[name in (row.law or ()) for name in arms] for row in kept])
    return None if found.all() else found


def matrix(told: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    """Numbers by name as rows, (n, d): not a number where one is missing."""
    return np.array([[one.get(name, np.nan) for name in names] for one in told])


def _units(kept: Sequence[Row]) -> tuple[Any, tuple[str, ...]]:
    """Whose each context is, as the agent took it: those without a name are of one unit, too."""
    said = [row.unit for row in kept]
    names = list(dict.fromkeys(said))
    place = {name: i for i, name in enumerate(names)}
    return (None, ()) if names == [""] else (np.array([place[one] for one in said]), tuple(names))


def text(where: str, told: Told, name: str) -> str:
    """A field that holds text, which is not empty; what is not so is refused with the line and the field."""
    found = told.get(name)
    if not isinstance(found, str) or not found:
        raise InputError(f"{where}, {name}", _said(told, name), "text")
    return found


def number(where: str, told: Told, name: str) -> float:
    """A field that holds a number; a truth value is none."""
    return as_number(f"{where}, {name}", told.get(name))


def number_or_none(where: str, told: Told, name: str) -> float | None:
    """A number, where it may be left out, or be null."""
    return None if told.get(name) is None else number(where, told, name)


def as_number(field: str, value: object) -> float:
    """The number itself; whole ones of 400 digits are none that can be used."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise InputError(field, "nothing" if value is None else shown(value), "a number")


def numbers(where: str, told: Told, name: str) -> dict[str, float]:
    """A number for each of some names; null is not a number."""
    found = told.get(name)
    if not isinstance(found, Mapping):
        raise InputError(f"{where}, {name}", _said(told, name), "a number for each name, in {}")
    one = f"{where}, {name}."
    return {key: float("nan") if x is None else as_number(one + key, x) for key, x in found.items()}


def names(where: str, told: Told, name: str) -> list[str]:
    """A list of names, or what has something to say of each."""
    found = told.get(name)
    if not isinstance(found, list | tuple | Mapping) or not all(isinstance(one, str) for one in found):
        raise InputError(f"{where}, {name}", _said(told, name), "a list of names")
    return list(found)


def some_names(where: str, told: Told, name: str) -> list[str]:
    """A list of names, where there may be none."""
    return [] if told.get(name) is None else names(where, told, name)


def _said(told: Told, name: str) -> str:
    return "nothing" if told.get(name) is None else shown(told[name])
