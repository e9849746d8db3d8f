"""A table of decisions as a log: a data frame, a mapping of columns, or a CSV file.

A row is a decision. Empty cells mean lost coordinates of contexts and unknown true contexts; elsewhere they
are refused. A table that `unfog live export --csv` wrote says what became of each decision: those without a
reward that was learnt are left out, and counted.

Arguments, or a few lines of TOML, say which column is what (`Columns`):

    context = ["steps_today", "sleep_hours"]     reward = "walked"
    arm = "message"                              probability = "p"

Columns that are not named there are looked for under the names that `unfog live export --csv` writes:
`context.<name>`, `true.<name>`, arm, reward, probability, time, unit; `noise_sd.<name>` for readings that
have a noise of their own; and `probability.<arm>` for the probabilities of every arm.

The cells of a column become numbers, times or names in `unfog._table`, whatever holds them: text of a file, a
series, an array.

A CSV file is read row by row, each compared with the header, so that errors can name their row. If pandas is
installed it reads regular files (no quotes, the same number of separators in every line, numbers where they
are wanted) in a tenth of the time.
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
from unfog._table import HEADER, Column, check_there, first, number_rows
from unfog.evaluation import log as logs
from unfog.evaluation.log import WITHOUT, DecisionLog
from unfog.maths.arrays import Array, Bools, Ints
from unfog.validation import LONGEST_LOOKED_UP, InputError, display

ONE = ("arm", "reward", "time", "unit")
LEARNT = ("learnt", "waits")  # outcomes of decisions whose reward counts
OUTCOMES = (*LEARNT, "open", "kept", "cancelled", "expired", "dropped", "erased")
OUTCOME = "outcome"  # the column that has it
TAKES = ("columns", "arms", "coordinates", "probability")  # the options that apply to a table
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
        """Raise InputError for what is not a name of a column."""
        for name in ONE:
            if not isinstance(getattr(self, name), str | None):
                raise InputError(f"columns.{name}", display(getattr(self, name)), "the name of a column")
        if isinstance(self.context, str) or isinstance(self.true, str):
            one = "context" if isinstance(self.context, str) else "true"
            raise InputError(f"columns.{one}", display(getattr(self, one)), "a list of names of columns")


class ColumnRoles(NamedTuple):
    """The columns of one table, by their role in a log."""

    coordinates: tuple[str, ...]
    context: tuple[str, ...]
    true: dict[str, str]  # by coordinate
    arm: str
    reward: str
    probability: str | float | None  # None: it follows from those of all arms
    probabilities: dict[str, str]  # by arm
    time: str | None
    unit: str | None
    noise_sd: dict[str, str]  # by coordinate

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers."""
        own = [self.probability] if isinstance(self.probability, str) else []
        others = *self.true.values(), *self.noise_sd.values(), *self.probabilities.values()
        return [*self.context, *others, *own, self.reward]

    @property
    def texts(self) -> list[str]:
        """The columns that hold names, or times."""
        return [name for name in (self.arm, self.time, self.unit) if name is not None]

    @property
    def called(self) -> dict[str, str]:
        """The names that fields of the log have in the table, for error messages."""
        names = {f"true.{one}": column for one, column in self.true.items()}
        names |= {f"context.{one}": c for one, c in zip(self.coordinates, self.context, strict=True)}
        own = {"probability": self.probability} if isinstance(self.probability, str) else {}
        return {**names, **own, "reward": self.reward, "time": self.time or "time"}


def from_toml(path: str | Path) -> Columns:
    """The columns that a TOML file names, at its top level or in a table `columns`."""
    data = _io.toml("columns", path, "a file of TOML")
    return from_mapping(data.get("columns", data))


def from_mapping(mapping: Mapping[str, Any]) -> Columns:
    """The columns that a mapping names."""
    known = [column_field.name for column_field in fields(Columns)]
    if not isinstance(mapping, Mapping):
        raise InputError("columns", display(mapping), f"a table of {', '.join(known)}")
    for name in mapping:
        if name not in known:
            raise InputError(f"columns.{name}", "no such field", ", ".join(known))
    return Columns(**mapping)


