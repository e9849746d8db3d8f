"""How kernels are compiled: once on each machine if the result can be cached, otherwise in each process.

They are stored in Numba's own cache, with two differences. A program is valid as long as all files of kernels
stay the same, not only the file of its own function. And programs of different sizes have files of their own,
so that two processes that compile at the same time cannot take each other's.
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

# Sums may be reordered, and a product and a sum rounded once, which changes only the last bits. NaN stays
# NaN, and dividing by zero is infinite, as with NumPy. Kernels get all their arrays and allocate none, so
# that no references need be counted.
SETTINGS: Any = {"error_model": "numpy", "_nrt": False, "fastmath": {"reassoc", "contract", "nsz"}}


@cache
def sources() -> str:
    """A hash of the kernels' sources, and of the one constant that they import."""
    texts = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return sha256(b"\0".join([*texts, repr(TIE).encode()])).hexdigest()


def inlined(function: Function) -> Function:
    """Compile a part of a kernel, which is inlined wherever it is called."""
    options: Any = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, numba.njit(**options, **SETTINGS)(function))


def compiled(function: Function) -> Function:
    """A kernel that is compiled when it is first called, and cached if a folder can be written to."""
    try:
        dispatcher: Any = numba.njit(cache=True, **SETTINGS)(function)
    except RuntimeError:
        return cast(Function, numba.njit(**SETTINGS)(function))
    disk_cache = dispatcher._cache
    sizes = [str(cell.cell_contents) for cell in function.__closure__ or ()]
    name = ".".join([disk_cache._impl.filename_base, *sizes])
    disk_cache._cache_file = IndexDataCacheFile(disk_cache._cache_path, name, sources())  # type: ignore[no-untyped-call]
    return cast(Function, dispatcher)
