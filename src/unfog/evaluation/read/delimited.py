"""A CSV file as columns: numbers as they are read, a piece of the file at a time, so that it may be long."""

import csv
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import table, values
from unfog.evaluation.read.columns import Columns, found
from unfog.evaluation.read.where import Where, counted
from unfog.inputs import InputError

PIECE = 50_000  # rows
HEADER = 1


def read(path: Path, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None) -> Log:
    """The log of a file with a header; commas, semicolons or tabs."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            names, rows = _opened(file)
            which = found(columns, names, coordinates)
            texts = [*which.texts, *([table.OUTCOME] if table.OUTCOME in names else [])]
            own = _columns(rows, names, which.numbers, texts)
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError("log", f"{path.name} cannot be read ({error})", "CSV in UTF-8") from None
    return table.made(own, which, arms, counted(len(own[which.arm]), HEADER + 1), path.name)


def _opened(file: IO[str]) -> tuple[list[str], Iterator[list[str]]]:
    """The header, and the rows after it."""
    first = file.readline()
    file.seek(0)
    rows = csv.reader(file, delimiter=max(",;\t", key=first.count))
    return [name.strip() for name in next(rows, [])], rows


def _columns(
    rows: Iterator[list[str]], names: Sequence[str], numbers: Collection[str], texts: Collection[str]
) -> dict[str, Any]:
    """The columns that are wanted."""
    parts: dict[str, list[Any]] = {name: [] for name in (*numbers, *texts)}
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
