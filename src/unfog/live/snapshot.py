"""Snapshots of a problem's state, the replay of its log, and the comparison of the two.

A snapshot is a cache: it saves reading the whole log at the start. It is used only if versions, code, terms,
checksum and the rounding of the processor are the same as when it was written. Otherwise, or if it cannot be
read, the log is read from its beginning.

`replayed` compares the state in memory with the log while other threads go on deciding. It holds the lock
only to copy the state and to note the last row of the log that is in it, and then folds the rows up to there
without the lock. Rows that come later are in neither of the two. Rows up to there may still change: a unit
may be erased, or a commit may fail. In that case the state in memory is dropped too, and the comparison
starts again.
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
from unfog.live.backend import Row
from unfog.live.config import PreparedProblem, module_hash
from unfog.live.errors import ReplayMismatchError, StoreError
from unfog.live.log import EventLog
from unfog.live.requests import REQUEST, read
from unfog.live.state import State
from unfog.version import __version__

if TYPE_CHECKING:
    from unfog.live.processor import Processor

PACKAGE = Path(__file__).parents[1]
SOURCES = (
    "agents",
    "channel",
    "features",
    "live",
    "maths",
    "_codec.py",
    "_frames.py",
    "_io.py",
    "_table.py",
    "validation.py",
)
ROUNDING = 1e-9
TRIES = 3


def files() -> list[Path]:
    """The source files of all code that a fold runs."""
    paths = [PACKAGE / source for source in SOURCES]
    return [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


@cache
def _hash_code() -> str:
    """A hash of the source files that a fold runs."""
    code_hash = sha256()
    for path in files():
        code_hash.update(path.read_bytes())
    return code_hash.hexdigest()


@cache
def _rounding() -> str:
    """A hash of some results to the last bit, which another processor or BLAS rounds differently."""
    x = np.arange(900.0).reshape(30, 30) % 7.3
    square = x @ x.T + np.eye(30)
    parts = [square, x @ x[0], np.linalg.cholesky(square), np.linalg.inv(square), np.exp(-x), np.log1p(x)]
    parts += [x[:n, :n] @ x[:n, n:] for n in (3, 5, 9, 12)]
    return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def snapshot_key(config: PreparedProblem) -> str:
    """A hash of all that must be equal for a snapshot to be usable."""
    versions = (
        __version__,
        np.__version__,
        platform.python_version(),
        platform.machine(),
        _rounding(),
        _hash_code(),
    )
    return sha256(repr((versions, config.terms.uid, config.terms.module_hashes)).encode()).hexdigest()


def content(state: State) -> dict[str, Any]:
    """The content of a state, copied into nested values that do not change with it."""
    return {
        "number": state.number,
        "exploration": state.exploration.bit_generator.state,
        "arms": state.arms.content(),
        "runners": state.runners.content(),
        "windows": state.windows.content(),
        "watch": state.watch.content(),
        "erased": sorted(state.erased),
    }


def digest(state: State) -> str:
    """A hash of the content of a state."""
    return _codec.digest(content(state))


def written(values: Mapping[str, Any]) -> bytes:
    """The content of a state as bytes."""
    return _codec.encode(values)


class Replayed(NamedTuple):
    """The result of a replay."""

    events: int
    decisions: int  # among them
    verified: int  # of which so many were recomputed, and are as in the log but for rounding
    same: bool = True  # whether the state in memory equals that of the log, to the last bit


def apply_rows(
    config: PreparedProblem, rows: Iterable[Row], state: State | None = None
) -> tuple[State, Replayed]:
    """Apply events to a given state, or to a new one."""
    state = State(config) if state is None else state
    events = decisions = 0
    for row in rows:
        if row.kind != "problem":
            state.apply(row.kind, row.decision, json.loads(row.body), row.time)
            decisions += row.kind == "decide"
        events += 1
    return state, Replayed(events, decisions, 0)


def restore_state(log: EventLog, name: str, config: PreparedProblem) -> tuple[State, int]:
    """The state of a problem, from a snapshot if one fits, and how many more events had to be read."""
    latest, state, after = log.snapshot(name), None, 0
    if latest is not None and latest[1] == snapshot_key(config):
        state, after = _read_state(config, latest[2]), latest[0]
    if state is None and log.backend.first_decision:
        lacks = f"events of its first {log.backend.first_decision} decisions were dropped"
        why = "by another unfog, NumPy or Python, or with a shadow of your own code"
        raise StoreError(f"{log.backend.name} cannot be used: {lacks}, and its snapshot was written {why}")
    if state is None:
        after = 0
    state, replay = apply_rows(config, log.read(name, after), state)
    return state, replay.events


def has_own_shadows(runners: Iterable[str]) -> bool:
    """Whether one of these agents is a shadow from the caller's own code."""
    return any(module_hash("shadow", name) is not None for name in runners if name)


