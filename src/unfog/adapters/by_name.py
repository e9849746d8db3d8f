"""Contexts that come by name, put in the order of columns: {"temperature": 21.5, "rain": 0.2}.

The order of names in a context says nothing about columns, so it is never used. Names are told, or they are
the numbers of the columns, from 0. A name that is missing, or stands for None or nan, is a reading that was
lost.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from unfog import validation
from unfog.maths.arrays import Array
from unfog.validation import InputError


def named(field: str, names: Sequence[Hashable] | None, number: int, order: str) -> list[Hashable]:
    """So many names, all different; numbers from 0 where none are told."""
    found = list(range(number) if names is None else names)
    if isinstance(names, str) or len(found) != number or len(set(found)) != number:
        raise InputError(field, validation.shown(names), f"{number} different names, in the order of {order}")
    return found


def row(context: Mapping[Any, Any], names: Sequence[Hashable]) -> Array:
    """The numbers of a context (d,) in the order of these names."""
    if unknown := [name for name in context if name not in names]:
        raise InputError("context", unknown[0], f"the names {', '.join(map(str, names))}")
    return np.array([_number(name, context.get(name)) for name in names], float)


def _number(name: object, value: object) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"context.{name}", validation.shown(value), "a number, or None where it was lost")
    return float(value)
