"""The log of a live problem, from its events: of a store, of a service, of an export, all the same.

A decision becomes a row when its reward was learnt: one that came in time, one combined from several, or the
default once the reward window was over. Cancelled, open and erased decisions are left out, and those that
expired without a default; the notes count them. The channel of the problem, if it has one, is in the log,
too. Stores are recognised by their methods, since evaluation does not import `unfog.live`.

With K arms to choose from, an arm that the agent takes with share s had the probability
(1 - epsilon) s + epsilon / K. The arms to choose from follow from earlier events: arms are added, retired
and restored. An arm that somebody else chose has the probability they reported.

Also here, for every reader: the options of a caller (`ReaderOptions`), and checked fields of JSON objects
(`text`, `number` and so on).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from unfog import validation
from unfog._table import Column, Where
from unfog.channel.channel import Channel, channel
from unfog.channel.context import ContextSpec, Encoded, read_context
from unfog.evaluation import log as logs
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.readers import table
from unfog.evaluation.readers.table import Columns
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError, display

Fields = Mapping[str, Any]
Event = Mapping[str, Any]
LATER = ("reward", "reveal", "cancel", "expire")  # kinds of events about an earlier decision
TAKES = ("problem", "arms")  # of what a caller may say
LEFT = {
    "cancelled": "were cancelled",
    "open": "have no reward yet",
    "expired": "have no reward: its window was over",
    "erased": "were erased",
    "elsewhere": "were made by somebody else, and no probability was logged",
    "partly": "were made by somebody else, who told the probability of the chosen arm alone",
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
    """Several live problems: `unfog.live.Store`, or a service."""

    def names(self) -> Sequence[str]:
        """The problems."""

    def events(self, name: str, since: int = 0) -> Iterable[Event]:
        """All events of one of them."""


Opener = Callable[[Path], AbstractContextManager[Store]]
"""Opens the file of a live store, such as `unfog.live.open`."""


class ReaderOptions(NamedTuple):
    """What a caller gives besides the log; None for what is not given.

    Options that do not apply to a log are refused: a caller who names a column of a live store expects it to
    be used.
    """

    columns: Columns | None
    problem: str | None
    arms: list[str] | None
    coordinates: list[str] | None
    probability: float | None
    opener: Opener | None

    def only(self, what: str, *accepts: str) -> "ReaderOptions":
        """Raise InputError if an option is given that this kind of log does not take."""
        for name, why in WHY.items():
            value = getattr(self, name)
            if value is not None and name not in accepts:
                field = "coordinates of the context" if name == "coordinates" else name
                actual = value if isinstance(value, str) else display(value)
                raise InputError(field, actual, f"nothing, for {what}: {why}")
        return self

    @property
    def of_table(self) -> Columns:
        """The columns, and the probability where all arms were drawn evenly."""
        columns = self.columns or Columns()
        extra = {} if self.probability is None else {"probability": self.probability}
        return Columns(**{**vars(columns), **extra})


@dataclass
class Row:
    """A decision, and what became of it; an erased one has only its id."""

    id: str
    context: Mapping[str, float] = field(default_factory=dict)
    arm: str = ""
    probability: float | None = None  # None: somebody else chose, and did not say
    time: float = float("nan")
    unit: str = ""
    law: dict[str, float] | None = None  # the probabilities of arms; None: only the arm's own is known
    reward: float | None = None
    noise_sd: Mapping[str, float] | None = None  # of this reading alone
    noise_cov: Any = None
    state: str = "open"
    true: dict[str, float] = field(default_factory=dict)


class Fold:
    """The state after some events: decisions, each with what became of it, and arms."""

    def __init__(self, where: str, terms: Event) -> None:
        """Start from the event that created the problem."""
        self.name = text(where, terms, "problem")
        if terms.get("arm_size") is not None:
            actual = f"arms of {self.name!r} come with each decision"
            raise InputError("log", actual, "a problem with arms of its own, which have a name for good")
        self.spec = _read_spec(where, terms)
        self.coordinates = tuple(names(where, terms, "context")) if self.spec is None else self.spec.columns
        self.epsilon = number(where, terms, "epsilon")
        self.active = dict.fromkeys(names(where, terms, "arms"), True)
        terms_channel = terms.get("channel")
        self.channel = None if terms_channel is None else channel(terms_channel, self.coordinates)
        self.readings = self.coordinates if self.spec is None else self.spec.readings
        self.rows: dict[str, Row] = {}

    def add(self, where: str, event: Event) -> None:
        """Apply one more event; `where` it stands, for error messages."""
        kind = event["kind"]
        if kind == "decide":
            self._add_decision(where, event)
        elif kind == "arms":
            for change, active in (("add", True), ("restore", True), ("retire", False)):
                self.active |= dict.fromkeys(some_names(where, event, change), active)
        elif kind in LATER:
            row = self.rows.get(text(where, event, "decision"))
            if row is not None and row.state != "erased":
                _apply_later_event(where, kind, row, event)

    def _add_decision(self, where: str, event: Event) -> None:
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
            None if "logged_arm" in event else self._read_law(where, event),
            noise_sd=self._read_sds(where, event),
            noise_cov=event.get("noise_cov"),
        )

    def _read_sds(self, where: str, event: Event) -> Mapping[str, float] | None:
        """The noise of this reading alone, by coordinate, if it is said in standard deviations."""
        sds = event.get("noise_sd")
        if sds is None or isinstance(sds, Mapping):
            return None if sds is None else numbers(where, event, "noise_sd")
        return dict.fromkeys(self.readings, number(where, event, "noise_sd"))

    def _read_law(self, where: str, event: Event) -> dict[str, float]:
        active = [name for name, active in self.active.items() if active]
        choice = some_names(where, event, "arms") or active
        epsilon = 0.0 if event.get("pinned") else self.epsilon
        law = {name: epsilon / len(choice) for name in choice}
        for name, chance in numbers(where, event, "agent_probabilities").items():
            if name not in law:
                raise InputError(
                    f"{where}, agent_probabilities", display(name), f"arms of that time: {', '.join(choice)}"
                )
            law[name] += (1 - epsilon) * chance
        return law


def _read_spec(where: str, terms: Event) -> ContextSpec | None:
    """What is said of each coordinate of the context; None where there are names alone."""
    if not isinstance(terms.get("context"), Mapping):
        return None
    return read_context(f"{where}, context", terms["context"])


def _apply_later_event(where: str, kind: str, row: Row, event: Event) -> None:
    """Apply an event about an earlier decision."""
    if kind == "reveal" and event.get("context") is not None:
        row.true |= numbers(where, event, "context")
    elif kind == "cancel" and event.get("outcome") == "cancelled":
        row.reward, row.state = None, "cancelled"
    elif kind == "expire" and event.get("expired") == "reward":
        row.reward = number_or_none(where, event, "value")
        row.state = "expired" if row.reward is None else "learnt"
    elif kind == "reward" and event.get("outcome") in table.LEARNT:
        row.reward, row.state = number(where, event, "value"), "learnt"


def read(
    events: Iterable[Event], problem: str | None, arms: Sequence[str] | None, source: str = ""
) -> DecisionLog:
    """The log of one problem, from events that may belong to several."""
    return read_lines(((f"event {one.get('seq')}", one) for one in events), problem, arms, source)


def read_lines(
    lines: Iterable[tuple[str, Event]], problem: str | None, arms: Sequence[str] | None, source: str
) -> DecisionLog:
    """The log of one problem, from pairs of where an event stands and the event."""
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
        actual = (
            f"the problems {', '.join(folds)}" if folds else "no such problem" if problem else "no problem"
        )
        raise InputError("problem", actual, "the name of one that is in the log")
    (fold,) = folds.values()
    return _build_log(fold, arms, source or f"live problem {fold.name!r}")


def read_store(store: Store, problem: str | None, arms: Sequence[str] | None) -> DecisionLog:
    """The log of a problem of a store; it need not be named where it is the only one."""
    names = list(store.names())
    if problem is None and len(names) == 1:
        problem = names[0]
    if problem is None or problem not in names:
        actual = "not said, and there are several" if problem is None and names else display(problem)
        raise InputError("problem", actual, ", ".join(names) or "none: the store is empty")
    return read(store.events(problem), problem, arms)


def _build_log(fold: Fold, arms: Sequence[str] | None, source: str) -> DecisionLog:
    rows, notes = _select_rows(fold)
    if not rows:
        actual = "; ".join(notes) or "no decisions"
        raise InputError(
            "log", f"no rows: {actual}", "one decision at least, with its reward and probability"
        )
    where = Where("decision", [row.id for row in rows])
    known_arms = list(fold.active) if arms is None else list(arms)
    column = Column("arm", np.array([row.arm for row in rows], object), where)
    arm, order = table.arm_numbers(column, known_arms)
    true = matrix([row.true for row in rows], fold.coordinates)
    unit, units = _number_units(rows)
    log = DecisionLog(
        fold.coordinates,
        order,
        matrix([row.context for row in rows], fold.coordinates),
        arm,
        np.array([row.reward for row in rows], dtype=float),
        np.array([row.probability for row in rows], dtype=float),
        laws([row.law for row in rows], order, where),
        None if np.isnan(true).all() else true,
        np.array([row.time for row in rows], dtype=float),
        unit,
        units,
        source,
        notes,
        _find_offered(rows, order),
        _find_channel(fold, rows),
        _read_noises(fold, rows),
    )
    return logs.check_log(log, where)


def _read_noises(fold: Fold, rows: Sequence[Row]) -> Array | None:
    """The noise covariances of readings that have their own, (n, d, d); None if none has."""
    noise = logs.noise_of(matrix([row.noise_sd or {} for row in rows], fold.coordinates))
    if all(row.noise_cov is None for row in rows):
        return noise
    d, columns = len(fold.coordinates), [fold.coordinates.index(name) for name in fold.readings]
    noise = np.full((len(rows), d, d), np.nan) if noise is None else noise
    for i, row in enumerate(rows):
        if row.noise_cov is not None:
            field = f"decision {row.id}, noise_cov"
            own = validation.covariance(field, row.noise_cov, len(columns), exact=True)
            noise[i][np.ix_(columns, columns)] = own
    return noise


def _find_channel(fold: Fold, rows: Sequence[Row]) -> Channel | None:
    """The channel of the problem; of one whose context is told by coordinate, if all of a reading is."""
    spec = fold.spec
    if spec is None or any(not spec.is_known(name) for name in spec.readings):
        return fold.channel
    tally = spec.start()
    for values in matrix([row.context for row in rows], spec.columns):
        tally = spec.count(tally, Encoded(values, (~np.isnan(values)).astype(np.float64)))
    return spec.to_channel(tally)


def _select_rows(fold: Fold) -> tuple[list[Row], tuple[str, ...]]:
    """The decisions with a reward and a probability, and notes that count the others.

    For an arm that somebody else chose only its own probability is known, and a log has the probabilities of
    all arms for every row or for none. If such arms are the smaller part they are left out; otherwise they
    stay, and the probabilities of all arms are not used.
    """
    rows, counts = [], Counter[str]()
    for row in fold.rows.values():
        why = row.state if row.state != "learnt" else "elsewhere" if row.probability is None else ""
        counts[why] += 1
        rows += [row] if not why else []
    partly = [row for row in rows if row.law is None]
    if 2 * len(partly) < len(rows):
        rows = [row for row in rows if row.law is not None]
        counts["partly"] = len(partly)
    notes = [f"{counts[why]} decisions {reason}: left out" for why, reason in LEFT.items() if counts[why]]
    if 0 < len(rows) - len(partly) < len(rows) and counts["partly"] == 0 and partly:
        notes.append(
            f"{len(partly)} arms were chosen by somebody else: the probabilities of all arms are not used"
        )
    return rows, tuple(notes)


def laws(by_name: Sequence[Mapping[str, float] | None], arms: Sequence[str], where: Where) -> Array | None:
    """The probabilities of all arms, (n, K); None where those of a round are not known."""
    if None in by_name:
        return None
    index = {name: i for i, name in enumerate(arms)}
    probabilities = np.zeros((len(by_name), len(arms)))
    for i, law in enumerate(by_name):
        for name, chance in (law or {}).items():
            if name not in index:
                raise InputError(
                    where.of(i), f"{name!r} might be chosen", f"arms in the list: {', '.join(arms)}"
                )
            probabilities[i, index[name]] = chance
    return probabilities


def _find_offered(rows: Sequence[Row], arms: Sequence[str]) -> Bools | None:
    """Which arms were offered, (n, K); None if always all of them, or if that is not known."""
    if any(row.law is None for row in rows):
        return None
    offered = np.array([[name in (row.law or ()) for name in arms] for row in rows])
    return None if offered.all() else offered


def matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    """Mappings from names to numbers as an array (n, d): NaN where a name is missing."""
    return np.array([[row.get(name, np.nan) for name in names] for row in rows])


def _number_units(rows: Sequence[Row]) -> tuple[Any, tuple[str, ...]]:
    """The unit of each decision, as the agent saw it: decisions without one form a unit of their own."""
    row_units = [row.unit for row in rows]
    names = list(dict.fromkeys(row_units))
    index = {name: i for i, name in enumerate(names)}
    return (None, ()) if names == [""] else (np.array([index[unit] for unit in row_units]), tuple(names))


def text(where: str, fields: Fields, name: str) -> str:
    """A field that holds text, which is not empty; errors name the line and the field."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}, {name}", _display_field(fields, name), "text")
    return value