def find_roles(
    columns: Columns, names: Sequence[str], coordinates: Sequence[str] | None = None
) -> ColumnRoles:
    """Find the role of each column; the error for a missing one lists those that there are."""
    if not names:
        raise InputError("log", "no columns", "a header with their names, then a row for each decision")
    _table.check_once(names)
    context = _find_context(columns, names, coordinates)
    called = tuple(name.removeprefix("context.") for name in context) if coordinates is None else coordinates
    if len(called) != len(context):
        raise InputError("coordinates", display(coordinates), f"a name for each of {', '.join(context)}")
    by_arm = dict(columns.probabilities) or {
        name.removeprefix("probability."): name for name in names if name.startswith("probability.")
    }
    for column in by_arm.values():
        check_there(names, "probabilities", column)
    single = {
        name: _find_column(names, name, getattr(columns, name), name in ("arm", "reward")) for name in ONE
    }
    return ColumnRoles(
        tuple(called),
        context,
        _find_true(columns, names, context, called),
        str(single["arm"]),
        str(single["reward"]),
        _find_probability(columns, names, by_arm),
        by_arm,
        single["time"],
        single["unit"],
        {one: f"noise_sd.{one}" for one in called if f"noise_sd.{one}" in names},
    )


def _find_column(names: Sequence[str], field_: str, column: str | None, needed: bool) -> str | None:
    if column is None and not needed and field_ not in names:
        return None
    return check_there(names, field_, field_ if column is None else column)


def _find_context(
    columns: Columns, names: Sequence[str], coordinates: Sequence[str] | None
) -> tuple[str, ...]:
    if columns.context is not None:
        column_names = list(columns.context)
    elif coordinates is not None:
        column_names = [one if f"context.{one}" not in names else f"context.{one}" for one in coordinates]
    else:
        column_names = [name for name in names if str(name).startswith("context.")]
    if not column_names:
        allowed = f"columns context.<name>; or say which they are, out of: {', '.join(map(str, names))}"
        raise InputError("context", "no columns", allowed)
    return tuple(check_there(names, "context", one) for one in column_names)


def _find_true(
    columns: Columns, names: Sequence[str], context: Sequence[str], called: Sequence[str]
) -> dict[str, str]:
    """The columns of true contexts, by coordinate."""
    true, by_name = columns.true, {**dict(zip(context, called, strict=True)), **{one: one for one in called}}
    if true is None:
        return {one: f"true.{one}" for one in called if f"true.{one}" in names}
    if not isinstance(true, Mapping):
        if len(true) != len(context):
            allowed = f"a column for each of {', '.join(context)}; or a mapping from them"
            raise InputError("columns.true", display(list(true)), allowed)
        true = dict(zip(context, true, strict=True))
    for one in true:
        if one not in by_name:
            raise InputError("columns.true", display(one), f"columns of the context: {', '.join(context)}")
    return {by_name[one]: check_there(names, "true", column) for one, column in true.items()}


def _find_probability(
    columns: Columns, names: Sequence[str], by_arm: Mapping[str, str]
) -> str | float | None:
    column = columns.probability
    if isinstance(column, int | float) and not isinstance(column, bool):
        return float(column)
    if column is None and "probability" not in names:
        if by_arm:
            return None
        raise InputError("probability", f"no such column among {', '.join(map(str, names))}", WITHOUT)
    return check_there(names, "probability", "probability" if column is None else column)


def arm_numbers(column: Column, listed: Iterable[str] | None) -> tuple[Ints, tuple[str, ...]]:
    """Indices of the arms drawn, in `listed` or else in the sorted list of all that were drawn."""
    indices, names = column.names()
    at = first(indices < 0)
    if at is not None:
        raise InputError(column.at(at), "nothing", "the arm that was drawn")
    order = sorted(names, key=_sort_key) if listed is None else list(listed)
    known = {name: i for i, name in enumerate(order)}
    renumber = np.array([known.get(name, -1) for name in names], dtype=np.intp)
    arm = renumber[indices]
    at = first(arm < 0)
    if at is not None:
        raise InputError(column.at(at), names[indices[at]], f"one of the arms: {', '.join(order)}")
    return arm, tuple(order)


def _sort_key(name: str) -> tuple[int, int, str]:
    """A sort key by which arm 10 comes after arm 9."""
    is_number = name.isascii() and name.isdigit() and len(name) <= LONGEST_LOOKED_UP
    return (0, int(name), "") if is_number else (1, 0, name)


def read_table(
    table: Any, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None, source: str
) -> DecisionLog:
    """The log of a table with named columns."""
    names = _table.names_of(table) or []
    roles = find_roles(columns, names, coordinates)
    column_names = {*roles.numbers, *roles.texts, *outcome(names, roles)}
    return build_log(_table.columns(table, sorted(column_names)), roles, arms, source)


def outcome(names: Sequence[str], roles: ColumnRoles) -> list[str]:
    """The column that says what became of decisions, unless a caller has another use for that name."""
    used = OUTCOME in (*roles.numbers, *roles.texts)
    return [OUTCOME] if OUTCOME in names and not used else []


