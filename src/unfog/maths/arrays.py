"""Array operations for NumPy and JAX alike, and what a compiled program may decide while it runs.

Arrays carry leading batch axes (trials), written `...` in the shapes. Statically an `Array` is a NumPy array;
at run time it is any array with `__array_namespace__`, which is how a function finds its library.

NumPy has numbers, and Python's own `if`. A library that compiles has no numbers yet, so all cases are worked
out, unless the engine that compiles offers a conditional and a loop (`register_flow`). Nothing here knows
such a library by name.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]


def matvec(matrix: Array, vector: Array) -> Array:
    """Matrix times vector over the batch: (..., p, q), (..., q) -> (..., p).

    Where one matrix serves a block of rounds of every trial (vectors (trials, rounds, q)), that is one matrix
    product a trial, which is several times as fast; a trial's bits do not depend on the others beside it.
    """
    if matrix.ndim == 2 and vector.ndim > 2:
        return vector @ matrix.mT
    return (matrix @ vector[..., None])[..., 0]


def rowdots(rows: Array, vector: Array) -> Array:
    """Every row's product with the vector: (..., K, p), (..., p) -> (..., K).

    Where one set of rows serves many vectors (rows (..., 1, K, p) against (..., n, p)), this is one matrix
    product instead of n matrix-vector products, which is several times as fast.
    """
    if rows.ndim > 2 and rows.shape[-3] == 1 and vector.ndim > 1 and vector.shape[-2] > 1:
        return vector @ rows[..., 0, :, :].mT
    return matvec(rows, vector)


def take(rows: Array, arm: Ints, core: int = 1) -> Array:
    """The chosen row: (..., K, *core) and arm (...,) -> (..., *core), with `core` axes.

    Rows that all arms share may have fewer axes, or one entry, where arms have more.
    """
    batch = rows.ndim - core - 1
    if batch == 1 and rows.shape[0] == 1:
        rows, batch = rows[0], 0
    if batch == 0:
        return rows[arm]
    xp = rows.__array_namespace__()
    if batch == 1 and rows.shape[:1] == arm.shape:  # not shared: plain indexing is faster
        return rows[xp.arange(rows.shape[0]), arm]
    rows = rows.reshape(*[1] * (arm.ndim - batch), *rows.shape)
    axis = -core - 1
    chosen: Array = xp.take_along_axis(rows, arm.reshape(*arm.shape, *[1] * (core + 1)), axis)
    return chosen.squeeze(axis)


def pick(values: Array, arm: Ints) -> Array:
    """The chosen arm's value: (..., K) and arm (...,) -> (...,)."""
    return take(values, arm, 0)


def stretch(x: Array, like: Array) -> Array:
    """The array broadcast to the shape of `like`."""
    xp = x.__array_namespace__()
    return x if x.shape == like.shape else xp.broadcast_to(x, like.shape)


def flat(matrices: Array) -> Array:
    """Each matrix with its rows laid end to end: (..., p, q) -> (..., p q)."""
    rows, columns = matrices.shape[-2:]  # not -1, which cannot be inferred where there are no matrices
    return matrices.reshape(*matrices.shape[:-2], rows * columns)


def diagonal_matrix(entries: Array) -> Array:
    """The matrices with these diagonals: (..., d) -> (..., d, d)."""
    xp = entries.__array_namespace__()
    matrices: Array = entries[..., None] * xp.eye(entries.shape[-1], dtype=entries.dtype)
    return matrices


def holds_everywhere(condition: Bools) -> bool:
    """Whether a condition is known to hold everywhere, so that no other case needs to be computed.

    Always false in a library that compiles, which must prepare for every case before there are any numbers.
    """
    return condition.__array_namespace__() is np and bool(condition.all())


class Flow(NamedTuple):
    """The conditional and the loop of a library that compiles."""

    choose: Callable[..., Any]  # (condition, this, that): this() if it holds, else that()
    repeat: Callable[..., Any]  # (condition, step, state): state = step(state) as long as condition(state)
    calls: bool  # whether LAPACK, called for one matrix after another, is quick: on a CPU, not on a GPU


_FLOWS = dict[Any, Flow]()


def register_flow(library: Any, flow: Flow) -> None:
    """Register the conditional and the loop for arrays of a library (their `__array_namespace__()`)."""
    _FLOWS[library] = flow


def flow_of(library: Any) -> Flow | None:
    """The conditional and the loop registered for a library; None if there are none."""
    return _FLOWS.get(library)
