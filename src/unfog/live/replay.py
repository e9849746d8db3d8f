"""The log, read from its beginning."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from unfog.live.asking import REQUEST, read
from unfog.live.errors import Differs
from unfog.live.log import Row
from unfog.live.made import Made
from unfog.live.state import State


class Replayed(NamedTuple):
    """What a replay found."""

    events: int
    decisions: int  # among them
    verified: int  # of which so many were made again, and came out as logged
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
            _compare(
                row, body, state.decide(read(made, {n: body[n] for n in REQUEST if n in body}), row.time)
            )
            again += 1
        elif row.kind != "problem":
            state.apply(row.kind, row.decision, body, row.time)
        events += 1
    return state, Replayed(events, decisions, again)


def _compare(row: Row, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a decision that would come out otherwise today."""
    for name in now:
        if was.get(name) != now[name]:
            what = f"decision {row.decision} (event {row.seq}) has {name} = {was.get(name)!r} in the log"
            raise Differs(f"{what}, and would have {now[name]!r} if it were made again")
