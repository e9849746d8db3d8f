"""Readings and true contexts as a caller gives them: matrices of numbers, NaN where a value is missing.

Every design of a calibration (model/study.py) reads its tables here, so that all of them refuse the same
things in the same words.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.inputs import LARGEST, InputError
from unfog.maths.arrays import Array, Bools, Ints

SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix that is not taken for zero
PAIRS = "two matrices (n, d) of numbers of the same shape; NaN where a value is missing"


class Rows(NamedTuple):
    """Pairs of which nothing is missing."""

    other: Array  # (n, d)
    true: Array  # (n, d)
    kept: Bools  # which of the rows given these are


def complete(field: str, other: npt.ArrayLike, true: npt.ArrayLike) -> Rows:
    """Both matrices without the rows that lack a value."""
    first, second = beside(field, other, true)
    kept = np.asarray(np.isfinite(first + second).all(axis=1))
    check_count(field, first[kept], 1)
    return Rows(first[kept], second[kept], kept)


def beside(field: str, other: npt.ArrayLike, true: npt.ArrayLike) -> tuple[Array, Array]:
    """Two matrices of one shape, with all their rows."""
    first, second = matrix(field, other), matrix("true", true)
    if first.shape != second.shape:
        raise InputError(field, f"has shape {first.shape} and true {second.shape}", PAIRS)
    return first, second


def matrix(field: str, value: npt.ArrayLike, allowed: str = PAIRS, ndim: int = 2) -> Array:
    """A matrix of floats, or an array of another rank, NaN where a value is missing or masked."""
    try:
        raw = _unboxed(value)
    except ValueError:
        raise InputError(field, "is ragged", allowed) from None
    if raw.dtype.kind not in "iuf":
        raise InputError(field, f"is made of {raw.dtype}, not of numbers", allowed)
    if raw.ndim != ndim or 0 in raw.shape:
        raise InputError(field, f"has shape {raw.shape}", allowed)
    numbers = raw.astype(np.float64)
    if isinstance(value, np.ma.MaskedArray):
        numbers = np.where(np.ma.getmaskarray(value), np.nan, numbers)
    _check_size(field, numbers, allowed)
    return numbers


def _unboxed(value: npt.ArrayLike) -> npt.NDArray[Any]:
    """An array; columns of pandas that can be missing come as objects, and are numbers all the same."""
    raw = np.asarray(value)
    if raw.dtype.kind != "O" or not hasattr(value, "to_numpy"):
        return raw
    boxed: npt.NDArray[Any] = value.to_numpy(dtype=object, na_value=np.nan)
    real = all(isinstance(one, Real) and not isinstance(one, bool) for one in boxed.flat)
    return boxed.astype(np.float64) if real else raw


def _check_size(field: str, numbers: Array, allowed: str) -> None:
    if not (np.abs(numbers) > LARGEST).any():
        return
    where = tuple(int(i) for i in np.argwhere(np.abs(numbers) > LARGEST)[0])
    place = f"row {where[0]}, column {where[-1]}"
    raise InputError(field, f"{place} is {numbers[where]:g}", allowed)


def check_count(field: str, pairs: Array, groups: int) -> None:
    """Refuse fewer pairs than a covariance needs."""
    n, d = pairs.shape
    if n < d + groups:
        more = f" and {groups} groups" if groups > 1 else ""
        allowed = f"at least {d + groups} pairs without a missing value, for {d} dimensions{more}"
        raise InputError(field, f"{n} pairs are complete", allowed)


def labels(groups: npt.ArrayLike | None, kept: Bools) -> Ints:
    """Groups of the pairs that are kept, numbered from 0."""
    if groups is None:
        return np.zeros(int(kept.sum()), np.intp)
    allowed = f"a label for each of the {len(kept)} pairs, two different ones or more among the complete"
    found = numbered("groups", groups, kept, allowed)
    if found.max(initial=-1) < 1:
        raise InputError("groups", f"{found.max(initial=-1) + 1} group with complete pairs", allowed)
    return found


def numbered(field: str, given: npt.ArrayLike, kept: Bools, allowed: str) -> Ints:
    """Labels of the rows that are kept, numbered from 0 in their order."""
    names = np.asarray(given)
    if names.dtype.kind == "O" and all(isinstance(label, str) for label in names.flat):
        names = names.astype(str)
    if names.shape != kept.shape:
        raise InputError(field, f"has shape {names.shape}", allowed)
    if names.dtype.kind not in "iufUMb" or (names[kept] != names[kept]).any():  # NaN is not equal to itself
        raise InputError(field, "has a label that is missing, or neither number nor text", allowed)
    found: Ints = np.unique(names[kept], return_inverse=True)[1]
    return found


def group_means(values: Array, labels: Ints) -> Array:
    """The mean of the rows (n, d) of each label, (G, d)."""
    return np.stack([np.bincount(labels, column) for column in values.T], 1) / np.bincount(labels)[:, None]


def check_varies(field: str, values: Array, before: Array, constant: str) -> None:
    """Refuse a column without spread; rounding of what it was made from leaves a trace of one."""
    flat = np.ptp(values, axis=0) <= 1e-14 * np.abs(before).max(axis=0)
    if flat.any():
        raise InputError(field, f"column {int(np.argmax(flat))} {constant}", "columns that vary")


def check_independent(field: str, values: Array) -> None:
    """Refuse columns whose covariance would be singular."""
    shifted = values - values.mean(axis=0)
    scaled = shifted / np.sqrt((shifted**2).mean(axis=0))
    if np.linalg.eigvalsh(scaled.T @ scaled / len(values))[0] < SINGULAR:
        problem = "columns hang together: one follows from the others"
        raise InputError(field, problem, "columns that vary on their own")
