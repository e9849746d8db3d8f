"""A table of decisions as a log: a data frame, a mapping of columns, or a CSV file.

A row is a decision. Empty cells are coordinates that were lost, and truths that are not known; elsewhere they
are refused. A table that `unfog live table` wrote says what became of each decision: those without a reward
that was learnt are left out, and counted.

Which column is what is said by arguments, or in a few lines of TOML (`Columns`):

    context = ["steps_today", "sleep_hours"]     reward = "walked"
    arm = "message"                              probability = "p"

What is not said is looked for under the names that `unfog live table` writes: `context.<name>`,
`true.<name>`, arm, reward, probability, time, unit; and `probability.<arm>` for those of every arm.

The cells of a column become numbers, times or names, whatever holds them: text of a file, a series, an array.
An empty cell is not a number, and a name that is not there is -1: who knows whether it may be so judges.

A CSV file is read row by row, each held against the header, so that what is wrong has its row. Where pandas
is there it reads a file in which nothing is odd (no quotes, as many separators as there should be, numbers
where they are wanted) in a tenth of the time.
"""

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from unfog import _io
from unfog.evaluation import log as logs
from unfog.evaluation.log import WITHOUT, Log, Where, counted, first
from unfog.maths.arrays import Array, Bools, Ints
from unfog.validation import LONGEST_LOOKED_UP, InputError, shown

ONE = ("arm", "reward", "time", "unit")
EMPTY = frozenset({"", "NA", "NaN", "nan", "null", "None", "<NA>", "NaT"})  # as files and frames write it
LEARNT = ("learnt", "waits")  # what becomes of decisions whose reward counts
OUTCOMES = (*LEARNT, "open", "kept", "void", "expired", "dropped", "erased")
OUTCOME = "outcome"  # the column that says it
TAKES = ("columns", "arms", "coordinates", "probability")  # of what a caller may say
PIECE = 50_000  # rows of a CSV file that are read at a time
HEADER = 1  # row of a CSV file


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
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(str(name), "two columns of this name", "each column once")
    context = _context(columns, names, coordinates)
    called = tuple(name.removeprefix("context.") for name in context) if coordinates is None else coordinates
    if len(called) != len(context):
        raise InputError("coordinates", shown(coordinates), f"a name for each of {', '.join(context)}")
    every = dict(columns.probabilities) or {
        name.removeprefix("probability."): name for name in names if name.startswith("probability.")
    }
    for column in every.values():
        there(names, "probabilities", column)
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


def there(names: Sequence[str], field_: str, column: object) -> str:
    """A column that is there."""
    if not isinstance(column, str) or column not in names:
        raise InputError(field_, f"no column {column!r}", f"one of: {', '.join(map(str, names)) or 'none'}")
    return column


def _column(names: Sequence[str], field_: str, told: str | None, needed: bool) -> str | None:
    if told is None and not needed and field_ not in names:
        return None
    return there(names, field_, field_ if told is None else told)


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
    return tuple(there(names, "context", one) for one in wanted)


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
    return {by_name[one]: there(names, "true", column) for one, column in told.items()}


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
    return there(names, "probability", "probability" if told is None else told)


def numbers(column: str, values: Any, where: Where) -> Array:
    """Floats, not a number where a cell is empty; text is read, truth values are refused."""
    found = np.asarray(values)
    if found.dtype.kind in "iuf":
        return found.astype(np.float64)
    cells = found.tolist()
    try:
        if found.dtype.kind != "b" and not any(isinstance(x, bool) for x in cells):
            return np.array([float(x) for x in cells])
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([_number(where.of(i, column), x) for i, x in enumerate(cells)])


def _number(field: str, cell: object) -> float:
    """One cell; slower, and with the complaint."""
    if str(cell).strip() in EMPTY:
        return np.nan
    try:
        if not isinstance(cell, bool):
            return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass
    allowed = "a number, or nothing where it is not known"
    truth = str(cell).strip().lower() in ("true", "false")
    raise InputError(field, shown(cell), f"{allowed}; 1 for true and 0 for false" if truth else allowed)


def times(column: str, values: Any, where: Where) -> Array:
    """Numbers as they are; dates as seconds since 1970, in UTC where they name no zone."""
    found = np.asarray(values)
    if found.dtype.kind == "M":
        since = found.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(found), np.nan, since)
    if found.dtype.kind in "OU":
        try:
            return np.array([float(x) for x in found.tolist()])
        except (TypeError, ValueError, OverflowError):
            return np.array([seconds(where.of(i, column), x) for i, x in enumerate(found.tolist())])
    return numbers(column, found, where)


def seconds(field: str, cell: Any) -> float:
    """A time: a number, or a date as ISO 8601 writes it."""
    if str(cell).strip() in EMPTY:
        return np.nan
    try:
        if isinstance(cell, str) and ("-" in cell[1:] or ":" in cell):
            cell = datetime.fromisoformat(cell.strip())
        if not isinstance(cell, datetime):
            return _number(field, cell)
        return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        allowed = "a number, or a date with its time, such as 2026-03-01T12:00:00Z"
        raise InputError(field, shown(cell), allowed) from None


