"""A field of a JSON object, of the kind that is wanted: whoever wrote the line may have erred.

What is not so is refused with the line and the field. None of these tells a truth value for a number.
"""

from collections.abc import Mapping
from typing import Any

from unfog.validation import InputError, shown

Told = Mapping[str, Any]


def text(where: str, told: Told, name: str) -> str:
    """Text that is not empty."""
    found = told.get(name)
    if not isinstance(found, str) or not found:
        raise InputError(f"{where}, {name}", _said(told, name), "text")
    return found


def number(where: str, told: Told, name: str) -> float:
    """A number."""
    return as_number(f"{where}, {name}", told.get(name))


def number_or_none(where: str, told: Told, name: str) -> float | None:
    """The same, where it may be left out, or be null."""
    return None if told.get(name) is None else number(where, told, name)


def as_number(field: str, value: object) -> float:
    """The number itself; whole ones of 400 digits are none that can be used."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise InputError(field, "nothing" if value is None else shown(value), "a number")


def numbers(where: str, told: Told, name: str) -> dict[str, float]:
    """A number for each of some names; null is not a number."""
    found = told.get(name)
    if not isinstance(found, Mapping):
        raise InputError(f"{where}, {name}", _said(told, name), "a number for each name, in {}")
    one = f"{where}, {name}."
    return {key: float("nan") if x is None else as_number(one + key, x) for key, x in found.items()}


def names(where: str, told: Told, name: str) -> list[str]:
    """A list of names, or what has something to say of each."""
    found = told.get(name)
    if not isinstance(found, list | tuple | Mapping) or not all(isinstance(one, str) for one in found):
        raise InputError(f"{where}, {name}", _said(told, name), "a list of names")
    return list(found)


def some_names(where: str, told: Told, name: str) -> list[str]:
    """The same, where there may be none."""
    return [] if told.get(name) is None else names(where, told, name)


def _said(told: Told, name: str) -> str:
    return "nothing" if told.get(name) is None else shown(told[name])
