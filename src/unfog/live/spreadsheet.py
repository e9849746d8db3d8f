"""Decisions as a table, a row each: out, to be looked at elsewhere; and in, from whoever made them.

Decisions that were made elsewhere come in as forced ones, with their rewards and true contexts.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from unfog.inputs import InputError
from unfog.live.asking import context_of, in_place

if TYPE_CHECKING:
    from unfog.live.problem import Problem

FIRST = ("decision", "number", "time", "unit", "arm", "probability", "reward", "outcome")
PAID = ("learnt", "kept", "waits")  # other rewards are no part of what is learnt


def as_table(events: Iterable[Mapping[str, Any]], coordinates: Sequence[str]) -> Iterator[list[Any]]:
    """A header, then a row for each decision: what was read, chosen, believed, earned, and was true."""
    more = [f"{part}.{name}" for part in ("context", "denoised", "sd", "true") for name in coordinates]
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        _into(rows, event)
    yield [*FIRST, *more]
    for row in rows.values():
        yield [row.get(name) for name in (*FIRST, *more)]


def _into(rows: dict[str, dict[str, Any]], event: Mapping[str, Any]) -> None:
    """An event into the row of its decision."""
    kind, row = event["kind"], rows.get(event["decision"] or "", {})
    if kind == "decide":
        parts = {f"{p}.{n}": x for p in ("context", "denoised", "sd") for n, x in event.get(p, {}).items()}
        rows[event["decision"]] = {name: event.get(name) for name in FIRST} | parts | {"outcome": "open"}
    elif kind == "reward":
        if event["outcome"] in PAID:
            row |= {"outcome": event["outcome"], "reward": event["value"]}
    elif kind == "reveal":
        row |= {f"true.{name}": x for name, x in event.get("context", {}).items()}
    elif kind == "void":
        row["outcome"] = "void"
    elif kind == "expire" and event["what"] == "reward":
        value = event["value"]
        row |= {"outcome": "expired" if value is None else "learnt", "reward": value}
    elif kind == "expire":
        row["outcome"] = "dropped"


def from_table(problem: "Problem", table: IO[str]) -> int:
    """Decisions that were made elsewhere, a row each: how many. Where a row is refused, so are all.

    Columns: `context.<name>` or `<name>` for every coordinate, empty where it was lost; `arm`; and as far as
    they are known `reward`, `probability`, `unit`, `key`, `at`, `true.<name>`.
    """
    reader = csv.DictReader(table)
    columns = reader.fieldnames or []
    places = {name: _column(columns, name) for name in problem.terms.context}
    if "arm" not in columns:
        raise InputError("arm", "no such column", ", ".join(columns) or "columns with names")
    rows = [_row(problem, places, row, number) for number, row in enumerate(reader, 2)]
    with problem.store.together():
        for number, (asked, reward, true) in enumerate(rows, 2):
            with in_place(f"row {number}"):
                problem.refuse(**asked)
                context_of("true", true, problem.terms.context, whole=False)
                if reward is not None:
                    problem.terms.check_reward("reward", reward)
        for asked, reward, true in rows:
            made = problem.decide(**asked)
            if reward is not None:
                problem.reward(made.id, reward)
            if true:
                problem.reveal(made.id, true)
    return len(rows)


def _column(columns: Sequence[str], name: str) -> str:
    for column in (f"context.{name}", name):
        if column in columns:
            return column
    raise InputError(f"context.{name}", "no such column", ", ".join(columns) or "columns with names")


def _row(
    problem: "Problem", places: Mapping[str, str], row: Mapping[str, str], number: int
) -> tuple[dict[str, Any], float | None, dict[str, float]]:
    def read(column: str) -> float | None:
        text = (row.get(column) or "").strip()
        try:
            return float(text) if text else None
        except ValueError:
            raise InputError(f"row {number}, {column}", text, "a number, or nothing") from None

    asked: dict[str, Any] = {"context": {name: read(column) for name, column in places.items()}}
    asked |= {name: row[name] for name in ("unit", "key") if row.get(name)}
    asked |= {name: read(name) for name in ("probability", "at") if row.get(name)}
    true = {name: read(f"true.{name}") for name in problem.terms.context}
    known = {name: value for name, value in true.items() if value is not None}
    return {**asked, "forced": row["arm"]}, read("reward"), known
