"""States: nested tuples of arrays."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from unfog.maths.arrays import Array, Bools, flow_of

Tree = TypeVar("Tree")


def map_arrays(function: Callable[..., Array], state: Any, *others: Any) -> Any:
    """Apply a function to every array in nested tuples; the tuples keep their classes."""
    if not isinstance(state, tuple):
        return function(state, *others)
    items = [map_arrays(function, *parts) for parts in zip(state, *others, strict=True)]
    return tuple(items) if type(state) is tuple else type(state)(*items)


def contiguous(state: Any) -> Any:
    """The state with all NumPy arrays in C order; the same object if they already are."""
    if isinstance(state, np.ndarray):
        return state if state.flags.c_contiguous else np.ascontiguousarray(state)
    if not isinstance(state, tuple):
        return state
    for part in state:
        if isinstance(part, np.ndarray):
            if not part.flags.c_contiguous:
                break
        elif isinstance(part, tuple) and contiguous(part) is not part:
            break
    else:  # the usual case
        return state
    items = [contiguous(part) for part in state]
    return tuple(items) if type(state) is tuple else type(state)(*items)


def where(condition: Bools, new: Tree, old: Tree) -> Tree:
    """The new state where `condition` is true, else the old one; its axes come first in both."""
    xp = condition.__array_namespace__()
    state: Tree = map_arrays(lambda x, y: xp.where(_add_axes(condition, x), x, y), new, old)
    return state


def update_where(condition: Bools, step: Callable[..., Tree], state: Tree, *inputs: Any) -> Tree:
    """The state where `condition` is false, step(state, *inputs) where it is true.

    All arrays have the axes of `condition` in front. NumPy computes the step only where it is true; a library
    that compiles needs fixed shapes and computes it everywhere.
    """
    xp = condition.__array_namespace__()
    merged: Tree
    if xp is not np:
        return where(condition, step(state, *inputs), state)
    if not condition.any():
        return state
    if condition.all():
        return step(state, *inputs)
    stepped = step(*map_arrays(lambda x: x[condition], (state, *inputs)))
    merged = map_arrays(lambda old, new: _put_values(old, condition, new), state, stepped)
    return merged


def if_any(condition: Bools, make: Callable[[], Tree], state: Tree) -> Tree:
    """`make()` if `condition` is true anywhere, else the state: for results that are expensive and rare.

    A library without a conditional calls `make` in any case.
    """
    flow = flow_of(condition.__array_namespace__())
    if flow is None:
        return make()
    chosen: Tree = flow.choose(condition.any(), lambda: _cast_like(make(), state), lambda: state)
    return chosen


def iterate(
    moves: Callable[[Tree], Bools], step: Callable[..., Tree], state: Tree, most: int, *inputs: Any
) -> Tree:
    """Take steps where a state still moves, until no trial moves, and `most` of them at most."""
    flow = flow_of(moves(state).__array_namespace__())
    if flow is None:
        for _ in range(most):
            state = update_where(moves(state), step, state, *inputs)
        return state

    def step_once(count: Any, state: Tree) -> tuple[Any, Tree]:
        return count + 1, _cast_like(update_where(moves(state), step, state, *inputs), state)

    xp = moves(state).__array_namespace__()
    final: Tree = flow.repeat(
        lambda carry: (carry[0] < most) & moves(carry[1]).any(),
        lambda carry: step_once(*carry),
        (xp.asarray(0), state),
    )[1]
    return final


def _cast_like(new: Tree, old: Tree) -> Tree:
    """The new state with the dtypes of the old one."""
    converted: Tree = map_arrays(lambda x, y: x.astype(y.dtype), new, old)
    return converted


def _add_axes(condition: Bools, like: Array) -> Bools:
    """The condition with trailing axes of one, to broadcast against `like`."""
    return condition.reshape((*condition.shape, *(1,) * (like.ndim - condition.ndim)))


def _put_values(old: Array, condition: Bools, new: Array) -> Array:
    """A copy of `old` with the values `new` condition `condition` is true."""
    copy = old.copy()
    copy[condition] = new
    return copy
