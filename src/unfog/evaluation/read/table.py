"""A table of decisions as a log: a data frame, a mapping of columns, what was read of a CSV file.

A row is a decision. Empty cells are coordinates that were lost, and truths that are not known; elsewhere they
are refused. A table that `unfog live table` wrote says what became of each decision: those without a reward
that was learnt are left out, and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import refusals, values
from unfog.evaluation.read.columns import Columns, Found, found
from unfog.evaluation.read.where import Where, counted, first
from unfog.maths.arrays import Array, Bools, Ints
from unfog.validation import InputError, shown

LEARNT = ("learnt", "waits")
OUTCOMES = (*LEARNT, "open", "kept", "void", "expired", "dropped", "erased")
OUTCOME = "outcome"
TAKES = ("columns", "arms", "coordinates", "probability")  # of what a caller may say


def names_of(table: Any) -> list[str] | None:
    """The names of a table's columns; None of what is no table."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    columns = table.dtype.names if isinstance(table, np.ndarray) else getattr(table, "columns", None)
    return None if columns is None or not hasattr(table, "__getitem__") else [str(name) for name in columns]


def read(
    table: Any, columns: Columns, arms: Sequence[str] | None, coordinates: Sequence[str] | None, source: str
) -> Log:
    """The log of a table whose columns are taken by name."""
    names = names_of(table) or []
    which = found(columns, names, coordinates)
    wanted = {*which.numbers, *which.texts, *outcome(names, which)}
    own = {name: _cells(name, table[name]) for name in sorted(wanted)}
    _refuse_lengths(own)
    return made(own, which, arms, counted(len(own[which.arm])), source)


def outcome(names: Sequence[str], which: Found) -> list[str]:
    """The column that says what became of decisions, unless a caller has another use for that name."""
    used = OUTCOME in (*which.numbers, *which.texts)
    return [OUTCOME] if OUTCOME in names and not used else []


def _cells(name: str, column: Any) -> Any:
    """An array; of a list every cell as it is, since NumPy would make a number of a truth value."""
    listed = isinstance(column, list | tuple)
    found = np.array([*column, None], object)[:-1] if listed else np.asarray(column)
    if found.ndim != 1:
        raise InputError(name, f"{shown(column)}, of shape {found.shape}", "a list with a value for each row")
    return found


def _refuse_lengths(own: Mapping[str, Any]) -> None:
    sizes = {name: len(column) for name, column in own.items()}
    usual = Counter(sizes.values()).most_common(1)[0][0]
    for name, size in sizes.items():
        if size != usual:
            raise InputError(name, f"{size} rows", f"{usual}, as many as the other columns have")


def made(own: Mapping[str, Any], which: Found, arms: Sequence[str] | None, where: Where, source: str) -> Log:
    """The log of columns that are there."""
    own, where, notes = _without_reward(dict(own), which, where)
    if not len(own[which.arm]):
        raise InputError("log", f"no rows in {source}", "one decision at least, with its reward")
    if arms is None and which.probabilities:
        arms = list(which.probabilities)
    arm, listed = values.arms(which.arm, own[which.arm], where, arms)
    every = _every(own, which, listed, where)
    unit, units = (None, ()) if which.unit is None else _units(own[which.unit], where, which.unit)
    log = Log(
        which.coordinates,
        listed,
        _stacked(own, which.context, where),
        arm,
        values.numbers(which.reward, own[which.reward], where),
        _probability(own, which, every, arm, where),
        even(which.probability, len(arm), len(listed)) if every is None else every,
        _truth(own, which, where),
        None if which.time is None else values.times(which.time, own[which.time], where),
        unit,
        units,
        source,
        notes,
    )
    return refusals.checked(log, where, which.called)


def _without_reward(
    own: dict[str, Any], which: Found, where: Where
) -> tuple[dict[str, Any], Where, tuple[str, ...]]:
    """Leave out what a table of live decisions says has no reward, or was chosen by somebody else."""
    said = np.asarray(own.pop(OUTCOME)).tolist() if outcome(list(own), which) else []
    if not said or not set(said) <= {*OUTCOMES}:
        return own, where, ()
    keep: Bools = np.array([one in LEARNT for one in said])
    notes = [f"{n} decisions are {one}" for one, n in sorted(Counter(said).items()) if one not in LEARNT]
    if isinstance(which.probability, str):
        told = values.numbers(which.probability, own[which.probability], where)
        forced = keep & np.isnan(told)
        if forced.any() and not np.isnan(told).all():
            notes.append(f"{forced.sum()} decisions were forced, and no probability was told")
            keep &= ~forced
    left = {name: np.asarray(column)[keep] for name, column in own.items()}
    return left, where.kept(keep), tuple(f"{note}: left out" for note in notes)


def _stacked(own: Mapping[str, Any], columns: Sequence[str], where: Where) -> Array:
    return np.stack([values.numbers(name, own[name], where) for name in columns], axis=1)


def _every(own: Mapping[str, Any], which: Found, arms: Sequence[str], where: Where) -> Array | None:
    """The probabilities of all arms, where they are there."""
    if not which.probabilities:
        return None
    missing = [arm for arm in arms if arm not in which.probabilities]
    if missing or len(which.probabilities) != len(arms):
        said = f"columns for {', '.join(which.probabilities)}"
        raise InputError("probabilities", said, f"one for each arm: {', '.join(arms)}")
    return _stacked(own, [which.probabilities[arm] for arm in arms], where)


def _probability(own: Mapping[str, Any], which: Found, every: Array | None, arm: Ints, where: Where) -> Array:
    """That of the arm drawn."""
    told = which.probability
    if isinstance(told, str):
        found = values.numbers(told, own[told], where)
        if np.isnan(found).all():
            raise InputError("probability", f"the column {told!r} is empty", refusals.WITHOUT)
        return found
    if told is not None:
        return np.full(len(arm), told)
    assert every is not None  # of the columns one or the other is there
    return every[np.arange(len(arm)), arm]


def even(probability: object, rounds: int, arms: int) -> Array | None:
    """The probabilities of arms that were drawn evenly; refused where it is another number than 1 / K."""
    if not isinstance(probability, float):
        return None
    if abs(probability * arms - 1) > refusals.CLOSE:
        allowed = f"{1 / arms:.6g} if all of {arms} arms were drawn evenly; else a column of probabilities"
        raise InputError("probability", probability, f"{allowed}; list arms that were never drawn, too")
    return np.full((rounds, arms), probability)


def _truth(own: Mapping[str, Any], which: Found, where: Where) -> Array | None:
    if not which.true:
        return None
    empty = np.full(len(own[which.arm]), np.nan)
    told = {one: values.numbers(name, own[name], where) for one, name in which.true.items()}
    found = np.stack([told.get(one, empty) for one in which.coordinates], axis=1)
    return None if np.isnan(found).all() else found


def _units(cells: Any, where: Where, column: str) -> tuple[Ints | None, tuple[str, ...]]:
    """Whose each row is; none where all cells are empty."""
    places, names = values.coded(column, cells, where)
    at = first(places < 0)
    if at is not None and names:
        raise InputError(where.of(at, column), "nothing", "whose context it is: every row says so, or none")
    return (places, tuple(names)) if names else (None, ())
