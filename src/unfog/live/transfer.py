"""Logs out and in as NDJSON: an event a line, which is the whole log.

What was exported comes in as it is: the same ids, keys and times, so that the same is believed. It may be
given again, or after an interruption: what is there already is passed over, and where it differs nothing is
changed. Every event is applied before one is written.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from unfog import validation
from unfog.live import incoming
from unfog.live.errors import Conflict
from unfog.live.log import Row
from unfog.live.made import Made
from unfog.live.state import State
from unfog.live.terms import Terms
from unfog.validation import InputError

if TYPE_CHECKING:
    from unfog.live.store import Store

CHUNK = 10_000
AHEAD = 86_400.0  # seconds by which clocks may differ: later events would make the problem's time stand still
HEAD = ("seq", "problem", "kind", "decision", "key", "time")
KINDS = ("problem", "decide", "reward", "reveal", "void", "expire", "arms", "freeze", "shadow", "erase")


Line: TypeAlias = tuple[int, dict[str, Any]]
"""An event, and the number of the line that it stands in."""


def as_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Events as NDJSON."""
    for event in events:
        yield json.dumps(event, allow_nan=False) + "\n"


def read_lines(lines: Iterable[str]) -> Iterator[Line]:
    """NDJSON as events, with the number of a line that is none."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}", line[:60], f"one JSON object ({error})") from None
        if not isinstance(event, dict) or event.get("kind") not in KINDS:
            raise InputError(f"line {number}", line[:60], f"an event whose kind is one of {', '.join(KINDS)}")
        yield number, event


def refuse_constant(text: str) -> float:
    """Complain of NaN and the infinities, which Python would read."""
    raise ValueError(f"{text} is no number of JSON")


def taken_in(
    store: "Store", lines: Iterable[Line], name: str | None = None, modules: Sequence[str] = ()
) -> int:
    """Events of one problem that was exported; how many were new. Code is imported of these modules alone."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None or first[1]["kind"] != "problem":
        raise InputError("line 1", "no problem", "the export of a problem, whose first event says its terms")
    name = validation.check_name("problem", first[1].get("problem") if name is None else name)
    with store.reserved(name):
        return _taken(store, name, first, chain([first], rest), modules)


def _taken(store: "Store", name: str, first: Line, lines: Iterator[Line], modules: Sequence[str]) -> int:
    """Nobody else changes the problem meanwhile."""
    known = name in store.names()
    new, keys, last = _after_known(lines, store.log.read(name) if known else iter(()))
    pending = list(new)
    for number, event in pending:
        with _refusing(number):
            incoming.refuse_modules(event, modules)
    with _refusing(first[0]):
        incoming.problem(first[1].get("decision"), first[1].get("key"), body_of(first[1]))
        state = store.fresh(name) if known else State(Made(Terms.read(body_of(first[1]))))
    _applied(state, pending, keys, Times(last, store.now()))
    for start in range(0, len(pending), CHUNK):
        store.append(name, [event for _, event in pending[start : start + CHUNK]])
    return len(pending)


def _after_known(
    lines: Iterator[Line], there: Iterator[Row]
) -> tuple[Iterator[Line], set[str | None], float]:
    """The events after those that are there, which must be the same; keys and last time of those."""
    keys, last = set[str | None](), 0.0
    for row in there:
        number, event = next(lines, (0, None))
        if event is None:
            return iter(()), keys, last
        head = event["kind"], event.get("decision"), event.get("key"), event.get("time")
        if head != (row.kind, row.decision, row.key, row.time) or body_of(event) != json.loads(row.body):
            raise Conflict(f"line {number}", event["kind"], f"what is in the store: event {row.seq}")
        keys.add(row.key)
        last = row.time
    return lines, keys, last


def body_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without what stands in columns of its own."""
    return {name: value for name, value in event.items() if name not in HEAD}


@contextmanager
def _refusing(line: int) -> Iterator[None]:
    """Whatever is wrong with an event is said of its line."""
    try:
        yield
    except InputError as error:
        raise InputError(f"line {line}, {error.field}", error.value, error.allowed, error.near) from error
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InputError(f"line {line}", said, "events as they were exported") from error


class Times(NamedTuple):
    """Between which an event may be."""

    last: float  # of the event before
    now: float  # of the store

    def checked(self, time: object) -> float:
        """A time that may come next."""
        if not isinstance(time, int | float) or isinstance(time, bool) or not self.last <= time:
            raise InputError("time", time, f"a number, not before that of the event before: {self.last}")
        if time > self.now + AHEAD:
            raise InputError("time", time, f"at most a day after the store's own time, which is {self.now}")
        return float(time)


def _applied(state: State, lines: Sequence[Line], keys: set[str | None], times: Times) -> None:
    """Apply events to a state of their own before one of them is written."""
    for place, (number, event) in enumerate(lines):
        with _refusing(number):
            times = times._replace(last=times.checked(event.get("time")))
            if event["kind"] != "problem":
                _apply(state, event, keys, times.last)
            elif place:
                raise InputError("kind", "problem", "the terms once, in the first line")


def _apply(state: State, event: dict[str, Any], keys: set[str | None], time: float) -> None:
    kind, decision, key, body = event["kind"], event.get("decision"), event.get("key"), body_of(event)
    incoming.check(state, kind, decision, key, body, time)
    if key is not None and key in keys:
        raise InputError("key", repr(key), "a key that no event before has")
    keys.add(key)
    state.apply(kind, decision, body, time)