def coded(column: str, values: Any, where: Where) -> tuple[Ints, list[str]]:
    """A place in a list of names for each cell, -1 where it is empty; names in the order they come."""
    found = np.asarray(values)
    if found.dtype.kind in "iu":
        whole, places = np.unique(found, return_inverse=True)
        return places, [str(x) for x in whole.tolist()]
    cells, known = found.tolist(), dict[Any, int]()
    at = next((i for i, x in enumerate(cells) if isinstance(x, list | dict | set)), None)
    if at is not None:
        raise InputError(where.of(at, column), shown(cells[at]), "one name")
    raw = np.array([known.setdefault(x, len(known)) for x in cells], dtype=np.intp)
    names: dict[str, int] = {}
    places = np.array([_place(names, _text(x)) for x in known], dtype=np.intp)
    return (places[raw] if len(known) else raw), list(names)


def _text(cell: object) -> str:
    """What is written in a cell; a whole number that became a float is whole again."""
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if whole else str(cell).strip()  # type: ignore[call-overload]


def _place(names: dict[str, int], name: str) -> int:
    return -1 if name in EMPTY else names.setdefault(name, len(names))


def arm_numbers(
    column: str, values: Any, where: Where, listed: Iterable[str] | None
) -> tuple[Ints, tuple[str, ...]]:
    """Places of the arms drawn, in the list of arms; without one, in all that were drawn, sorted."""
    places, names = coded(column, values, where)
    at = first(places < 0)
    if at is not None:
        raise InputError(where.of(at, column), "nothing", "the arm that was drawn")
    order = sorted(names, key=_by_number) if listed is None else list(listed)
    known = {name: i for i, name in enumerate(order)}
    moved = np.array([known.get(name, -1) for name in names], dtype=np.intp)
    found = moved[places]
    at = first(found < 0)
    if at is not None:
        raise InputError(where.of(at, column), names[places[at]], f"one of the arms: {', '.join(order)}")
    return found, tuple(order)


def _by_number(name: str) -> tuple[int, int, str]:
    """Arm 10 comes after arm 9."""
    whole = name.isascii() and name.isdigit() and len(name) <= LONGEST_LOOKED_UP
    return (0, int(name), "") if whole else (1, 0, name)


