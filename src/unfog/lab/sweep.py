"""A sweep: the same run for several settings of the problem, a grid of them or a list.

[sweep]                          # a grid: every combination, the last field changing fastest
actions = [10, 40]
noise_cov = [0.5, 1.0, 2.0]

[[sweep]]                        # a list: these settings and no others
actions = 10
noise_cov = 0.5
[[sweep]]
actions = 40
noise_cov = 2.0
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unfog.validation import InputError, display

Sweep: TypeAlias = dict[str, list[Any]] | list[dict[str, Any]]
"""A grid, by field, or a list of settings; empty where nothing is swept."""

MOST_SETTINGS = 10_000
LONGEST = 40  # letters of a value that is written out
LARGEST = 2**31  # integers that netCDF 3 can hold are below
SETTING = "setting"  # the dimension of a list


class Axes(NamedTuple):
    """Where the settings of a sweep are in a Dataset."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, tuple[str, Any]]  # by field: the dimension it lies on, and its values


def fields(sweep: Sweep) -> list[str]:
    """The fields that are swept."""
    return list(sweep) if isinstance(sweep, dict) else [*sweep[0]] if sweep else []


def values(sweep: Sweep) -> dict[str, list[Any]]:
    """The values of each field: all of a grid's, or one for each setting of a list."""
    return (
        sweep
        if isinstance(sweep, dict)
        else {name: [setting[name] for setting in sweep] for name in fields(sweep)}
    )


def settings(sweep: Sweep) -> list[dict[str, Any]]:
    """The fields of each setting; a single one without fields where nothing is swept."""
    return _combine(sweep, values(sweep))


def labels(sweep: Sweep) -> list[str]:
    """What each setting is called: ` actions=10 noise_cov=0.5`, to be appended to an agent's name."""
    texts = {name: spelled(column) for name, column in values(sweep).items()}
    return [label(setting) for setting in _combine(sweep, texts)]


def label(setting: Mapping[str, str]) -> str:
    """Fields and their values, each after a space."""
    return "".join(f" {name}={text}" for name, text in setting.items())


def _combine(sweep: Sweep, columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The settings of a sweep, with these columns in place of its own values."""
    rows = (
        itertools.product(*columns.values())
        if isinstance(sweep, dict)
        else zip(*columns.values(), strict=True)
    )
    return [dict(zip(columns, row, strict=True)) for row in rows] or [{}]


def spelled(column: Sequence[Any]) -> list[str]:
    """Values as text; a long one is cut, and has its number so that no two are called alike."""
    texts = [" ".join(_spell(value).split()) or "''" for value in column]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts), 1)}
    return [t if len(t) <= LONGEST else f"{t[: LONGEST - 10]}... #{numbers[t]}" for t in texts]


def _spell(value: object) -> str:
    """A value as text; one that cannot be converted is shown shortened, and refused later."""
    try:
        return str(value)
    except (ValueError, RecursionError):
        return display(value)


def numeric(column: Sequence[Any]) -> bool:
    """Whether all values are numbers."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in column)


def axes(sweep: Sweep) -> Axes:
    """A dimension for each field of a grid; one for all settings of a list."""
    coords = {name: _to_coordinate(column) for name, column in values(sweep).items()}
    if isinstance(sweep, list) and sweep:
        return Axes((SETTING,), (len(sweep),), {name: (SETTING, column) for name, column in coords.items()})
    shape = tuple(len(column) for column in coords.values())
    return Axes(tuple(coords), shape, {name: (name, column) for name, column in coords.items()})


def _to_coordinate(column: Sequence[Any]) -> Any:
    """The coordinate of a column: numbers as an array, anything else as text."""
    if not numeric(column):
        return spelled(column)
    is_integer = all(isinstance(value, int) and abs(value) < LARGEST for value in column)
    return np.asarray(column, np.int64 if is_integer else np.float64)


def check(sweep: Any, run: Collection[str], problem: Collection[str]) -> None:
    """Raise InputError unless this is a sweep; `run` and `problem` are the names of their fields."""
    if not isinstance(sweep, dict | list):
        raise InputError("sweep", display(sweep), "a table, [sweep], or several, [[sweep]]")
    _check_names(sweep if isinstance(sweep, dict) else next(iter(sweep), ()), run, problem)
    _check_grid(sweep) if isinstance(sweep, dict) else _check_list(sweep)


def refuse_empty(sweep: Any) -> None:
    """Raise InputError if a sweep was given but is empty."""
    if isinstance(sweep, dict | list) and not sweep:
        allowed = "fields of the problem with lists of values, as in noise_cov = [0.5, 1.0]; or no sweep"
        raise InputError("sweep", "is empty", allowed)


def _check_names(table: Any, run: Collection[str], problem: Collection[str]) -> None:
    """Check the names of the fields before their values, of which there may be very many."""
    for name in table if isinstance(table, dict) else ():
        if name in run and name not in problem:
            allowed = f"fields of [problem]: {', '.join(problem)}"
            raise InputError(f"sweep.{name}", "a field of [run], which all settings share", allowed)
        if name not in problem:
            raise InputError(f"sweep.{name}", "unknown field", ", ".join(problem))


def _check_grid(grid: Mapping[str, Any]) -> None:
    for name, column in grid.items():
        if (
            not isinstance(column, list)
            or not column
            or len({_comparison_key(value) for value in column}) < len(column)
        ):
            raise InputError(f"sweep.{name}", column, "a list of one or more values, all different")
    _check_number(math.prod(map(len, grid.values())))


def _check_list(settings: Sequence[Any]) -> None:
    _check_number(len(settings))
    seen: dict[Any, int] = {}
    for number, setting in enumerate(settings, 1):
        if not isinstance(setting, dict) or not setting:
            raise InputError(
                f"sweep[{number}]", display(setting), "a table of fields of the problem: [[sweep]]"
            )
        if setting.keys() != settings[0].keys():
            allowed = f"the fields of the first: {', '.join(settings[0])}"
            raise InputError(f"sweep[{number}]", f"has {', '.join(setting)}", allowed)
        key = tuple(_comparison_key(setting[name]) for name in settings[0])
        if key in seen:
            problem = f"is the same as sweep[{seen[key]}]"
            raise InputError(f"sweep[{number}]", problem, "settings that are all different")
        seen[key] = number


def _check_number(count: int) -> None:
    if count > MOST_SETTINGS:
        problem = f"{count} settings" if count < LARGEST else f"{LARGEST} settings or more"
        raise InputError("sweep", problem, f"at most {MOST_SETTINGS}")


def _comparison_key(value: Any) -> Any:
    """Equal for values that mean the same: 1 and 1.0, but not 1 and true."""
    if isinstance(value, list):
        return tuple(map(_comparison_key, value))
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else display(value)
