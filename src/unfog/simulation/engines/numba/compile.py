"""How kernels are compiled: once a machine where the result can be kept, else once a process.

They are kept in Numba's own cache, with two differences. A program fits as long as all files that kernels are
made of stay the same, not the file of its own function alone. And programs of different sizes have files of
their own, so that two processes which compile at a time cannot take each other's.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile

from unfog.agents.choose.greedy import TIE

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be taken in another order, and a product and a sum rounded once: it is a matter of last bits. What
# is not a number stays so, and dividing by zero is infinite, as with NumPy. Kernels are given all their
# arrays and make none, so that nobody need count who holds one.
SETTINGS: Any = {"error_model": "numpy", "_nrt": False, "fastmath": {"reassoc", "contract", "nsz"}}


@cache
def sources() -> str:
    """A hash of all that kernels are made of: their text, and the number in it that is not their own."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return sha256(b"\0".join([*texts, repr(TIE).encode()])).hexdigest()


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
    kept = found._cache
    sizes = [str(cell.cell_contents) for cell in function.__closure__ or ()]
    name = ".".join([kept._impl.filename_base, *sizes])
    kept._cache_file = IndexDataCacheFile(kept._cache_path, name, sources())  # type: ignore[no-untyped-call]
    return cast(Function, found)
