"""The log, read from its beginning."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from unfog.live.asking import REQUEST, read
from unfog.live.errors import Differs
from unfog.live.log import Row
from unfog.live.made import Made
from unfog.live.state import State

ROUNDING = 1e-9


class Replayed(NamedTuple):
    """What a replay found."""

    events: int
    decisions: int  # among them
    verified: int  # of which so many were made again, and came out as logged but for rounding
    same: bool = True  # whether what is remembered equals what the log says, to the last bit


def folded(made: Made, rows: Iterable[Row], state: State | None = None) -> tuple[State, Replayed]:
    """What the events say."""
    state = State(made) if state is None else state
    events = decisions = 0
    for row in rows:
        if row.kind != "problem":
            state.apply(row.kind, row.decision, json.loads(row.body), row.time)
            decisions += row.kind == "decide"
        events += 1
    return state, Replayed(events, decisions, 0)


def verified(made: Made, rows: Iterable[Row], since: int = 0) -> tuple[State, Replayed]:
    """Likewise, with every decision after the event `since` made again."""
    state, events, decisions, again = State(made), 0, 0, 0
    for row in rows:
        body = json.loads(row.body)
        decisions += row.kind == "decide"
        if row.kind == "decide" and row.seq > since:
            state.close_past(row.time)
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
