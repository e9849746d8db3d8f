"""Tables as numbers, times and names: cells of all kinds of tables are read here.

Logs, recorded worlds, imported decisions, the pairs of a calibration and the rows of the transformer are read
from the text of a CSV file, from columns of a data frame or a mapping (`Column`), or from arrays with gaps
(`array`, `matrix`, `labels`).

Errors name the cell, such as "row 17, steps": rows are counted as a reader of the table would count them
(`Where`). An empty cell becomes NaN, a missing name -1: the caller decides whether that is allowed. Besides
None, the texts in a column's field `empty` count as empty.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from unfog import _frames
from unfog.validation import LARGEST, InputError, check_identifier, check_time, display, is_missing

Array: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]

EMPTY = frozenset({"", "NA", "NaN", "nan", "null", "None", "<NA>", "NaT"})  # in files and data frames
HEADER = 1  # row of a CSV file
NUMBER = "a number, or nothing where it is not known"
TIME = "a number, or a date with its time, such as 2026-03-01T12:00:00Z"
TIMES = f"{TIME}; numbers in all rows, or dates in all"


class Where(NamedTuple):
    """What errors call the rows of a table: rows of a file, its lines, or decisions by their ids."""

    word: str
    names: Sequence[object] | Ints  # of each row

    def of(self, i: int, column: str = "") -> str:
        """What errors call a row, or one of its cells."""
        row = f"{self.word} {self.names[i]}"
        return f"{row}, {column}" if column else row

    def kept(self, rows: Bools) -> "Where":
        """The same for some of the rows."""
        return self._replace(names=[self.names[i] for i in np.flatnonzero(rows).tolist()])


def number_rows(number: int, first: int = 1) -> Where:
    """Rows by their numbers."""
    return Where("row", range(first, first + number))


def first(mask: Bools) -> int | None:
    """The first row for which the mask is true, or None."""
    i = int(np.argmax(mask)) if mask.size else 0
    return i if mask.size and mask[i] else None


class Column(NamedTuple):
    """The cells of a column, and what errors call them."""

    name: str
    cells: npt.NDArray[Any]  # (n,)
    where: Where
    empty: frozenset[str] = EMPTY

    def at(self, row: int) -> str:
        """What errors call a cell."""
        return self.where.of(row, self.name)

    def kept(self, rows: Bools) -> "Column":
        """The column with some of its rows."""
        return self._replace(cells=self.cells[rows], where=self.where.kept(rows))

    def numbers(self, allowed: str = NUMBER) -> Array:
        """The cells as floats, NaN for empty ones; text is parsed, booleans are refused."""
        if self.cells.dtype.kind in "iuf":
            return self.cells.astype(np.float64)
        cells = self.cells.tolist()
        try:
            if not any(isinstance(x, bool | np.bool_) for x in cells):
                return np.array([np.nan if x is None or x in self.empty else float(x) for x in cells])
        except (TypeError, ValueError, OverflowError):
            pass  # read one by one, which is slower but finds the wrong cell
        return np.array([number(self.at(i), x, self.empty, allowed) for i, x in enumerate(cells)])

    @property
    def dated(self) -> bool:
        """Whether it holds dates, not numbers: the first cell that is not empty decides."""
        if self.cells.dtype.kind in "iufM":
            return self.cells.dtype.kind == "M"
        cell = next((x for x in self.cells.tolist() if not _is_empty(x, self.empty)), 0)
        return _parse_float(cell) is None

    def times(self) -> Array:
        """Numbers as they are; dates as seconds since 1970, in UTC if they have no time zone."""
        if self.cells.dtype.kind == "M":
            since = self.cells.astype("datetime64[us]").astype(np.int64) / 1e6
            return np.where(np.isnat(self.cells), np.nan, since)
        if not self.dated:
            return self.numbers(TIMES)
        cells = enumerate(self.cells.tolist())
        return np.array(
            [np.nan if _is_empty(x, self.empty) else _parse_date(self.at(i), x, TIMES) for i, x in cells]
        )

    def names(self) -> tuple[Ints, list[str]]:
        """For each cell the index of its name, -1 for empty ones; and the names in order of appearance."""
        if self.cells.dtype.kind in "iu":
            numbers, indices = np.unique(self.cells, return_inverse=True)
            return indices, [str(x) for x in numbers.tolist()]
        cells, known = self.cells.tolist(), dict[Any, int]()
        bad = next((i for i, x in enumerate(cells) if isinstance(x, list | dict | set)), None)
        if bad is not None:
            raise InputError(self.at(bad), display(cells[bad]), "one name")
        index = np.array([known.setdefault(x, len(known)) for x in cells], dtype=np.intp)
        names: dict[str, int] = {}
        texts = [self._name(x, cells) for x in known]
        positions = [-1 if not x or x in self.empty else names.setdefault(x, len(names)) for x in texts]
        return np.array(positions, dtype=np.intp)[index], list(names)

    def _name(self, cell: Any, cells: list[Any]) -> str:
        """A cell as a name, "" where it is empty; an error names the first cell of its kind."""
        if isinstance(cell, bool | np.bool_ | float | np.floating | Decimal) and not is_missing(cell):
            return check_identifier(self.at(cells.index(cell)), cell)
        return "" if is_missing(cell) else str(cell).strip()


def number(label: str, cell: Any, empty: frozenset[str] = EMPTY, allowed: str = NUMBER) -> float:
    """The number in a cell, NaN if it is empty; `label` is what errors call the cell."""
    if _is_empty(cell, empty):
        return np.nan
    value = _parse_float(cell)
    if value is None:
        truth = str(cell).strip().lower() in ("true", "false")
        raise InputError(label, display(cell), f"{allowed}; 1 for true and 0 for false" if truth else allowed)
    return value


def seconds(label: str, cell: Any, zone: tzinfo | None = UTC) -> float:
    """The time in a cell: a number, or a date in ISO 8601; NaN if it is empty. `zone`: of dates without."""
    if _is_empty(cell, EMPTY):
        return np.nan
    value = _parse_float(cell)
    return _parse_date(label, cell, TIME, zone) if value is None else value


def text(cell: object) -> str:
    """The text of a cell; a float without a fraction is written as an integer."""
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if is_whole else str(cell).strip()  # type: ignore[call-overload]


def _is_empty(cell: Any, empty: frozenset[str]) -> bool:
    return is_missing(cell) or str(cell).strip() in empty


def _parse_float(cell: Any) -> float | None:
    try:
        return None if isinstance(cell, bool | np.bool_) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def _parse_date(label: str, cell: Any, allowed: str, zone: tzinfo | None = UTC) -> float:
    time = cell if isinstance(cell, datetime) else str(cell)
    return check_time(label, time, allowed, zone)


def check_times(times: Array, where: Where, name: str, cells: Any = None) -> None:
    """Refuse times that are missing or go back; `cells` are their original cells."""
    values = times if cells is None else cells
    at = first(~(np.abs(times) <= LARGEST))
    if at is not None:
        raise InputError(where.of(at, name), "nothing" if np.isnan(times[at]) else f"{times[at]:g}", TIME)
    at = first(np.diff(times) < 0)
    if at is not None:
        now, before = (f"{x:.15g}" if isinstance(x, float) else str(x) for x in (values[at + 1], values[at]))
        allowed = "times that never go back: sort the rows by time"
        raise InputError(where.of(at + 1, name), f"{now} after {before}", allowed)


def names_of(table: Any) -> list[str] | None:
    """The names of a table's columns; None if it is not a table."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    if _frames.is_frame(table):
        return _frames.names_of(table)
    columns = table.dtype.names if isinstance(table, np.ndarray) else getattr(table, "columns", None)
    return None if columns is None or not hasattr(table, "__getitem__") else [str(name) for name in columns]


