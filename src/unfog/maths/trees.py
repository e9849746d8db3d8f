"""States: nested tuples of arrays."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from unfog.maths.arrays import Array, Bools, flow_of

Tree = TypeVar("Tree")


def each(function: Callable[..., Array], state: Any, *others: Any) -> Any:
    """A function of every array in nested tuples, which keep their kind."""
    if not isinstance(state, tuple):
        return function(state, *others)
    found = [each(function, *parts) for parts in zip(state, *others, strict=True)]
    return tuple(found) if type(state) is tuple else type(state)(*found)


def contiguous(state: Any) -> Any:
    """The state with all its arrays of NumPy in C order; the same object where they are so already."""
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
    else:  # as most are
        return state
    parts = [contiguous(part) for part in state]
    return tuple(parts) if type(state) is tuple else type(state)(*parts)


def either(where: Bools, new: Tree, old: Tree) -> Tree:
    """The new state where it is true, the old one elsewhere; the axes of `where` come first in both."""
    xp = where.__array_namespace__()
    found: Tree = each(lambda now, was: xp.where(_over(where, now), now, was), new, old)
    return found


def changed(where: Bools, step: Callable[..., Tree], state: Tree, *inputs: Any) -> Tree:
    """The state where it is false, step(state, *inputs) where it is true.

    All arrays have the axes of `where` in front. NumPy works on the places where it is true alone; a library
    that compiles needs shapes that depend on no number, and works on all.
    """
    xp = where.__array_namespace__()
    found: Tree
    if xp is not np:
        return either(where, step(state, *inputs), state)
    if not where.any():
        return state
    if where.all():
        return step(state, *inputs)
    some = step(*each(lambda x: x[where], (state, *inputs)))
    found = each(lambda old, now: _put(old, where, now), state, some)
    return found


def if_any(where: Bools, make: Callable[[], Tree], state: Tree) -> Tree:
    """The state if `where` is true nowhere, for what is dear to make and seldom asked for; else what is made.

    A library that cannot ask makes it in any case.
    """
    flow = flow_of(where.__array_namespace__())
    if flow is None:
        return make()
    found: Tree = flow.choose(where.any(), lambda: _alike(make(), state), lambda: state)
    return found


def settle(
    moves: Callable[[Tree], Bools], step: Callable[..., Tree], state: Tree, most: int, *inputs: Any
) -> Tree:
    """Steps where a state still moves, so many at most: as long as any trial moves."""
    flow = flow_of(moves(state).__array_namespace__())
    if flow is None:
        for _ in range(most):
            state = changed(moves(state), step, state, *inputs)
        return state

    def again(count: Any, state: Tree) -> tuple[Any, Tree]:
        return count + 1, _alike(changed(moves(state), step, state, *inputs), state)

    xp = moves(state).__array_namespace__()
    found: Tree = flow.repeat(
        lambda at: (at[0] < most) & moves(at[1]).any(), lambda at: again(*at), (xp.asarray(0), state)
    )[1]
    return found


def _alike(new: Tree, old: Tree) -> Tree:
    """With the kinds of numbers of another."""
    found: Tree = each(lambda x, y: x.astype(y.dtype), new, old)
    return found


def _over(where: Bools, like: Array) -> Bools:
    """With axes of one for those that only the array has."""
    return where.reshape((*where.shape, *(1,) * (like.ndim - where.ndim)))


def _put(old: Array, where: Bools, new: Array) -> Array:
    """A copy with other values in some places."""
    found = old.copy()
    found[where] = new
    return found