def number(where: str, fields: Fields, name: str) -> float:
    """A field that holds a number; true and false are not numbers."""
    return as_number(f"{where}, {name}", fields.get(name))


def number_or_none(where: str, fields: Fields, name: str) -> float | None:
    """A field that holds a number, or None if it is missing or null."""
    return None if fields.get(name) is None else number(where, fields, name)


def as_number(field: str, value: object) -> float:
    """The value as a float; an integer too large for one is refused."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise InputError(field, "nothing" if value is None else display(value), "a number")


def numbers(where: str, fields: Fields, name: str) -> dict[str, float]:
    """A field that maps names to numbers; null becomes NaN."""
    value = fields.get(name)
    if not isinstance(value, Mapping):
        raise InputError(f"{where}, {name}", _display_field(fields, name), "a number for each name, in {}")
    prefix = f"{where}, {name}."
    return {key: float("nan") if x is None else as_number(prefix + key, x) for key, x in value.items()}


def names(where: str, fields: Fields, name: str) -> list[str]:
    """A field that is a list of names, or a mapping from names."""
    value = fields.get(name)
    if not isinstance(value, list | tuple | Mapping) or not all(isinstance(one, str) for one in value):
        raise InputError(f"{where}, {name}", _display_field(fields, name), "a list of names")
    return list(value)


def some_names(where: str, fields: Fields, name: str) -> list[str]:
    """A field that is a list of names, or missing or null: then there are none."""
    return [] if fields.get(name) is None else names(where, fields, name)


def _display_field(fields: Fields, name: str) -> str:
    return "nothing" if fields.get(name) is None else display(fields[name])
