"""How kernels are compiled: once a machine where the result can be kept, else once a process."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from unfog.simulate.engines.numba_kept import Kept

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be taken in another order, and a product and a sum rounded once: it is a matter of last bits. What
# is not a number stays so, and dividing by zero is infinite, as with NumPy. Kernels are given all their
# arrays and make none, so that nobody need count who holds one.
SETTINGS: Any = {"error_model": "numpy", "_nrt": False, "fastmath": {"reassoc", "contract", "nsz"}}


def inlined(function: Function) -> Function:
    """A piece of a kernel, put in its place wherever it is called."""
    alone: Any = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, numba.njit(**alone, **SETTINGS)(function))


def compiled(function: Function) -> Function:
    """A kernel, to be compiled when it is first called, and kept where anything can be written."""
    try:
        found: Any = numba.njit(cache=True, **SETTINGS)(function)
    except RuntimeError:
        return cast(Function, numba.njit(**SETTINGS)(function))
    found._cache._cache_file = Kept.instead_of(found._cache._cache_file)
    return cast(Function, found)
