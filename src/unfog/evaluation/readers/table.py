"""A table of decisions as a log: a data frame, a mapping of columns, or a CSV file.

A row is a decision. Empty cells are coordinates that were lost, and truths that are not known; elsewhere they
are refused. A table that `unfog live table` wrote says what became of each decision: those without a reward
that was learnt are left out, and counted.

Which column is what is said by arguments, or in a few lines of TOML (`Columns`):

    context = ["steps_today", "sleep_hours"]     reward = "walked"
    arm = "message"                              probability = "p"

What is not said is looked for under the names that `unfog live table` writes: `context.<name>`,
`true.<name>`, arm, reward, probability, time, unit; and `probability.<arm>` for those of every arm.

The cells of a column become numbers, times or names in `unfog._table`, whatever holds them: text of a file, a
series, an array.

A CSV file is read row by row, each held against the header, so that what is wrong has its row. Where pandas
is there it reads a file in which nothing is odd (no quotes, as many separators as there should be, numbers
where they are wanted) in a tenth of the time.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog import _io, _table
from unfog._table import HEADER, Column, check_there, counted, first
from unfog.evaluation import log as logs
from unfog.evaluation.log import WITHOUT, Log
from unfog.maths.arrays import Array, Bools, Ints
from unfog.validation import LONGEST_LOOKED_UP, InputError, shown

ONE = ("arm", "reward", "time", "unit")
LEARNT = ("learnt", "waits")  # what becomes of decisions whose reward counts
OUTCOMES = (*LEARNT, "open", "kept", "void", "expired", "dropped", "erased")
OUTCOME = "outcome"  # the column that says it
TAKES = ("columns", "arms", "coordinates", "probability")  # of what a caller may say
PIECE = 50_000  # rows of a CSV file that are read at a time


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of columns; None for those that are called as usual, or are not there.

    `true` has a column for each coordinate, in the order of `context`, or is a mapping from columns of the
    context to columns of the truth. `probabilities` is a mapping from arms to columns. `probability` is a
    column, or a number where all arms were drawn evenly.
    """

    context: Sequence[str] | None = None
    arm: str | None = None
    reward: str | None = None
    probability: str | float | None = None
    true: Sequence[str] | Mapping[str, str] | None = None
    time: str | None = None
    unit: str | None = None
    probabilities: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no name."""
        for name in ONE:
            if not isinstance(getattr(self, name), str | None):
                raise InputError(f"columns.{name}", shown(getattr(self, name)), "the name of a column")
        if isinstance(self.context, str) or isinstance(self.true, str):
            one = "context" if isinstance(self.context, str) else "true"
            raise InputError(f"columns.{one}", shown(getattr(self, one)), "a list of names of columns")


class Found(NamedTuple):
    """The columns of one table: which is what."""

    coordinates: tuple[str, ...]
    context: tuple[str, ...]
    true: dict[str, str]  # by coordinate
    arm: str
    reward: str
    probability: str | float | None  # None: it follows from those of all arms
    probabilities: dict[str, str]  # by arm
    time: str | None
    unit: str | None

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        own = [self.probability] if isinstance(self.probability, str) else []
        return [*self.context, *self.true.values(), *self.probabilities.values(), *own, self.reward]

    @property
    def texts(self) -> list[str]:
        """The columns that hold names, or times."""
        return [name for name in (self.arm, self.time, self.unit) if name is not None]

    @property
    def called(self) -> dict[str, str]:
        """What fields of the log are called, for complaints."""
        names = {f"true.{one}": column for one, column in self.true.items()}
        names |= {f"context.{one}": c for one, c in zip(self.coordinates, self.context, strict=True)}
        own = {"probability": self.probability} if isinstance(self.probability, str) else {}
        return {**names, **own, "reward": self.reward, "time": self.time or "time"}


def from_toml(path: str | Path) -> Columns:
    """The columns that a file says, at its top or in a table `columns`."""
    told = _io.toml("columns", path, "a file of TOML")
    return from_mapping(told.get("columns", told))


def from_mapping(told: Mapping[str, Any]) -> Columns:
    """The columns that a mapping says."""
    known = [one.name for one in fields(Columns)]
    if not isinstance(told, Mapping):
        raise InputError("columns", shown(told), f"a table of {', '.join(known)}")
    for name in told:
        if name not in known:
            raise InputError(f"columns.{name}", "no such field", ", ".join(known))
    return Columns(**told)


def found(columns: Columns, names: Sequence[str], coordinates: Sequence[str] | None = None) -> Found:
    """What of a table's columns is what; refused where one is missing, with those that there are."""
    if not names:
        raise InputError("log", "no columns", "a header with their names, then a row for each decision")
    _table.check_once(names)
    context = _context(columns, names, coordinates)
    called = tuple(name.removeprefix("context.") for name in context) if coordinates is None else coordinates
    if len(called) != len(context):
        raise InputError("coordinates", shown(coordinates), f"a name for each of {', '.join(context)}")
    every = dict(columns.probabilities) or {
        name.removeprefix("probability."): name for name in names if name.startswith("probability.")
    }
    for column in every.values():
        check_there(names, "probabilities", column)
    one = {name: _column(names, name, getattr(columns, name), name in ("arm", "reward")) for name in ONE}
    return Found(
        tuple(called),
        context,
        _true(columns, names, context, called),
        str(one["arm"]),
        str(one["reward"]),
        _probability_column(columns, names, every),
        every,
        one["time"],
        one["unit"],
    )


