"""Logs out and in as NDJSON: an event a line, which is the whole log.

What was exported comes in as it is: the same ids, keys and times, so that the same is believed. It may be
given again, or after an interruption: what is there already is passed over, and where it differs nothing is
changed. Every event is applied before one is written.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from unfog.inputs import InputError
from unfog.live import names
from unfog.live.errors import Conflict
from unfog.live.log import Row
from unfog.live.made import Made
from unfog.live.state import State
from unfog.live.terms import Terms

if TYPE_CHECKING:
    from unfog.live.store import Store

CHUNK = 10_000
HEAD = ("seq", "problem", "kind", "decision", "key", "time")
KINDS = ("problem", "decide", "reward", "reveal", "void", "expire", "arms", "freeze", "shadow", "erase")


Events: TypeAlias = Iterator[dict[str, Any]]


def as_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Events as NDJSON."""
    for event in events:
        yield json.dumps(event, allow_nan=False) + "\n"


def read_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """NDJSON as events, with the number of a line that is none."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}", line[:60], f"one JSON object ({error})") from None
        if not isinstance(event, dict) or event.get("kind") not in KINDS:
            raise InputError(f"line {number}", line[:60], f"an event whose kind is one of {', '.join(KINDS)}")
        yield event


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def taken_in(store: "Store", events: Iterable[dict[str, Any]], name: str | None = None) -> int:
    """Events of one problem that was exported; how many were new."""
    rest = iter(events)
    first = next(rest, None)
    if first is None or first["kind"] != "problem":
        raise InputError("line 1", "no problem", "the export of a problem, whose first event says its terms")
    name = names.name("problem", first.get("problem") if name is None else name)
    there = store.log.read(name) if name in store.names() else iter(())
    new, last = _after_known(chain([first], rest), there)
    pending = list(new)
    _applied(store, name, first, pending, last)
    for start in range(0, len(pending), CHUNK):
        store.append(name, pending[start : start + CHUNK])
    return len(pending)


def _after_known(events: Events, there: Iterator[Row]) -> tuple[Events, float]:
    """The events after those that are there already, which must be the same; and when the last was."""
    last = 0.0
    for row in there:
        event = next(events, None)
        if event is None:
            return iter(()), last
        head = event["kind"], event.get("decision"), event.get("time")
        if head != (row.kind, row.decision, row.time) or body_of(event) != json.loads(row.body):
            raise Conflict("event", event.get("seq"), f"what is in the store: event {row.seq}, {row.kind}")
        last = row.time
    return events, last


def body_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without what stands in columns of its own."""
    return {name: value for name, value in event.items() if name not in HEAD}


def _applied(
    store: "Store", name: str, first: dict[str, Any], events: Sequence[dict[str, Any]], last: float
) -> None:
    """Apply events to what is remembered, or to nothing, before one of them is written."""
    try:
        made = Made(Terms.read(body_of(first)))
        state = State(made) if name not in store.names() else store.fresh(name)
        for number, event in enumerate(events):
            time = event.get("time")
            if not isinstance(time, int | float) or isinstance(time, bool) or not last <= time < 1e12:
                raise InputError("time", time, f"a number, not before the event before: {last}")
            last = float(time)
            if event["kind"] != "problem":
                state.apply(event["kind"], event.get("decision"), event, last)
            elif number:
                raise InputError("kind", "problem", "the terms once, in the first line")
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(
            "events", f"{type(error).__name__}: {error}", "events as they were exported"
        ) from error
