"""How kernels are compiled: once a machine where the result can be kept, else once a process.

Kept programs are files, one for each, under a hash of their bytes that is looked at before use. Numba's own
cache runs whatever stands in its files, damaged or not, and looks for changes in the file of the kernel
alone. Here a program says for which sources, version and signature it was made; what does not fit, or has one
wrong bit, is compiled again and replaced, and what other sources made is removed.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile
from numba.core.serialize import dumps

from unfog.agents.choose.greedy import TIE

SEAL = 32  # bytes
SUFFIX = ".nbk"
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


class Kept(IndexDataCacheFile):
    """In the place of Numba's index and numbered files."""

    @classmethod
    def instead_of(cls, other: Any) -> "Kept":
        """A cache in the folder of this one, whose files have the same beginning of names."""
        return cls(other._cache_path, other._index_name.removesuffix(".nbi"), sources())

    def flush(self) -> None:
        """There is no index."""

    def path(self, key: Any) -> Path:
        """The file of the program for a signature on a kind of processor."""
        name = sha256(repr((key, self._version)).encode()).hexdigest()[:20]
        return Path(self._cache_path, self._index_name.removesuffix("nbi") + name + self._ending)

    @property
    def _ending(self) -> str:
        """What the names of all programs have that these sources made."""
        return f".{self._source_stamp[:12]}{SUFFIX}"

    def save(self, key: Any, data: Any) -> None:
        """Written beside and renamed: nobody sees half of it."""
        told = key, self._version, self._source_stamp, data
        text: bytes = dumps(told)  # type: ignore[no-untyped-call]
        with self._open_for_write(str(self.path(key))) as file:
            file.write(sha256(text).digest() + text)
        for other in Path(self._cache_path).glob(f"*{SUFFIX}"):
            if not other.name.endswith(self._ending):
                with suppress(OSError):
                    other.unlink()

    def load(self, key: Any) -> Any:
        """What was kept; None where nothing was, or where it is not what was written."""
        try:
            whole = self.path(key).read_bytes()
        except OSError:
            return None
        if sha256(whole[SEAL:]).digest() != whole[:SEAL]:
            return None
        *made_for, data = pickle.loads(whole[SEAL:])  # noqa: S301 - Numba's way, and by now our own bytes
        return data if made_for == [key, self._version, self._source_stamp] else None


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