def check_there(names: Iterable[str], field: str, column: object, source: str = "") -> str:
    """Return the column's name; raise if the table has no such column."""
    if not isinstance(column, str) or column not in names:
        problem = f"no column {column!r}" + (f" in {source}" if source else "")
        raise InputError(field, problem, f"one of: {', '.join(map(str, names)) or 'none'}")
    return column


def check_once(names: Sequence[str], source: str = "") -> None:
    """Raise if two columns have the same name."""
    problem = "two columns of this name" + (f" in {source}" if source else "")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(str(name), problem, "each column once")


def columns(
    table: Any,
    names: Iterable[str],
    *,
    word: str = "row",
    rows: Sequence[int] | None = None,
    empty: frozenset[str] = EMPTY,
) -> dict[str, Column]:
    """Some columns of a table, which must have the same length; `rows` are row numbers, by default from 1."""
    is_frame = _frames.is_frame(table)
    cells_by_name = {
        name: _frames.column(table, name) if is_frame else _to_array(name, table[name]) for name in names
    }
    sizes = {name: len(cells) for name, cells in cells_by_name.items()}
    usual = Counter(sizes.values()).most_common(1)[0][0]
    for name, size in sizes.items():
        if size != usual:
            raise InputError(name, f"{size} rows", f"{usual}, as many as the other columns have")
    where = Where(word, range(1, usual + 1) if rows is None else rows)
    return {name: Column(name, cells, where, empty) for name, cells in cells_by_name.items()}