def _column(names: Sequence[str], field_: str, told: str | None, needed: bool) -> str | None:
    if told is None and not needed and field_ not in names:
        return None
    return check_there(names, field_, field_ if told is None else told)


def _context(columns: Columns, names: Sequence[str], coordinates: Sequence[str] | None) -> tuple[str, ...]:
    if columns.context is not None:
        wanted = list(columns.context)
    elif coordinates is not None:
        wanted = [one if f"context.{one}" not in names else f"context.{one}" for one in coordinates]
    else:
        wanted = [name for name in names if str(name).startswith("context.")]
    if not wanted:
        allowed = f"columns context.<name>; or say which they are, out of: {', '.join(map(str, names))}"
        raise InputError("context", "no columns", allowed)
    return tuple(check_there(names, "context", one) for one in wanted)


def _true(
    columns: Columns, names: Sequence[str], context: Sequence[str], called: Sequence[str]
) -> dict[str, str]:
    """The columns of true contexts, by coordinate."""
    told, by_name = columns.true, {**dict(zip(context, called, strict=True)), **{one: one for one in called}}
    if told is None:
        return {one: f"true.{one}" for one in called if f"true.{one}" in names}
    if not isinstance(told, Mapping):
        if len(told) != len(context):
            allowed = f"a column for each of {', '.join(context)}; or a mapping from them"
            raise InputError("columns.true", shown(list(told)), allowed)
        told = dict(zip(context, told, strict=True))
    for one in told:
        if one not in by_name:
            raise InputError("columns.true", shown(one), f"columns of the context: {', '.join(context)}")
    return {by_name[one]: check_there(names, "true", column) for one, column in told.items()}


def _probability_column(
    columns: Columns, names: Sequence[str], every: Mapping[str, str]
) -> str | float | None:
    told = columns.probability
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    if told is None and "probability" not in names:
        if every:
            return None
        raise InputError("probability", f"no such column among {', '.join(map(str, names))}", WITHOUT)
    return check_there(names, "probability", "probability" if told is None else told)


def arm_numbers(column: Column, listed: Iterable[str] | None) -> tuple[Ints, tuple[str, ...]]:
    """Places of the arms drawn, in the list of arms; without one, in all that were drawn, sorted."""
    places, names = column.names()
    at = first(places < 0)
    if at is not None:
        raise InputError(column.at(at), "nothing", "the arm that was drawn")
    order = sorted(names, key=_by_number) if listed is None else list(listed)
    known = {name: i for i, name in enumerate(order)}
    moved = np.array([known.get(name, -1) for name in names], dtype=np.intp)
    found = moved[places]
    at = first(found < 0)
    if at is not None:
        raise InputError(column.at(at), names[places[at]], f"one of the arms: {', '.join(order)}")
    return found, tuple(order)


def _by_number(name: str) -> tuple[int, int, str]:
    """Arm 10 comes after arm 9."""
    whole = name.isascii() and name.isdigit() and len(name) <= LONGEST_LOOKED_UP
    return (0, int(name), "") if whole else (1, 0, name)