def names_of(table: Any) -> list[str] | None:
    """The names of a table's columns; None of what is no table."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    columns = table.dtype.names if isinstance(table, np.ndarray) else getattr(table, "columns", None)
    return None if columns is None or not hasattr(table, "__getitem__") else [str(name) for name in columns]


def read_table(
    table: Any, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None, source: str
) -> Log:
    """The log of a table whose columns are taken by name."""
    names = names_of(table) or []
    which = found(columns, names, coordinates)
    wanted = {*which.numbers, *which.texts, *outcome(names, which)}
    own = {name: _cells(name, table[name]) for name in sorted(wanted)}
    _refuse_lengths(own)
    return made(own, which, arms, counted(len(own[which.arm])), source)


def outcome(names: Sequence[str], which: Found) -> list[str]:
    """The column that says what became of decisions, unless a caller has another use for that name."""
    used = OUTCOME in (*which.numbers, *which.texts)
    return [OUTCOME] if OUTCOME in names and not used else []


def _cells(name: str, column: Any) -> Any:
    """An array; of a list every cell as it is, since NumPy would make a number of a truth value."""
    listed = isinstance(column, list | tuple)
    found = np.array([*column, None], object)[:-1] if listed else np.asarray(column)
    if found.ndim != 1:
        raise InputError(name, f"{shown(column)}, of shape {found.shape}", "a list with a value for each row")
    return found


def _refuse_lengths(own: Mapping[str, Any]) -> None:
    sizes = {name: len(column) for name, column in own.items()}
    usual = Counter(sizes.values()).most_common(1)[0][0]
    for name, size in sizes.items():
        if size != usual:
            raise InputError(name, f"{size} rows", f"{usual}, as many as the other columns have")


def made(own: Mapping[str, Any], which: Found, arms: Sequence[str] | None, where: Where, source: str) -> Log:
    """The log of columns that are there."""
    own, where, notes = _without_reward(dict(own), which, where)
    if not len(own[which.arm]):
        raise InputError("log", f"no rows in {source}", "one decision at least, with its reward")
    if arms is None and which.probabilities:
        arms = list(which.probabilities)
    arm, listed = arm_numbers(which.arm, own[which.arm], where, arms)
    every = _every(own, which, listed, where)
    unit, units = (None, ()) if which.unit is None else _units(own[which.unit], where, which.unit)
    log = Log(
        which.coordinates,
        listed,
        _stacked(own, which.context, where),
        arm,
        numbers(which.reward, own[which.reward], where),
        _probability(own, which, every, arm, where),
        even(which.probability, len(arm), len(listed)) if every is None else every,
        _truth(own, which, where),
        None if which.time is None else times(which.time, own[which.time], where),
        unit,
        units,
        source,
        notes,
    )
    return logs.check_log(log, where, which.called)


def _without_reward(
    own: dict[str, Any], which: Found, where: Where
) -> tuple[dict[str, Any], Where, tuple[str, ...]]:
    """Leave out what a table of live decisions says has no reward, or was chosen by somebody else."""
    said = np.asarray(own.pop(OUTCOME)).tolist() if outcome(list(own), which) else []
    if not said or not set(said) <= {*OUTCOMES}:
        return own, where, ()
    keep: Bools = np.array([one in LEARNT for one in said])
    notes = [f"{n} decisions are {one}" for one, n in sorted(Counter(said).items()) if one not in LEARNT]
    if isinstance(which.probability, str):
        told = numbers(which.probability, own[which.probability], where)
        forced = keep & np.isnan(told)
        if forced.any() and not np.isnan(told).all():
            notes.append(f"{forced.sum()} decisions were forced, and no probability was told")
            keep &= ~forced
    left = {name: np.asarray(column)[keep] for name, column in own.items()}
    return left, where.kept(keep), tuple(f"{note}: left out" for note in notes)


def _stacked(own: Mapping[str, Any], columns: Sequence[str], where: Where) -> Array:
    return np.stack([numbers(name, own[name], where) for name in columns], axis=1)


def _every(own: Mapping[str, Any], which: Found, arms: Sequence[str], where: Where) -> Array | None:
    """The probabilities of all arms, where they are there."""
    if not which.probabilities:
        return None
    missing = [arm for arm in arms if arm not in which.probabilities]
    if missing or len(which.probabilities) != len(arms):
        said = f"columns for {', '.join(which.probabilities)}"
        raise InputError("probabilities", said, f"one for each arm: {', '.join(arms)}")
    return _stacked(own, [which.probabilities[arm] for arm in arms], where)


def _probability(own: Mapping[str, Any], which: Found, every: Array | None, arm: Ints, where: Where) -> Array:
    """The probability of the arm that was drawn."""
    told = which.probability
    if isinstance(told, str):
        found = numbers(told, own[told], where)
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


def _truth(own: Mapping[str, Any], which: Found, where: Where) -> Array | None:
    if not which.true:
        return None
    empty = np.full(len(own[which.arm]), np.nan)
    told = {one: numbers(name, own[name], where) for one, name in which.true.items()}
    found = np.stack([told.get(one, empty) for one in which.coordinates], axis=1)
    return None if np.isnan(found).all() else found


def _units(cells: Any, where: Where, column: str) -> tuple[Ints | None, tuple[str, ...]]:
    """Whose each row is; none where all cells are empty."""
    places, names = coded(column, cells, where)
    at = first(places < 0)
    if at is not None and names:
        raise InputError(where.of(at, column), "nothing", "whose context it is: every row says so, or none")
    return (places, tuple(names)) if names else (None, ())


def read_csv(
    path: Path, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None
) -> Log:
    """The log of a file with a header; commas, semicolons or tabs."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            separator, names = _header(file)
            which = found(columns, names, coordinates)
            texts = [*which.texts, *outcome(names, which)]
            own = _quickly(path, separator, names, which.numbers, texts)
            if own is None:
                own = _columns(csv.reader(file, delimiter=separator), names, which.numbers, texts)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError("log", f"{path.name} cannot be read ({error})", "CSV in UTF-8") from None
    return made(own, which, arms, counted(len(own[which.arm]), HEADER + 1), path.name)


def _header(file: IO[str]) -> tuple[str, list[str]]:
    """What separates columns, and their names."""
    first = file.readline()
    file.seek(0)
    separator = max(",;\t", key=first.count)
    names = next(csv.reader([first], delimiter=separator), [])
    return separator, [name.strip() for name in names]


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
    rows: Iterator[list[str]], names: Sequence[str], numbers: Collection[str], texts: Collection[str]
) -> dict[str, Any]:
    """The columns that are wanted."""
    parts: dict[str, list[Any]] = {name: [] for name in (*numbers, *texts)}
    next(rows, None)
    whole, done = _whole(rows, len(names)), 0
    while piece := list(islice(whole, PIECE)):
        where = counted(len(piece), done + HEADER + 1)
        cells = dict(zip(names, zip(*piece, strict=True), strict=True))
        for name, part in parts.items():
            part.append(
                _floats(name, cells[name], where) if name in numbers else np.array(cells[name], object)
            )
        done += len(piece)
    return {name: np.concatenate(part) if part else np.empty(0) for name, part in parts.items()}


def _whole(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """Refuse rows that are not as long as the header; empty ones at the end of the file are passed over."""
    allowed, empty = f"{width} values, one for each column", None
    for number, row in enumerate(rows, HEADER + 1):
        if not row:
            empty = empty or number
        elif empty:
            raise InputError(f"row {empty}", "an empty row", allowed)
        elif len(row) != width:
            raise InputError(f"row {number}", f"{len(row)} values", allowed)
        else:
            yield row


def _floats(name: str, cells: Sequence[str], where: Where) -> Any:
    """Most cells are numbers; the slow way is for those that are not."""
    try:
        return np.array([float(x) if x else np.nan for x in cells])
    except ValueError:
        return numbers(name, np.array(cells, object), where)