def _to_array(name: str, column: Any) -> npt.NDArray[Any]:
    """A column as an array; cells of a list stay as they are: NumPy would turn booleans into numbers."""
    is_list = isinstance(column, list | tuple)
    cells = np.array([*column, None], object)[:-1] if is_list else np.asarray(column)
    if cells.ndim != 1:
        raise InputError(
            name, f"{display(column)}, of shape {cells.shape}", "a list with a value for each row"
        )
    return cells


def csv_rows(
    lines: Iterable[str], separator: str = ",", source: str = ""
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The names in the header of a CSV file, and the rows below it with their numbers, as they are read.

    The header is row 1. Empty rows are counted but skipped; a row that is not as long as the header is
    refused. Errors name the source, if it is given.
    """
    reader, source = csv.reader(lines, delimiter=separator), f"{source}, " if source else ""
    rows = _read_rows(reader, source)
    names = [name.strip() for name in next(rows, [])]
    return names, _check_widths(rows, len(names), source)


def _read_rows(reader: Any, source: str) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"{source}line {reader.line_num}", str(error), "rows of a table") from None


def _check_widths(rows: Iterator[list[str]], width: int, source: str) -> Iterator[tuple[int, list[str]]]:
    for i, row in enumerate(rows, HEADER + 1):
        if row and len(row) != width:
            allowed = f"{width} values, one for each column"
            raise InputError(f"{source}row {i}", f"{len(row)} values", allowed)
        if row:
            yield i, row


def array(field: str, value: Any, allowed: str, *, coerce: bool = False) -> Array:
    """An array of floats, from numbers only; NaN if one is missing or masked.

    With `coerce`, anything that NumPy can convert is accepted, None included, as in scikit-learn.
    """
    try:
        raw = _unbox(value)
        raw = raw.astype(np.float64) if coerce else raw
    except (TypeError, ValueError):
        raise InputError(field, display(value) if coerce else "is ragged", allowed) from None
    if raw.dtype.kind not in "iuf":
        raise InputError(field, f"is made of {raw.dtype}, not of numbers", allowed)
    numbers = raw.astype(np.float64)
    if isinstance(value, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(value), np.nan, numbers)
    return numbers


def _unbox(value: Any) -> npt.NDArray[Any]:
    """An array; of objects, as nullable columns of frames come, floats if all are numbers or missing."""
    is_frame = _frames.is_frame(value)
    if is_frame and not hasattr(value, "iloc"):  # NumPy reads frames of pandas, whatever their names are
        parts = [_frames.column(value, name) for name in _frames.names_of(value)]
        is_plain = all(part.dtype.kind in "iuf" for part in parts)
        raw = np.column_stack(parts if is_plain else [part.astype(object) for part in parts])
    else:
        raw = np.asarray(value)
    if raw.dtype.kind != "O" or not (is_frame or hasattr(value, "to_numpy")):
        return raw
    numbers = [np.nan if is_missing(one) else one for one in raw.flat]
    is_numeric = all(isinstance(one, Real | Decimal) and not isinstance(one, bool) for one in numbers)
    return np.array(numbers, np.float64).reshape(raw.shape) if is_numeric else raw


def matrix(field: str, value: Any, allowed: str, ndim: int = 2, *, coerce: bool = False) -> Array:
    """A matrix of floats, or an array of another rank, none of them infinite or too large."""
    numbers = array(field, value, allowed, coerce=coerce)
    if numbers.ndim != ndim or 0 in numbers.shape:
        raise InputError(field, f"has shape {numbers.shape}", allowed)
    large = np.argwhere(np.abs(numbers) > LARGEST)
    if len(large):
        index = tuple(int(i) for i in large[0])
        problem = f"row {index[0]}, column {index[-1]} is {numbers[index]:g}"
        raise InputError(field, problem, allowed)
    return numbers


def labels(field: str, value: Any, mask: Bools, allowed: str) -> tuple[list[Any], Ints]:
    """The distinct labels of the rows in the mask, sorted if possible, and the index of each row's label."""
    cells = np.asarray(value)
    if cells.shape != mask.shape:
        raise InputError(field, f"has shape {cells.shape}", allowed)
    items = cells[mask].tolist()
    bad = next((i for i, label in enumerate(items) if not is_label(label)), None)
    if bad is not None:
        raise InputError(field, f"row {np.flatnonzero(mask)[bad]} has {items[bad]!r}", allowed)
    try:
        names = sorted(set(items))
    except TypeError:  # text and numbers
        names = list(dict.fromkeys(items))
    indices = {name: i for i, name in enumerate(names)}
    return names, np.array([indices[label] for label in items], np.intp)


def is_label(label: object) -> bool:
    """Whether it is a number, text or a date, and not missing."""
    return isinstance(label, str | int | float | date | np.generic) and bool(label == label)