def read_table(
    table: Any, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None, source: str
) -> Log:
    """The log of a table whose columns are taken by name."""
    names = _table.names_of(table) or []
    which = found(columns, names, coordinates)
    wanted = {*which.numbers, *which.texts, *outcome(names, which)}
    return made(_table.columns(table, sorted(wanted)), which, arms, source)


def outcome(names: Sequence[str], which: Found) -> list[str]:
    """The column that says what became of decisions, unless a caller has another use for that name."""
    used = OUTCOME in (*which.numbers, *which.texts)
    return [OUTCOME] if OUTCOME in names and not used else []


def made(own: dict[str, Column], which: Found, arms: Sequence[str] | None, source: str) -> Log:
    """The log of columns that are there."""
    own, notes = _without_reward(own, which)
    where = own[which.arm].where
    if not len(own[which.arm].cells):
        raise InputError("log", f"no rows in {source}", "one decision at least, with its reward")
    if arms is None and which.probabilities:
        arms = list(which.probabilities)
    arm, listed = arm_numbers(own[which.arm], arms)
    every = _every(own, which, listed)
    unit, units = (None, ()) if which.unit is None else _units(own[which.unit])
    log = Log(
        which.coordinates,
        listed,
        _stacked(own, which.context),
        arm,
        own[which.reward].numbers(),
        _probability(own, which, every, arm),
        even(which.probability, len(arm), len(listed)) if every is None else every,
        _truth(own, which),
        None if which.time is None else own[which.time].times(),
        unit,
        units,
        source,
        notes,
    )
    return logs.check_log(log, where, which.called)


def _without_reward(own: dict[str, Column], which: Found) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Leave out what a table of live decisions says has no reward, or was chosen by somebody else."""
    said = own[OUTCOME].cells.tolist() if outcome(list(own), which) else []
    if not said or not set(said) <= {*OUTCOMES}:
        return own, ()
    keep: Bools = np.array([one in LEARNT for one in said])
    notes = [f"{n} decisions are {one}" for one, n in sorted(Counter(said).items()) if one not in LEARNT]
    if isinstance(which.probability, str):
        told = own[which.probability].numbers()
        forced = keep & np.isnan(told)
        if forced.any() and not np.isnan(told).all():
            notes.append(f"{forced.sum()} decisions were forced, and no probability was told")
            keep &= ~forced
    left = {name: column.kept(keep) for name, column in own.items()}
    return left, tuple(f"{note}: left out" for note in notes)


def _stacked(own: Mapping[str, Column], names: Sequence[str]) -> Array:
    return np.stack([own[name].numbers() for name in names], axis=1)


def _every(own: Mapping[str, Column], which: Found, arms: Sequence[str]) -> Array | None:
    """The probabilities of all arms, where they are there."""
    if not which.probabilities:
        return None
    missing = [arm for arm in arms if arm not in which.probabilities]
    if missing or len(which.probabilities) != len(arms):
        said = f"columns for {', '.join(which.probabilities)}"
        raise InputError("probabilities", said, f"one for each arm: {', '.join(arms)}")
    return _stacked(own, [which.probabilities[arm] for arm in arms])


def _probability(own: Mapping[str, Column], which: Found, every: Array | None, arm: Ints) -> Array:
    """The probability of the arm that was drawn."""
    told = which.probability
    if isinstance(told, str):
        found = own[told].numbers()
        if np.isnan(found).all():
            raise InputError("probability", f"the column {told!r} is empty", logs.WITHOUT)
        return found
    if told is not None:
        return np.full(len(arm), told)
    assert every is not None  # of the columns one or the other is there
    return every[np.arange(len(arm)), arm]


def even(probability: object, rounds: int, arms: int) -> Array | None:
    """The probabilities of arms that were drawn evenly; refused where it is another number than 1 / K."""
    if not isinstance(probability, float):
        return None
    if abs(probability * arms - 1) > logs.CLOSE:
        allowed = f"{1 / arms:.6g} if all of {arms} arms were drawn evenly; else a column of probabilities"
        raise InputError("probability", probability, f"{allowed}; list arms that were never drawn, too")
    return np.full((rounds, arms), probability)


def _truth(own: Mapping[str, Column], which: Found) -> Array | None:
    if not which.true:
        return None
    empty = np.full(len(own[which.arm].cells), np.nan)
    told = {one: own[name].numbers() for one, name in which.true.items()}
    found = np.stack([told.get(one, empty) for one in which.coordinates], axis=1)
    return None if np.isnan(found).all() else found


def _units(column: Column) -> tuple[Ints | None, tuple[str, ...]]:
    """Whose each row is; none where all cells are empty."""
    places, names = column.names()
    at = first(places < 0)
    if at is not None and names:
        raise InputError(column.at(at), "nothing", "whose context it is: every row says so, or none")
    return (places, tuple(names)) if names else (None, ())


def read_csv(
    path: Path, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None
) -> Log:
    """The log of a file with a header; commas, semicolons or tabs."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            separator = max(",;\t", key=file.readline().count)
            file.seek(0)
            names, rows = _table.csv_rows(file, separator)
            which = found(columns, names, coordinates)
            texts = [*which.texts, *outcome(names, which)]
            own = _quickly(path, separator, names, which.numbers, texts)
            if own is None:
                own = _columns(rows, names, which.numbers, texts)
    except UnicodeDecodeError as error:
        raise InputError("log", f"{path.name} cannot be read ({error})", "CSV in UTF-8") from None
    where = counted(len(own[which.arm]), HEADER + 1)
    return made({name: Column(name, cells, where) for name, cells in own.items()}, which, arms, path.name)


