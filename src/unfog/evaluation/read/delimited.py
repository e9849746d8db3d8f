"""A CSV file as columns.

It is read row by row, each held against the header, so that what is wrong has its row. Where pandas is there
it reads a file in which nothing is odd (no quotes, as many separators as there should be, numbers where they
are wanted) in a tenth of the time.
"""

import csv
from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import table, values
from unfog.evaluation.read.columns import Columns, found
from unfog.evaluation.read.where import Where, counted
from unfog.validation import InputError

PIECE = 50_000  # rows
HEADER = 1


def read(path: Path, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None) -> Log:
    """The log of a file with a header; commas, semicolons or tabs."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            separator, names = _header(file)
            which = found(columns, names, coordinates)
            texts = [*which.texts, *table.outcome(names, which)]
            own = _quickly(path, separator, names, which.numbers, texts)
            if own is None:
                own = _columns(csv.reader(file, delimiter=separator), names, which.numbers, texts)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError("log", f"{path.name} cannot be read ({error})", "CSV in UTF-8") from None
    return table.made(own, which, arms, counted(len(own[which.arm]), HEADER + 1), path.name)


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
        return values.numbers(name, np.array(cells, object), where)
