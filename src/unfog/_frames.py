"""Data frames of pandas, polars and pyarrow, read and built through narwhals; and rows as people have them.

narwhals is imported when a frame is at hand, and not before. A row is a mapping, a Series of pandas, a frame
of one row, a named tuple, or values in order. Cells stay as they are: what they mean, and which of them are
missing, is for the reader (`unfog.validation`).
"""

import csv
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unfog import validation
from unfog.validation import InputError, display

if TYPE_CHECKING:
    import narwhals as nw

KINDS = ("pandas", "polars", "pyarrow")


def is_frame(value: object) -> bool:
    """Whether it is a data frame of a library that was imported, not a lazy one."""
    if isinstance(value, Mapping | Sequence | np.ndarray) or not any(name in sys.modules for name in KINDS):
        return False
    import narwhals as nw

    return bool(nw.dependencies.is_into_dataframe(value))


def _wrap(frame: Any) -> "nw.DataFrame[Any]":
    import narwhals as nw

    wrapped: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    return wrapped


def names_of(frame: Any) -> list[str]:
    """The names of its columns."""
    names = list(frame.columns) if "pandas" in type(frame).__module__ else _wrap(frame).columns
    return [str(name) for name in names]


def cells(frame: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Some of its columns as lists of what is in them."""
    wrapped = _wrap(frame)
    return {name: wrapped[name].to_list() for name in names}


def column(frame: Any, name: str) -> npt.NDArray[Any]:
    """A column as an array: floats with NaN for nulls, dates, or objects."""
    cells = frame[name]
    if "dictionary" in str(getattr(cells, "type", "")):  # of Arrow, which NumPy reads without its nulls
        return np.array([*cells.to_pylist(), None], object)[:-1]
    return np.asarray(cells)


def select(frame: Any, names: Sequence[str]) -> Any:
    """The frame with these columns, in this order."""
    if hasattr(frame, "iloc"):  # pandas, where names may be numbers
        own = names_of(frame)
        return frame.iloc[:, [own.index(name) for name in names]]
    return _wrap(frame).select(*names).to_native()


def to_csv(frame: Any, labels: Sequence[str] = ()) -> str:
    """The frame as CSV: nothing where a cell is missing, times as seconds since 1970.

    Cells of the columns `labels` are names: text or integers.
    """
    names = names_of(frame)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    rows = zip(*cells(frame, names).values(), strict=True)
    for i, row in enumerate(rows, 2):
        pairs = zip(names, row, strict=True)
        writer.writerow([_to_text(f"row {i}, {name}", cell, name in labels) for name, cell in pairs])
    return text.getvalue()


def _to_text(field: str, cell: Any, is_label: bool) -> str:
    if validation.is_missing(cell):
        return ""
    if is_label:
        return validation.check_identifier(field, cell)
    if isinstance(cell, datetime):
        return repr(validation.check_time(field, cell))
    return cell if isinstance(cell, str) else repr(validation.number(field, cell))


def build(columns: Mapping[str, Sequence[Any]], like: Any = "pandas") -> Any:
    """A frame with these columns, None for what is missing: of a kind by name, or of that of another frame.

    A frame of pandas has the index of the other.
    """
    import narwhals as nw

    data = {name: _alike(column) for name, column in columns.items()}
    if isinstance(like, str):
        return nw.from_dict(data, backend=like).to_native()  # type: ignore[arg-type]
    other = _wrap(like)
    frame = nw.from_dict(data, backend=other.implementation).to_native()
    if other.implementation.is_pandas_like():
        frame.index = like.index
    return frame


def _alike(column: Sequence[Any]) -> list[Any]:
    """The values with integers as floats where there are floats, since libraries want one type a column."""
    types = {type(value) for value in column} - {type(None)}
    return [None if x is None else float(x) for x in column] if types == {int, float} else list(column)


def read_parquet(field: str, path: Path) -> Any:
    """The table of a Parquet file, as one of pyarrow."""
    from unfog._extras import explain_missing

    with explain_missing(path.name):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        problem = f"{path.name} cannot be read ({' '.join(str(error).split())[:100]})"
        raise InputError(field, problem, "a Parquet file") from None


def write_parquet(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a Parquet file with these columns, whole or not at all."""
    from unfog import _io
    from unfog._extras import explain_missing

    with explain_missing(path.name):
        import pyarrow as pa
        import pyarrow.parquet as pq
    sink = pa.BufferOutputStream()
    pq.write_table(build(columns, "pyarrow"), sink)
    _io.write_atomically(path, sink.getvalue().to_pybytes())


def read_row(field: str, value: Any, names: Sequence[str], *, partial: bool = False) -> dict[str, Any]:
    """The cells of a row by name: a mapping, a row of a frame, or as many values as there are names.

    A mapping has these names and no others. Of a row of a frame the other columns are passed over. With
    `partial` names may be missing.
    """
    row = read_cells(field, value)
    if not isinstance(row, Mapping):
        if row is None or len(row) != len(names):
            raise InputError(
                field, display(value), f"a mapping by name, or {len(names)} values: {', '.join(names)}"
            )
        return dict(zip(names, row, strict=True))
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                raise InputError(f"{field}.{name}", "no such coordinate", ", ".join(names))
    missing = [name for name in names if name not in row] if not partial else []
    if missing:
        raise InputError(f"{field}.{missing[0]}", "missing", "a value, or None where it was lost")
    return {name: row[name] for name in names if name in row}


def read_cells(field: str, value: Any) -> Mapping[str, Any] | list[Any] | None:
    """The cells of a row, by name if they have names; None if it is no row."""
    if isinstance(value, Mapping | list):
        return value
    if is_frame(value):
        if len(value) != 1:
            raise InputError(field, f"a frame of {len(value)} rows", "one row; decide_many takes a frame")
        return {name: column[0] for name, column in cells(value, names_of(value)).items()}
    if hasattr(value, "_asdict"):
        row: Mapping[str, Any] = value._asdict()
        return row
    if isinstance(value, np.void) and value.dtype.names:
        return dict(zip(value.dtype.names, value.item(), strict=True))
    labels = getattr(value, "index", None)
    texts = [] if labels is None or callable(labels) else [one for one in labels if isinstance(one, str)]
    return _by_label(field, value, texts) if texts else _in_order(value)


def _by_label(field: str, series: Any, texts: list[str]) -> dict[str, Any]:
    """The cells of a Series, whose labels must differ."""
    if len(set(texts)) < len(texts):
        again = next(label for i, label in enumerate(texts) if label in texts[:i])
        raise InputError(f"{field}.{again}", "two values of this name", "each name once")
    return dict(zip(series.index, series.tolist(), strict=True))


def _in_order(value: Any) -> list[Any] | None:
    """The cells of a sequence, an array, or a Series without names."""
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist() if value.ndim == 1 or value.shape[:1] == (1,) else None
    for convert in ("to_list", "to_pylist"):  # of a Series, of an array of Arrow
        if hasattr(value, convert):
            value = getattr(value, convert)()
    is_text = isinstance(value, str | bytes)
    return list(value) if isinstance(value, Sequence) and not is_text else None
