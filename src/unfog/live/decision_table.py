"""Export and import of decisions as a table, one row each.

Decisions that were made elsewhere are imported with their logged arms, rewards and true contexts.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog._frames import is_frame, to_csv
from unfog._table import check_once, check_there, csv_rows, number, seconds
from unfog.channel.context import Category, ContextSpec, read_context
from unfog.live import requests, snapshot
from unfog.live.commands import Command, Decide, Reveal, Reward
from unfog.live.errors import ConflictError
from unfog.live.frames import flatten
from unfog.live.requests import in_place, read_reading
from unfog.live.state import State
from unfog.maths.arrays import Array
from unfog.validation import InputError, display

if TYPE_CHECKING:
    from unfog.live.problem import Problem

FIRST = ("decision", "number", "time", "unit", "arm", "probability", "reward", "outcome")
PARTS = ("context", "denoised", "sd", "true")
BELIEFS = ("denoised", "sd")
LEARNT_OUTCOMES = ("learnt", "kept", "waits")  # the outcomes of rewards that count
LABELS = ("decision", "unit", "arm", "key", "outcome")  # columns that hold names
ERASED = "erased"  # the outcome of a decision whose context was erased


def as_table(events: Iterable[Mapping[str, Any]], context: Any) -> Iterator[list[Any]]:
    """A header, then a row for each decision: reading, arm, belief, reward and true context.

    The context is that of the problem's first event. The outcome of an erased decision is `erased`, whatever
    its reward: `from_table` skips it. Where readings had a noise of their own there are columns
    `noise_sd.<name>`, too; of a covariance matrix they have the diagonal.
    """
    spec = read_context("context", context)
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        _add_event(rows, event)
    own = [name for row in rows.values() for name in _add_noise(spec, row)]
    header = [*FIRST, *_columns_of(spec), *(name for name in _noise_columns(spec) if name in {*own})]
    yield header
    for row in rows.values():
        if row.get("erased"):
            row["outcome"] = ERASED
        _decode(spec, row)
        yield [row.get(name) for name in header]


def _columns_of(spec: ContextSpec) -> list[str]:
    """The columns of a context: one for each value, and of what is believed one for each level."""
    columns: list[str] = []
    for part in PARTS:
        for name, one in spec.coordinates.items():
            is_belief = isinstance(one, Category) and part in BELIEFS
            columns += [f"{part}.{own}" for own in (spec.columns[spec.slices[name]] if is_belief else [name])]
    return columns


def _noise_columns(spec: ContextSpec) -> list[str]:
    """The columns with the noise of single readings."""
    return [f"noise_sd.{name}" for name in spec.readings]


def _add_noise(spec: ContextSpec, row: dict[str, Any]) -> dict[str, float]:
    """The cells of a reading's own noise, which are added to its row: standard deviations."""
    sds, cov = row.pop("noise_sd", None), row.pop("noise_cov", None)
    if cov is not None:
        sds = dict(zip(spec.readings, np.sqrt(np.diag(cov)).tolist(), strict=True))
    elif sds is not None and not isinstance(sds, Mapping):
        sds = dict.fromkeys(spec.readings, sds)
    cells = {f"noise_sd.{name}": sd for name, sd in (sds or {}).items()}
    row |= cells
    return cells


def _decode(spec: ContextSpec, row: dict[str, Any]) -> None:
    """Turn the numbers of a context, in the order of its columns, into cells by coordinate."""
    for part in ("context", "true"):
        if part in row:
            row |= {f"{part}.{name}": x for name, x in spec.decode_row(_numbers(spec, row[part])).items()}
    if "denoised" in row:
        mean, sd = (_numbers(spec, row[part]) for part in BELIEFS)
        for part, belief in zip(BELIEFS, spec.decode(mean, np.diag(sd**2)), strict=True):
            row |= {f"{part}.{name}": x for name, x in flatten(belief).items()}


def _numbers(spec: ContextSpec, values: Mapping[str, float | None]) -> Array:
    """The numbers of all columns, NaN where there are none, (D,)."""
    return np.array([values.get(name) for name in spec.columns], dtype=np.float64)


