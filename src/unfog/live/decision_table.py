"""Decisions as a table, a row each: out, to be looked at elsewhere; and in, from whoever made them.

Decisions that were made elsewhere come in as forced ones, with their rewards and true contexts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from unfog import validation
from unfog._table import check_once, check_there, csv_rows, number
from unfog.live import requests, snapshot
from unfog.live.commands import Command, Decide, Reveal, Reward
from unfog.live.errors import Conflict
from unfog.live.requests import context_of, in_place
from unfog.live.state import State
from unfog.validation import InputError

if TYPE_CHECKING:
    from unfog.live.problem import Problem

FIRST = ("decision", "number", "time", "unit", "arm", "probability", "reward", "outcome")
PARTS = ("context", "denoised", "sd", "true")
PAID = ("learnt", "kept", "waits")  # other rewards are no part of what is learnt
ERASED = "erased"  # the outcome of a decision whose context is gone


def as_table(events: Iterable[Mapping[str, Any]], coordinates: Sequence[str]) -> Iterator[list[Any]]:
    """A header, then a row for each decision: what was read, chosen, believed, earned, and was true.

    The outcome of an erased decision is `erased`, whatever it has earned: `from_table` leaves it out.
    """
    more = [f"{part}.{name}" for part in PARTS for name in coordinates]
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        _into(rows, event)
    yield [*FIRST, *more]
    for row in rows.values():
        if row.get("erased"):
            row["outcome"] = ERASED
        yield [row.get(name) for name in (*FIRST, *more)]


def _into(rows: dict[str, dict[str, Any]], event: Mapping[str, Any]) -> None:
    """An event into the row of its decision."""
    kind, row = event["kind"], rows.get(event["decision"] or "", {})
    if kind == "decide":
        parts = {f"{p}.{n}": x for p in ("context", "denoised", "sd") for n, x in event.get(p, {}).items()}
        first = {name: event.get(name) for name in (*FIRST, "erased")}
        rows[event["decision"]] = first | parts | {"outcome": "open"}
    elif kind == "reward":
        if event["outcome"] in PAID:
            row |= {"outcome": event["outcome"], "reward": event["value"]}
    elif kind == "reveal":
        row |= {f"true.{name}": x for name, x in event.get("context", {}).items()}
    elif kind == "void":
        row |= {"outcome": "void", "reward": None}
    elif kind == "expire" and event["what"] == "reward":
        value = event["value"]
        row |= {"outcome": "expired" if value is None else "learnt", "reward": value}
    elif kind == "expire":
        row |= {"outcome": "dropped", "reward": None}


class Row(NamedTuple):
    """A decision that was made elsewhere."""

    number: int  # in the table, whose header is row 1
    asked: dict[str, Any]  # what `decide` takes
    reward: float | None
    true: dict[str, float]


def from_table(problem: "Problem", table: IO[str]) -> int:
    """Decisions that were made elsewhere, a row each: how many. Where a row is refused, so are all.

    Columns: `context.<name>` or `<name>` for every coordinate, empty where it was lost; `arm`; and as far as
    they are known `reward`, `probability`, `unit`, `key`, `at`, `true.<name>`. Where there is no key, the
    `decision` is the key, so that a table that comes in again changes nothing. Other columns that `as_table`
    writes are passed over. So are rows whose `outcome` is `erased`: there is no context to learn from.
    """
    rows = _read(problem, table)
    with problem.processor.together():
        for row in _tried(problem, rows):
            made = problem.decide(**row.asked)
            if row.reward is not None:
                problem.reward(made.id, row.reward)
            if row.true:
                problem.reveal(made.id, row.true)
    return len(rows)


def _read(problem: "Problem", table: IO[str]) -> list[Row]:
    """The rows, as far as each can be checked by itself."""
    columns, rows = csv_rows(table)
    places = {name: _column(columns, name) for name in problem.terms.context}
    _refuse_columns(problem, columns, places)
    found = [(at, dict(zip(columns, row, strict=True))) for at, row in rows]
    return [_row(problem, places, row, at) for at, row in found if row.get("outcome") != ERASED]


def _column(columns: Sequence[str], name: str) -> str:
    for column in (f"context.{name}", name):
        if column in columns:
            return column
    raise InputError(f"context.{name}", "no such column", ", ".join(columns) or "columns with names")


def _refuse_columns(problem: "Problem", columns: Sequence[str], places: Mapping[str, str]) -> None:
    """Complain of a column that is missing, of one that there is not, and of one that is there twice."""
    check_there(columns, "arm", "arm")
    others = [f"{part}.{name}" for part in PARTS[1:] for name in problem.terms.context]
    known = [*places.values(), *FIRST, "key", "at", *others]
    for place, column in enumerate(columns):
        if column not in known:
            raise InputError(column or f"column {place + 1}", "no such column", ", ".join(known))
    check_once(columns)


def _row(problem: "Problem", places: Mapping[str, str], row: Mapping[str, str], at: int) -> Row:
    def read(column: str) -> float | None:
        text = row.get(column, "").strip()
        return number(f"row {at}, {column}", text, frozenset()) if text else None

    if not row["arm"].strip():
        raise InputError(f"row {at}, arm", "nothing", "the arm that was chosen")
    asked: dict[str, Any] = {"context": {name: read(column) for name, column in places.items()}}
    asked |= {name: row[name] for name in ("unit", "key") if row.get(name)}
    asked |= {name: read(name) for name in ("probability", "at") if row.get(name)}
    if "key" not in asked and row.get("decision"):
        asked["key"] = row["decision"]
        if row["decision"].partition("-")[2] == problem.terms.uid[:8]:
            allowed = "a decision of elsewhere: this one is of the same problem"
            raise InputError(f"row {at}, decision", row["decision"], allowed)
    true = {name: read(f"true.{name}") for name in problem.terms.context}
    known = {name: value for name, value in true.items() if value is not None}
    return Row(at, {**asked, "forced": row["arm"]}, read("reward"), known)


def _tried(problem: "Problem", rows: Iterable[Row]) -> list[Row]:
    """Play all rows on a state of their own before one of them is written: what is left to do of each."""
    processor, left, keys = problem.processor, list[Row](), set[str]()
    log = processor.log
    log.commit(log.last, log.epoch)
    state, _ = snapshot.restored(log, problem.name, processor.made(problem.name))
    for row in rows:
        key = row.asked.get("key")
        with in_place(f"row {row.number}"):
            if key in keys:
                raise InputError("key", repr(key), "a key, or a decision, that no row before has")
            left.append(_played(problem, state, row, processor.now(problem.name)))
        keys |= set() if key is None else {key}
    return left


def _played(problem: "Problem", state: State, row: Row, now: float) -> Row:
    """Decide, reward and reveal as the problem will; without the reward, where it is there already."""
    decision, row = _decided(problem, state, row, now)
    if row.reward is not None:
        with _called("value", "reward"):
            paid = problem.terms.check_reward("value", row.reward)
            _carry_out(problem, state, Reward(decision, paid), now)
    if row.true:
        with _called("context", "true"):
            context_of("context", row.true, problem.terms.context, whole=False)
            _carry_out(problem, state, Reveal(decision, row.true), now)
    return row


def _carry_out(problem: "Problem", state: State, command: Command, now: float) -> str:
    """Do on a state of its own what the problem will do; the decision that it is about."""
    event = command.prepare(state, now, partial(problem.processor.log.of, problem.name))
    if event is not None:
        command.apply(state, event, now)
    return str(command.target if event is None else event.decision)


def _decided(problem: "Problem", state: State, row: Row, now: float) -> tuple[str, Row]:
    """The decision of a row: it is there already, or it is made."""
    key = row.asked.get("key")
    command = Decide(requests.ask(state.made, **{name: x for name, x in row.asked.items() if name != "key"}))
    key = None if key is None else validation.check_name("key", key)
    done = problem.processor.known(problem.name, command, key)
    if done is not None:
        decision = str(done.decision)
        return decision, row._replace(reward=_unpaid(problem, decision, row.reward))
    return _carry_out(problem, state, command, now), row


def _unpaid(problem: "Problem", decision: str, value: float | None) -> float | None:
    """A reward that did not come with the table before; kept ones would be added up."""
    events = problem.processor.log.of(problem.name, decision)
    paid = [json.loads(event.body)["value"] for event in events if event.kind == "reward"]
    if value is None or not paid:
        return value
    if value not in paid:
        raise Conflict("reward", value, f"what was told before: {paid[-1]:g}")
    return None


@contextmanager
def _called(was: str, now: str) -> Iterator[None]:
    """Complaints name the column."""
    try:
        yield
    except InputError as error:
        field = now + error.field.removeprefix(was) if error.field.startswith(was) else error.field
        raise error.renamed(field) from None
