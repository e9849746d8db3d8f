"""Columns of a table as arrays: numbers, with gaps where they may have any, and times.

Complaints name the table, the column and the row, counted from 1 below the header.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from unfog.maths.arrays import Array
from unfog.validation import InputError

MISSING = ("", "na", "nan", "none", "null")
HOUR = np.timedelta64(1, "h")


def column(table: Mapping[str, Any], name: str, source: str) -> Sequence[Any]:
    """One column, by name."""
    if name not in table:
        there = ", ".join(map(str, table)) or "none"
        raise InputError("data", f"{source} has no column {name!r}", f"columns that are there: {there}")
    found: Sequence[Any] = np.asarray(table[name]).tolist() if not _is_dates(table[name]) else table[name]
    return found


def _is_dates(values: Any) -> bool:
    return np.asarray(values).dtype.kind == "M"


def numbers(table: Mapping[str, Any], names: Sequence[str], source: str) -> Array:
    """Some columns (n, d), not a number where a value is missing."""
    found = [
        [_number(value, name, row, source) for row, value in enumerate(column(table, name, source), 1)]
        for name in names
    ]
    if len({len(one) for one in found}) > 1:
        raise InputError("data", f"{source} has columns of different lengths", "columns of one length")
    return np.array(found, np.float64).T


def _number(value: Any, name: str, row: int, source: str) -> float:
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING):
        return float("nan")
    try:
        found = float("text" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        found = float("inf")
    if np.isinf(found):
        problem = f"{source}, column {name!r}, row {row}: {value!r}"
        raise InputError("data", problem, "numbers, and nothing where one is missing")
    return found


def times(table: Mapping[str, Any], name: str, source: str) -> Array:
    """The times (n,), never going back: numbers as they are, dates as hours since the first."""
    given = column(table, name, source)
    if _is_dates(given):
        dates = np.asarray(given)
        found = np.where(np.isnat(dates), np.nan, (dates - dates[0]) / HOUR)
    else:
        numbered = [_is_number(value) for value in given]
        other = next(
            (i for i, x in enumerate(numbered) if x != numbered[0] and _time(given[i]) == _time(given[i])), 0
        )
        if other:
            problem = (
                f"{source}, column {name!r}, row {other + 1}: {str(given[other])!r} beside {str(given[0])!r}"
            )
            raise InputError("data", problem, "numbers alone, or dates alone")
        found = np.array([_time(value) for value in given], np.float64)
        if len(found) and isinstance(given[0], str) and not _is_number(given[0]):
            found = (found - found[0]) / 3600.0
    bad = np.flatnonzero(~np.isfinite(found))
    back = np.flatnonzero(np.diff(found) < 0) + 1
    for rows, why in ((bad, "is no time"), (back, "goes back")):
        if len(rows):
            problem = f"{source}, column {name!r}, row {rows[0] + 1}: {str(given[rows[0]])!r} {why}"
            raise InputError("data", problem, "numbers, or dates like 2004-03-10T18:00, that never go back")
    return found


def _time(value: Any) -> float:
    """A number, or seconds of a date; not a number where it is neither."""
    if _is_number(value):
        return float(value)
    try:
        date = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return (date - datetime(1970, 1, 1, tzinfo=date.tzinfo)).total_seconds()
    except ValueError:
        return float("nan")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)
