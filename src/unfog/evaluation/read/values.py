"""A column of a log as numbers, times or names, whatever holds it: text of a file, a series, an array.

An empty cell is not a number, and a name that is not there is -1: who knows whether it may be so judges.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from unfog.evaluation.read.where import Where, first
from unfog.maths.arrays import Array, Ints
from unfog.validation import LONGEST_LOOKED_UP, InputError, shown

EMPTY = frozenset({"", "NA", "NaN", "nan", "null", "None", "<NA>", "NaT"})  # as files and frames write it


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


def arms(
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