def _read_state(config: PreparedProblem, blob: bytes) -> State | None:
    """The state in a snapshot; None if it cannot be read."""
    modules = [path.partition(":")[0] for path in (config.terms.agent, config.terms.features) if ":" in path]
    try:
        values = _codec.decode(blob, allowed=modules)
    except _codec.DecodeError:  # a shadow from the caller's own code may have its own classes
        return None
    if has_own_shadows(values["runners"]):
        return None  # only the log has the hash of the module that it joined with
    state = State(config)
    state.arms.fill(values["arms"])
    state.runners.fill(values["runners"], state.arms.features)
    state.windows.fill(values["windows"])
    state.watch.fill(values["watch"])
    state.number, state.erased = values["number"], set(values["erased"])
    state.exploration.bit_generator.state = values["exploration"]
    return state


def verify_rows(config: PreparedProblem, rows: Iterable[Row], since: int = 0) -> tuple[State, Replayed]:
    """Apply the events; recompute every decision after event `since` and compare it."""
    state, events, decisions, checks = State(config), 0, 0, 0
    for row in rows:
        body = json.loads(row.body)
        decisions += row.kind == "decide"
        if row.kind == "decide" and row.seq > since:
            ask = read(config, {n: body[n] for n in REQUEST if n in body})
            _compare(config, row, body, state.decide(ask, row.time))
            checks += 1
        elif row.kind != "problem":
            state.apply(row.kind, row.decision, body, row.time)
        events += 1
    return state, Replayed(events, decisions, checks)


def _compare(config: PreparedProblem, row: Row, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise ReplayMismatchError if a decision would come out differently today, by more than rounding."""
    before, after = _standardise(config, was), _standardise(config, now)
    for name in now:
        if not _is_close(before.get(name), after[name]):
            what = f"decision {row.decision} (event {row.seq}) has {name} = {was.get(name)!r} in the log"
            raise ReplayMismatchError(f"{what}, and would have {now[name]!r} if it were made again")


def _standardise(config: PreparedProblem, body: dict[str, Any]) -> dict[str, Any]:
    """A decision with all its numbers in standard units, so that one tolerance fits them all."""
    scales, scaled = dict(zip(config.terms.context, config.units.scale.tolist(), strict=True)), body.copy()
    # Variances are compared, not deviations: a variance that is zero but for rounding has a large root.
    for part, power in (("denoised", 1), ("sd", 2)):
        if isinstance(body.get(part), dict):
            scaled[part] = {name: (x / scales.get(name, 1.0)) ** power for name, x in body[part].items()}
    return scaled


def _is_close(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers may differ as they do between two processors."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= ROUNDING * max(1.0, abs(one), abs(other))
    if isinstance(one, dict) and isinstance(other, dict):  # a share of zero is left out
        return all(_is_close(one.get(name, 0.0), other.get(name, 0.0)) for name in one | other)
    return bool(one == other)


class StateCopy(NamedTuple):
    """A copy of a state, taken at one moment."""

    state: State  # goes on changing
    content: dict[str, Any]  # a copy of all that it contained, which does not change
    upto: int  # the last row that is in it
    epoch: int  # of the log


def replay(processor: "Processor", name: str, verify: bool) -> Replayed:
    """Replay one problem; if its state in memory differs from the log, replace it."""
    for _ in range(TRIES):
        held = processor.cache.held(name)
        try:
            state, replay = _replayed(processor, name, held, verify)
        except StoreError:
            if processor.cache.holds(name, held) or processor.log.closed:
                raise
            continue  # the log changed while it was read
        if _codec.digest(held.content) == digest(state):
            return replay
        if processor.cache.replace(name, held, state, replay.events):
            return replay._replace(same=False)
    raise StoreError(f"the log of {name!r} was changed {TRIES} times while it was read; ask again")


def _replayed(processor: "Processor", name: str, held: StateCopy, verify: bool) -> tuple[State, Replayed]:
    config = processor.made(name)
    if not verify:
        return apply_rows(config, _read_rows(processor, name, held))
    erasures = [row.seq for row in _read_rows(processor, name, held) if row.kind == "erase"]
    return verify_rows(config, _read_rows(processor, name, held), max(erasures, default=0))


def _read_rows(processor: "Processor", name: str, held: StateCopy) -> Iterator[Row]:
    """The rows up to the copied state; an error once the log is closed, so that closing need not wait."""
    for row in processor.log.read(name, upto=held.upto):
        if processor.log.closed:
            raise StoreError(f"{processor.log.backend.name} was closed while the log of {name!r} was read")
        yield row