def _add_event(rows: dict[str, dict[str, Any]], event: Mapping[str, Any]) -> None:
    """Add an event to the row of its decision."""
    kind, row = event["kind"], rows.get(event["decision"] or "", {})
    if kind == "decide":
        fields = ("context", *BELIEFS, "noise_sd", "noise_cov")
        parts = {part: event[part] for part in fields if part in event}
        first = {name: event.get(name) for name in (*FIRST, "erased")}
        rows[event["decision"]] = first | parts | {"outcome": "open"}
    elif kind == "reward":
        if event["outcome"] in LEARNT_OUTCOMES:
            row |= {"outcome": event["outcome"], "reward": event["value"]}
    elif kind == "reveal":
        row["true"] = {**row.get("true", {}), **event.get("context", {})}
    elif kind == "cancel":
        row |= {"outcome": "cancelled", "reward": None}
    elif kind == "expire" and event["expired"] == "reward":
        value = event["value"]
        row |= {"outcome": "expired" if value is None else "learnt", "reward": value}
    elif kind == "expire":
        row |= {"outcome": "dropped", "reward": None}


class Row(NamedTuple):
    """A decision that was made elsewhere."""

    number: int  # of the row; the header is row 1
    arguments: dict[str, Any]  # what `decide` takes
    reward: float | None
    true: dict[str, Any]


def from_table(problem: "Problem", table: Any) -> int:
    """Import decisions made elsewhere, one per row, and return how many. If a row is refused, all are.

    The table is CSV, a file or its text, or a data frame.

    Columns: `context.<name>` or `<name>` for every coordinate, empty where it was lost; `arm`; and as far as
    they are known `reward`, `probability`, `unit`, `key`, `measured_at`, `noise_sd.<name>`, `true.<name>`.
    Without a `key`, the `decision` is the key, so that importing a table again changes nothing. Other columns
    that `as_table` writes are ignored. So are rows whose `outcome` is `erased`: they have no context to learn
    from.
    """
    rows = _read_rows(problem, StringIO(to_csv_text(table)) if not hasattr(table, "read") else table)
    with problem.processor.batch():
        for row in _try_rows(problem, rows):
            decision = problem.decide(**row.arguments)
            if row.reward is not None:
                problem.reward(decision.id, row.reward)
            if row.true:
                problem.reveal(decision.id, row.true)
    return len(rows)


def to_csv_text(table: Any) -> str:
    """A table as CSV: a data frame, or a text that is CSV already."""
    if is_frame(table):
        return to_csv(table, LABELS)
    if not isinstance(table, str):
        raise InputError("table", display(table), "a data frame, or CSV")
    return table


def _read_rows(problem: "Problem", table: IO[str]) -> list[Row]:
    """Read the rows, and check each by itself."""
    columns, rows = csv_rows(table)
    contexts = {name: _find_column(columns, name) for name in problem.terms.coordinates}
    _check_columns(problem, columns, contexts)
    numbered = [(number, dict(zip(columns, row, strict=True))) for number, row in rows]
    return [
        _read_row(problem, contexts, row, number) for number, row in numbered if row.get("outcome") != ERASED
    ]


def _find_column(columns: Sequence[str], name: str) -> str:
    """The column with the noisy values of a coordinate."""
    for column in (f"context.{name}", name):
        if column in columns:
            return column
    raise InputError(f"context.{name}", "no such column", ", ".join(columns) or "columns with names")


def _check_columns(problem: "Problem", columns: Sequence[str], contexts: Mapping[str, str]) -> None:
    """Raise InputError if a column is missing, unknown, or there twice."""
    check_there(columns, "arm", "arm")
    spec = problem.terms.spec or read_context("context", problem.terms.context)
    others = [name for name in _columns_of(spec) if not name.startswith("context.")] + _noise_columns(spec)
    known = [*contexts.values(), *FIRST, "key", "measured_at", *others]
    for i, column in enumerate(columns):
        if column not in known:
            raise InputError(column or f"column {i + 1}", "no such column", ", ".join(known))
    check_once(columns)