def _quickly(
    path: Path, separator: str, names: Sequence[str], numbers: Sequence[str], texts: Sequence[str]
) -> dict[str, Any] | None:
    """The columns that are wanted, by pandas; None where it is not there, or something is odd."""
    data = path.read_bytes() if find_spec("pandas") else b""
    if not data or b'"' in data or not _even(data, separator, len(names)):
        return None
    import pandas as pd

    places, wanted = {name: i for i, name in enumerate(names)}, {*numbers, *texts}
    # Numbers as float() reads them, which is what pandas does by itself from 3.1 on.
    old = [int(part) for part in pd.__version__.split(".")[:2]] < [3, 1]
    exact: Any = {"float_precision": "round_trip"} if old else {}
    try:
        frame = pd.read_csv(
            BytesIO(data),
            sep=separator,
            header=0,
            names=list(names),
            usecols=sorted(places[name] for name in wanted),
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,
            na_values={name: [""] for name in numbers},
            **exact,
            encoding="utf-8-sig",
        )
    except (ValueError, OverflowError):  # the errors of its parser are such, too
        return None
    own = {name: np.asarray(frame[name]) for name in wanted}
    odd = any(own[name].dtype.kind not in "iuf" for name in numbers)
    rows = data.count(b"\n") + (not data.endswith(b"\n"))
    return None if odd or len(frame) != rows - HEADER else own


def _even(data: bytes, separator: str, width: int) -> bool:
    """Whether all lines have as many values: pandas would fill up, or cut, those that have not."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    ends = ends if data.endswith(b"\n") else np.append(ends, len(text))
    found = np.searchsorted(np.flatnonzero(text == ord(separator)), ends)
    return bool((np.diff(found, prepend=0) == width - 1).all())


def _columns(
    rows: Iterable[tuple[int, list[str]]],
    names: Sequence[str],
    numbers: Collection[str],
    texts: Collection[str],
) -> dict[str, Any]:
    """The columns that are wanted."""
    parts: dict[str, list[Any]] = {name: [] for name in (*numbers, *texts)}
    whole, done = _without_gaps(rows, len(names)), 0
    while piece := list(islice(whole, PIECE)):
        where = counted(len(piece), done + HEADER + 1)
        cells = dict(zip(names, zip(*piece, strict=True), strict=True))
        for name, part in parts.items():
            column = Column(name, np.array(cells[name], object), where)
            part.append(column.numbers() if name in numbers else column.cells)
        done += len(piece)
    return {name: np.concatenate(part) if part else np.empty(0) for name, part in parts.items()}


def _without_gaps(rows: Iterable[tuple[int, list[str]]], width: int) -> Iterator[list[str]]:
    """The rows; refuse empty ones, but for those at the end of the file."""
    for expected, (place, row) in enumerate(rows, HEADER + 1):
        if place != expected:
            allowed = f"{width} values, one for each column"
            raise InputError(f"row {expected}", "an empty row", allowed)
        yield row
