"""Names that a caller gives: of coordinates, arms, units, problems, keys."""

from collections.abc import Mapping
from typing import Any

from unfog.inputs import InputError, numbers, shown

LONGEST = 200
MOST_ARMS = 10_000
MOST_COORDINATES = 1_000


def name(field: str, value: object) -> str:
    """A word or a few, on one line."""
    allowed = f"text on one line, of 1 to {LONGEST} characters"
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= LONGEST
        or not value.isprintable()
        or not value.strip()
    ):
        raise InputError(field, shown(value), allowed)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(field, shown(value), allowed) from None
    return str.__str__(value)  # of NumPy's texts and of enumerations, too: logs and checksums hold plain text


def listed(field: str, values: Any, allowed: str) -> list[Any]:
    """All there are, of what can be gone through and is no text."""
    try:
        found = None if isinstance(values, str | bytes) else list(values)
    except TypeError:  # also of an array without an axis, which says that it can be
        found = None
    if found is None:
        raise InputError(field, shown(values), allowed)
    return found


def distinct(field: str, values: Any, most: int = MOST_ARMS) -> list[str]:
    """Names, each once."""
    found = [name(f"{field}[{i}]", value) for i, value in enumerate(listed(field, values, "a list of names"))]
    if not 0 < len(found) <= most:
        raise InputError(field, f"{len(found)} names", f"1 to {most}")
    if len(set(found)) < len(found):
        i = next(i for i, one in enumerate(found) if one in found[:i])
        raise InputError(f"{field}[{i}]", repr(found[i]), "each name once")
    return found


def coordinates(field: str, value: Any) -> list[str]:
    """Names of the coordinates of a context."""
    return distinct(field, value, MOST_COORDINATES)


def arms(field: str, value: Any, told: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Names of arms, with their vectors where they have any."""
    if value is None:
        return {}
    found = distinct(field, value, MOST_ARMS)
    if not isinstance(value, Mapping):
        return dict.fromkeys(found)
    return {one: None if value[one] is None else vector(f"{field}.{one}", value[one]) for one in found}


def vector(field: str, value: Any) -> list[Any]:
    """The numbers of an arm: a list, or for matrices a list of rows."""
    allowed = "a list of finite numbers"
    found = numbers(field, value, allowed)
    if found.ndim not in (1, 2) or found.size == 0:
        raise InputError(field, value, allowed)
    listed: list[Any] = found.tolist()
    return listed
