"""States: nested tuples of arrays."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from unfog.maths.arrays import Array, Bools

Tree = TypeVar("Tree")


def each(function: Callable[..., Array], state: Any, *others: Any) -> Any:
    """A function of every array in nested tuples, which keep their kind."""
    if not isinstance(state, tuple):
        return function(state, *others)
    found = [each(function, *parts) for parts in zip(state, *others, strict=True)]
    return tuple(found) if type(state) is tuple else type(state)(*found)


def either(where: Bools, new: Tree, old: Tree) -> Tree:
    """The new state where it is true, the old one elsewhere; the axes of `where` come first in both."""
    xp = where.__array_namespace__()
    found: Tree = each(lambda now, was: xp.where(_over(where, now), now, was), new, old)
    return found


def changed(where: Bools, step: Callable[..., Tree], state: Tree, *inputs: Any) -> Tree:
    """The state where it is false, step(state, *inputs) where it is true.

    All arrays have the axes of `where` in front. NumPy works on the places where it is true alone; a library
    that compiles needs shapes that hang on no number, and works on all.
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


def _over(where: Bools, like: Array) -> Bools:
    """With axes of one for those that only the array has."""
    return where.reshape((*where.shape, *(1,) * (like.ndim - where.ndim)))


def _put(old: Array, where: Bools, new: Array) -> Array:
    """A copy with other values in some places."""
    found = old.copy()
    found[where] = new
    return found
