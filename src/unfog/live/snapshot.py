"""Snapshots of a problem's state, the replay of its log, and the check of one against the other.

A snapshot is a cache: it saves reading the whole log at the start. It is used only if versions, code, terms,
checksum and the rounding of the processor are the same as when it was written. Otherwise, or if it cannot be
read, the log is read from its beginning.

`replayed` compares the state in memory with the log while others go on deciding. It holds the lock only to
copy the state and to note the last row of the log that is in it, and then folds the rows up to there without
the lock. Rows that come later are in neither of the two. Rows up to there may still change: a unit may be
erased, or a commit may fail. In that case the state in memory is dropped too, which is noticed, and the
comparison starts again.
"""

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import _codec
from unfog.live import config
from unfog.live.backend import Row
from unfog.live.config import Made
from unfog.live.errors import Differs, StoreError
from unfog.live.log import Log
from unfog.live.requests import REQUEST, read
from unfog.live.state import State
from unfog.version import __version__

if TYPE_CHECKING:
    from unfog.live.processor import Processor

HOME = Path(__file__).parents[1]
ROOMS = (
    "agents",
    "channel",
    "features",
    "live",
    "maths",
    "_codec.py",
    "_io.py",
    "_table.py",
    "validation.py",
)
ROUNDING = 1e-9
TRIES = 3


def files() -> list[Path]:
    """The source files of all code that a fold runs."""
    rooms = [HOME / room for room in ROOMS]
    return [path for room in rooms for path in (sorted(room.rglob("*.py")) if room.is_dir() else [room])]


@cache
def _code() -> str:
    """A hash of the source files that a fold runs."""
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
        "runners": state.runners.content(),
        "windows": state.windows.content(),
        "watch": state.watch.content(),
    }


def digest(state: State) -> str:
    """A hash of all that is remembered."""
    return _codec.digest(content(state))


def written(told: Mapping[str, Any]) -> bytes:
    """The content of a state as bytes."""
    return _codec.encode(told)


class Replayed(NamedTuple):
    """What a replay found."""

    events: int
    decisions: int  # among them
    verified: int  # of which so many were made again, and came out as logged but for rounding
    same: bool = True  # whether what is remembered equals what the log says, to the last bit


def folded(made: Made, rows: Iterable[Row], state: State | None = None) -> tuple[State, Replayed]:
    """The state that the events lead to, from the beginning or from a given state."""
    state = State(made) if state is None else state
    events = decisions = 0
    for row in rows:
        if row.kind != "problem":
            state.apply(row.kind, row.decision, json.loads(row.body), row.time)
            decisions += row.kind == "decide"
        events += 1
    return state, Replayed(events, decisions, 0)


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
    except _codec.DecodeError:  # a shadow of the caller's own has classes of its own
        return None
    if any(config.fingerprint("shadow", name) is not None for name in told["runners"] if name):
        return None  # the log says with which code it joined
    state = State(made)
    state.arms.fill(told["arms"])
    state.runners.fill(told["runners"], state.arms.features)
    state.windows.fill(told["windows"])
    state.watch.fill(told["watch"])
    state.number = told["number"]
    state.floor.bit_generator.state = told["floor"]
    return state


def verified(made: Made, rows: Iterable[Row], since: int = 0) -> tuple[State, Replayed]:
    """Fold the events, and make every decision after the event `since` again to compare it."""
    state, events, decisions, again = State(made), 0, 0, 0
    for row in rows:
        body = json.loads(row.body)
        decisions += row.kind == "decide"
        if row.kind == "decide" and row.seq > since:
            ask = read(made, {n: body[n] for n in REQUEST if n in body})
            _compare(made, row, body, state.decide(ask, row.time))
            again += 1
        elif row.kind != "problem":
            state.apply(row.kind, row.decision, body, row.time)
        events += 1
    return state, Replayed(events, decisions, again)


def _compare(made: Made, row: Row, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a decision that would come out otherwise today, by more than rounding."""
    before, after = _in_standard_units(made, was), _in_standard_units(made, now)
    for name in now:
        if not _alike(before.get(name), after[name]):
            what = f"decision {row.decision} (event {row.seq}) has {name} = {was.get(name)!r} in the log"
            raise Differs(f"{what}, and would have {now[name]!r} if it were made again")


def _in_standard_units(made: Made, body: dict[str, Any]) -> dict[str, Any]:
    """A decision with all its numbers of the size of one, so that one tolerance fits them."""
    scales, found = dict(zip(made.terms.context, made.units.scale.tolist(), strict=True)), body.copy()
    for part, power in (("denoised", 1), ("sd", 2)):  # a variance may be zero but for rounding
        if isinstance(body.get(part), dict):
            found[part] = {name: (x / scales.get(name, 1.0)) ** power for name, x in body[part].items()}
    return found


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers may differ as they do between two processors."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= ROUNDING * max(1.0, abs(one), abs(other))
    if isinstance(one, dict) and isinstance(other, dict):  # a share of zero is left out
        return all(_alike(one.get(name, 0.0), other.get(name, 0.0)) for name in one | other)
    return bool(one == other)


class Held(NamedTuple):
    """What was remembered at a moment."""

    state: State  # it goes on changing
    told: dict[str, Any]  # all that it held, which does not
    upto: int  # the last row that is in it
    epoch: int  # of the log


def replayed(processor: "Processor", name: str, verify: bool) -> Replayed:
    """What a replay of one problem finds; what is remembered is put right where the log says otherwise."""
    for _ in range(TRIES):
        held = processor.cache.held(name)
        try:
            state, found = _replayed(processor, name, held, verify)
        except StoreError:
            if processor.cache.holds(name, held) or processor.log.closed:
                raise
            continue  # it was read while it changed
        if _codec.digest(held.told) == digest(state):
            return found
        if processor.cache.replace(name, held, state, found.events):
            return found._replace(same=False)
    raise StoreError(f"the log of {name!r} was changed {TRIES} times while it was read; ask again")


def _replayed(processor: "Processor", name: str, held: Held, verify: bool) -> tuple[State, Replayed]:
    made = processor.made(name)
    if not verify:
        return folded(made, _rows(processor, name, held))
    erasures = [row.seq for row in _rows(processor, name, held) if row.kind == "erase"]
    return verified(made, _rows(processor, name, held), max(erasures, default=0))


def _rows(processor: "Processor", name: str, held: Held) -> Iterator[Row]:
    """The rows of the log up to there; an error once it is closed, so that nobody waits for this."""
    for row in processor.log.read(name, upto=held.upto):
        if processor.log.closed:
            raise StoreError(f"{processor.log.backend.name} was closed while the log of {name!r} was read")
        yield row
