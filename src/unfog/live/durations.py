"""Spans of time as people write them: "30m", "7d", 90 (seconds)."""

import re
from datetime import timedelta
from typing import TypeAlias

import numpy as np

from unfog.validation import InputError, shown

Span: TypeAlias = str | float | timedelta | None

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 100 * 365 * 86_400.0
ALLOWED = 'a number of seconds, or text such as "45s", "30m", "12h", "7d", "2w"; None for no end'
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def seconds(field: str, value: object) -> float | None:
    """A span in seconds; None stays None: no end."""
    if value is None:
        return None
    found = _read(value)
    if found is None or not 0 < found <= LONGEST:
        raise InputError(field, shown(value), ALLOWED)
    return found


def _read(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return float(max(-LONGEST, min(value, 2 * LONGEST)))  # an integer may be too large for a float
    match = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else float(match[1]) * SECONDS[match[2]]