def _read_row(
    problem: "Problem", contexts: Mapping[str, str], row: Mapping[str, str], row_number: int
) -> Row:
    def read(column: str) -> float | None:
        text = row.get(column, "").strip()
        return number(f"row {row_number}, {column}", text, frozenset()) if text else None

    def read_value(name: str, column: str) -> Any:
        one = None if problem.terms.spec is None else problem.terms.spec.coordinates[name]
        return _read_level(row.get(column, "").strip()) if isinstance(one, Category) else read(column)

    if not row["arm"].strip():
        raise InputError(f"row {row_number}, arm", "nothing", "the arm that was chosen")
    context = {name: read_value(name, column) for name, column in contexts.items()}
    arguments: dict[str, Any] = {"context": context}
    arguments |= {name: row[name] for name in ("unit", "key") if row.get(name)}
    if row.get("probability"):
        arguments["probability"] = read("probability")
    noises = ((name, read(f"noise_sd.{name}")) for name in problem.terms.readings)
    arguments["noise_sd"] = {name: sd for name, sd in noises if sd is not None} or None
    if row.get("measured_at"):
        arguments["measured_at"] = seconds(f"row {row_number}, measured_at", row["measured_at"], zone=None)
    if "key" not in arguments and row.get("decision"):
        arguments["key"] = row["decision"]
        if row["decision"].partition("-")[2] == problem.terms.uid[:8]:
            allowed = "a decision of elsewhere: this one is of the same problem"
            raise InputError(f"row {row_number}, decision", row["decision"], allowed)
    true = {name: read_value(name, f"true.{name}") for name in problem.terms.coordinates}
    known = {name: value for name, value in true.items() if value is not None}
    return Row(row_number, {**arguments, "logged_arm": row["arm"]}, read("reward"), known)


def _read_level(text: str) -> str | None:
    """The level of a category; a column of integers with gaps has 3.0 for 3."""
    return (text[:-2] if re.fullmatch(r"-?\d+\.0", text) else text) or None


def _try_rows(problem: "Problem", rows: Iterable[Row]) -> list[Row]:
    """Apply all rows to a separate state before one of them is written, and return what is left to do."""
    processor, accepted, keys = problem.processor, list[Row](), set[str]()
    log = processor.log
    log.commit(log.last, log.epoch)
    state, _ = snapshot.restore_state(log, problem.name, processor.made(problem.name))
    for row in rows:
        key = row.arguments.get("key")
        with in_place(f"row {row.number}"):
            if key in keys:
                raise InputError("key", repr(key), "a key, or a decision, that no row before has")
            accepted.append(_try_row(problem, state, row, processor.now(problem.name)))
        keys |= set() if key is None else {key}
    return accepted


def _try_row(problem: "Problem", state: State, row: Row, now: float) -> Row:
    """Decide, reward and reveal as the problem will; drop the reward if it is there already."""
    decision, row = _try_decision(problem, state, row, now)
    if row.reward is not None:
        with _name_column("value", "reward"):
            paid = problem.terms.check_reward("value", row.reward)
            _carry_out(problem, state, Reward(decision, paid), now)
    if row.true:
        with _name_column("context", "true"):
            true = read_reading("context", row.true, problem.terms, whole=False)
            known = {name: x for name, x in true.items() if x is not None}
            _carry_out(problem, state, Reveal(decision, known), now)
    return row


def _carry_out(problem: "Problem", state: State, command: Command, now: float) -> str:
    """Apply a command to a separate state, as the problem will; the id of its decision."""
    event = command.prepare(state, now, partial(problem.processor.log.of, problem.name))
    if event is not None:
        command.apply(state, event, now)
    return str(command.target if event is None else event.decision)


def _try_decision(problem: "Problem", state: State, row: Row, now: float) -> tuple[str, Row]:
    """The id of a row's decision, which may be there already, and the row with what is left to do."""
    key = row.arguments.get("key")
    command = Decide(
        requests.check_request(state.made, **{name: x for name, x in row.arguments.items() if name != "key"})
    )
    key = None if key is None else validation.check_name("key", key)
    earlier = problem.processor.known(problem.name, command, key)
    if earlier is not None:
        decision = str(earlier.decision)
        return decision, row._replace(reward=_new_reward(problem, decision, row.reward))
    return _carry_out(problem, state, command, now), row


def _new_reward(problem: "Problem", decision: str, value: float | None) -> float | None:
    """The reward, or None if the table was imported before: a kept reward must not be added twice."""
    events = problem.processor.log.of(problem.name, decision)
    paid = [json.loads(event.body)["value"] for event in events if event.kind == "reward"]
    if value is None or not paid:
        return value
    if value not in paid:
        raise ConflictError("reward", value, f"the reward reported before, {paid[-1]:g}")
    return None


@contextmanager
def _name_column(argument: str, column: str) -> Iterator[None]:
    """Make errors name the column instead of the argument."""
    try:
        yield
    except InputError as error:
        field = error.field
        if field.startswith(argument):
            field = column + field.removeprefix(argument)
        raise error.renamed(field) from None
