"""A snapshot: what is remembered of a problem, as bytes, so that a start need not read the whole log.

It is a cache. It fits where versions, code, terms, its own checksum and the processor's rounding are what
they were; else, or whenever it cannot be read, it is passed over and the log is read from its beginning.
"""

import platform
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from unfog import _codec
from unfog.live.log import Log
from unfog.live.made import Made
from unfog.live.reference import fingerprint as fingerprint_of
from unfog.live.replay import folded
from unfog.live.state import State
from unfog.version import __version__

HOME = Path(__file__).parents[1]
ROOMS = ("agents", "features", "live", "maths", "model", "validation.py")


def files() -> list[Path]:
    """The source files of all code that a fold runs."""
    rooms = [HOME / room for room in ROOMS]
    return [path for room in rooms for path in (sorted(room.rglob("*.py")) if room.is_dir() else [room])]


@cache
def _code() -> str:
    """A hash of them."""
    found = sha256()
    for path in files():
        found.update(path.read_bytes())
    return found.hexdigest()


@cache
def _rounding() -> str:
    """A hash of some results to the last bit, which another processor, or another BLAS, rounds otherwise."""
    x = np.arange(900.0).reshape(30, 30) % 7.3
    square = x @ x.T + np.eye(30)
    parts = [square, x @ x[0], np.linalg.cholesky(square), np.linalg.inv(square), np.exp(-x), np.log1p(x)]
    parts += [x[:n, :n] @ x[:n, n:] for n in (3, 5, 9, 12)]
    return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def fingerprint(made: Made) -> str:
    """What must be equal for a snapshot to fit."""
    versions = (
        __version__,
        np.__version__,
        platform.python_version(),
        platform.machine(),
        _rounding(),
        _code(),
    )
    return sha256(repr((versions, made.terms.uid, made.terms.fingerprints)).encode()).hexdigest()


def content(state: State) -> dict[str, Any]:
    """All that is remembered, in nested values; whatever happens to the state then, they do not change."""
    return {
        "number": state.number,
        "floor": state.floor.bit_generator.state,
        "arms": state.arms.content(),
        "minds": state.minds.content(),
        "windows": state.windows.content(),
        "watch": state.watch.content(),
    }


def digest(state: State) -> str:
    """A hash of it."""
    return _codec.digest(content(state))


def written(told: Mapping[str, Any]) -> bytes:
    """The content of a state as bytes."""
    return _codec.encode(told)


def restored(log: Log, name: str, made: Made) -> tuple[State, int]:
    """The state of a problem, from a snapshot if one fits; and how many events had to be read besides."""
    found, state, after = log.snapshot(name), None, 0
    if found is not None and found[1] == fingerprint(made):
        state, after = _read(made, found[2]), found[0]
    if state is None:
        after = 0
    state, replayed = folded(made, log.read(name, after), state)
    return state, replayed.events


def _read(made: Made, blob: bytes) -> State | None:
    """The state that a snapshot holds; None where it cannot be read."""
    own = [path.partition(":")[0] for path in (made.terms.agent, made.terms.features) if ":" in path]
    try:
        told = _codec.decode(blob, allowed=own)
        return _filled(State(made), told)
    except (_codec.DecodeError, KeyError, TypeError, ValueError, IndexError):
        return None  # in doubt the log is read


def _filled(state: State, told: Mapping[str, Any]) -> State:
    state.arms.fill(told["arms"])
    if any(fingerprint_of("shadow", name) is not None for name in told["minds"] if name):
        raise ValueError("the log says with which code a shadow of the caller's own joined")
    state.minds.fill(told["minds"], state.arms.features)
    state.windows.fill(told["windows"])
    state.watch.fill(told["watch"])
    state.number = told["number"]
    state.floor.bit_generator.state = told["floor"]
    return state