def build_log(
    columns: dict[str, Column], roles: ColumnRoles, arms: Sequence[str] | None, source: str
) -> DecisionLog:
    """The log of these columns."""
    columns, notes = _drop_without_reward(columns, roles)
    where = columns[roles.arm].where
    if not len(columns[roles.arm].cells):
        raise InputError("log", f"no rows in {source}", "one decision at least, with its reward")
    if arms is None and roles.probabilities:
        arms = list(roles.probabilities)
    arm, listed = arm_numbers(columns[roles.arm], arms)
    probabilities = _read_probabilities(columns, roles, listed)
    unit, units = (None, ()) if roles.unit is None else _number_units(columns[roles.unit])
    log = DecisionLog(
        roles.coordinates,
        listed,
        _stack_columns(columns, roles.context),
        arm,
        columns[roles.reward].numbers(),
        _read_probability(columns, roles, probabilities, arm),
        even_probabilities(roles.probability, len(arm), len(listed))
        if probabilities is None
        else probabilities,
        _read_truth(columns, roles),
        None if roles.time is None else columns[roles.time].times(),
        unit,
        units,
        source,
        notes,
        noise=_read_noise(columns, roles),
    )
    return logs.check_log(log, where, roles.called)


def _drop_without_reward(
    columns: dict[str, Column], roles: ColumnRoles
) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Leave out live decisions that lack a reward, and those of others without a probability; add notes."""
    outcomes = columns[OUTCOME].cells.tolist() if outcome(list(columns), roles) else []
    if not outcomes or not set(outcomes) <= {*OUTCOMES}:
        return columns, ()
    keep: Bools = np.array([one in LEARNT for one in outcomes])
    notes = [f"{n} decisions are {one}" for one, n in sorted(Counter(outcomes).items()) if one not in LEARNT]
    if isinstance(roles.probability, str):
        probability = columns[roles.probability].numbers()
        untold = keep & np.isnan(probability)
        if untold.any() and not np.isnan(probability).all():
            notes.append(
                f"{untold.sum()} decisions were made by somebody else, and no probability was logged"
            )
            keep &= ~untold
    remaining = {name: column.kept(keep) for name, column in columns.items()}
    return remaining, tuple(f"{note}: left out" for note in notes)


def _stack_columns(columns: Mapping[str, Column], names: Sequence[str]) -> Array:
    return np.stack([columns[name].numbers() for name in names], axis=1)


def _read_probabilities(
    columns: Mapping[str, Column], roles: ColumnRoles, arms: Sequence[str]
) -> Array | None:
    """The probabilities of all arms, or None if the table has none."""
    if not roles.probabilities:
        return None
    missing = [arm for arm in arms if arm not in roles.probabilities]
    if missing or len(roles.probabilities) != len(arms):
        actual = f"columns for {', '.join(roles.probabilities)}"
        raise InputError("probabilities", actual, f"one for each arm: {', '.join(arms)}")
    return _stack_columns(columns, [roles.probabilities[arm] for arm in arms])


def _read_probability(
    columns: Mapping[str, Column], roles: ColumnRoles, probabilities: Array | None, arm: Ints
) -> Array:
    """The probability of the arm that was drawn."""
    source = roles.probability
    if isinstance(source, str):
        values = columns[source].numbers()
        if np.isnan(values).all():
            raise InputError("probability", f"the column {source!r} is empty", logs.WITHOUT)
        return values
    if source is not None:
        return np.full(len(arm), source)
    assert probabilities is not None  # of the columns one or the other is there
    return probabilities[np.arange(len(arm)), arm]


def even_probabilities(probability: object, rounds: int, arms: int) -> Array | None:
    """The probabilities (n, K) of arms that were drawn evenly; refused if the number is not 1 / K."""
    if not isinstance(probability, float):
        return None
    if abs(probability * arms - 1) > logs.CLOSE:
        allowed = f"{1 / arms:.6g} if all of {arms} arms were drawn evenly; else a column of probabilities"
        raise InputError("probability", probability, f"{allowed}; list arms that were never drawn, too")
    return np.full((rounds, arms), probability)


def _read_truth(columns: Mapping[str, Column], roles: ColumnRoles) -> Array | None:
    if not roles.true:
        return None
    empty = np.full(len(columns[roles.arm].cells), np.nan)
    by_coordinate = {one: columns[name].numbers() for one, name in roles.true.items()}
    true = np.stack([by_coordinate.get(one, empty) for one in roles.coordinates], axis=1)
    return None if np.isnan(true).all() else true


def _read_noise(columns: Mapping[str, Column], roles: ColumnRoles) -> Array | None:
    """The noise covariances of readings that have a noise of their own."""
    sds = np.full((len(columns[roles.arm].cells), len(roles.coordinates)), np.nan)
    for one, name in roles.noise_sd.items():
        values = columns[name].numbers()
        bad = first(values <= 0)
        if bad is not None:
            allowed = "a positive number, a standard deviation, or nothing where the noise is as usual"
            raise InputError(columns[name].at(bad), logs.number(values[bad]), allowed)
        sds[:, roles.coordinates.index(one)] = values
    return logs.noise_of(sds)


def _number_units(column: Column) -> tuple[Ints | None, tuple[str, ...]]:
    """The unit of each row, and the names of units; None and () if all cells are empty."""
    indices, names = column.names()
    at = first(indices < 0)
    if at is not None and names:
        raise InputError(column.at(at), "nothing", "whose context it is: every row says so, or none")
    return (indices, tuple(names)) if names else (None, ())


def read_csv(
    path: Path, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None
) -> DecisionLog:
    """The log of a file with a header; commas, semicolons or tabs."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            separator = max(",;\t", key=file.readline().count)
            file.seek(0)
            names, rows = _table.csv_rows(file, separator)
            roles = find_roles(columns, names, coordinates)
            texts = [*roles.texts, *outcome(names, roles)]
            columns_by_name = _read_with_pandas(path, separator, names, roles.numbers, texts)
            if columns_by_name is None:
                columns_by_name = _read_columns(rows, names, roles.numbers, texts)
    except UnicodeDecodeError as error:
        raise InputError("log", f"{path.name} cannot be read ({error})", "CSV in UTF-8") from None
    where = number_rows(len(columns_by_name[roles.arm]), HEADER + 1)
    return build_log(
        {name: Column(name, cells, where) for name, cells in columns_by_name.items()}, roles, arms, path.name
    )


def _read_with_pandas(
    path: Path, separator: str, names: Sequence[str], numbers: Sequence[str], texts: Sequence[str]
) -> dict[str, Any] | None:
    """Read the wanted columns with pandas; None if it is not installed, or the file is irregular."""
    data = path.read_bytes() if find_spec("pandas") else b""
    if not data or b'"' in data or not _has_even_rows(data, separator, len(names)):
        return None
    import pandas as pd

    index, column_names = {name: i for i, name in enumerate(names)}, {*numbers, *texts}
    # Read numbers as float() does, which is the default of pandas from 3.1 on.
    old = [int(part) for part in pd.__version__.split(".")[:2]] < [3, 1]
    exact: Any = {"float_precision": "round_trip"} if old else {}
    try:
        frame = pd.read_csv(
            BytesIO(data),
            sep=separator,
            header=0,
            names=list(names),
            usecols=sorted(index[name] for name in column_names),
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,
            na_values={name: [""] for name in numbers},
            **exact,
            encoding="utf-8-sig",
        )
    except (ValueError, OverflowError):  # errors of the parser of pandas are ValueErrors, too
        return None
    columns = {name: np.asarray(frame[name]) for name in column_names}
    is_odd = any(columns[name].dtype.kind not in "iuf" for name in numbers)
    rows = data.count(b"\n") + (not data.endswith(b"\n"))
    return None if is_odd or len(frame) != rows - HEADER else columns


def _has_even_rows(data: bytes, separator: str, width: int) -> bool:
    """Whether every line has `width` values: pandas would pad or cut the others."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    ends = ends if data.endswith(b"\n") else np.append(ends, len(text))
    counts = np.searchsorted(np.flatnonzero(text == ord(separator)), ends)
    return bool((np.diff(counts, prepend=0) == width - 1).all())


def _read_columns(
    rows: Iterable[tuple[int, list[str]]],
    names: Sequence[str],
    numbers: Collection[str],
    texts: Collection[str],
) -> dict[str, Any]:
    """Read the wanted columns, a chunk of rows at a time."""
    parts: dict[str, list[Any]] = {name: [] for name in (*numbers, *texts)}
    complete_rows, count = _check_no_gaps(rows, len(names)), 0
    while chunk := list(islice(complete_rows, PIECE)):
        where = number_rows(len(chunk), count + HEADER + 1)
        cells = dict(zip(names, zip(*chunk, strict=True), strict=True))
        for name, part in parts.items():
            column = Column(name, np.array(cells[name], object), where)
            part.append(column.numbers() if name in numbers else column.cells)
        count += len(chunk)
    return {name: np.concatenate(part) if part else np.empty(0) for name, part in parts.items()}


def _check_no_gaps(rows: Iterable[tuple[int, list[str]]], width: int) -> Iterator[list[str]]:
    """Yield the rows; refuse empty ones, except at the end of the file."""
    for expected, (number, row) in enumerate(rows, HEADER + 1):
        if number != expected:
            allowed = f"{width} values, one for each column"
            raise InputError(f"row {expected}", "an empty row", allowed)
        yield row
