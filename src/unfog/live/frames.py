"""Data frames in and out of a live problem: a decision a row, rewards by decision, events.

An answer is a frame of the same kind as the question (pandas, polars or pyarrow), with as many rows, and with
the columns of exported tables: decision, number, unit, arm, probability, `probability.<arm>`,
`denoised.<name>`, `sd.<name>`; for a category `denoised.<name>=<level>`, the chance of each level. With a
column `reward` beside them it can be given to `reward_many`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unfog import _frames, validation
from unfog._frames import KINDS
from unfog._table import check_once, check_there
from unfog.live.requests import Decision, Receipt
from unfog.validation import InputError, is_missing

HEAD = ("seq", "problem", "kind", "decision", "key", "time")


class Events(list[dict[str, Any]]):
    """Events of a log, mappings with seq, kind, decision, time and more; as a frame with `to_frame`."""

    def to_frame(self, kind: str = "pandas") -> Any:
        """A frame of pandas, polars or pyarrow with a row for each event.

        Fields by name have a column each, such as `context.steps`. What a problem was created with is JSON,
        in the column `config`; so are lists.
        """
        validation.one_of("kind", kind, KINDS)
        rows = [_flatten(event) for event in self]
        names = dict.fromkeys([*HEAD, *(name for row in rows for name in row)])
        return _frames.build({name: [row.get(name) for row in rows] for name in names}, kind)


def _flatten(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event as one row."""
    row = {name: event.get(name) for name in HEAD}
    body = {name: value for name, value in event.items() if name not in HEAD}
    if event["kind"] == "problem":
        return {**row, "config": json.dumps(body)}
    for name, value in body.items():
        parts = value.items() if isinstance(value, Mapping) else ()
        row |= {f"{name}.{part}": _to_cell(one) for part, one in parts}
        if not isinstance(value, Mapping):
            row[name] = _to_cell(value)
    return row


def _to_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | Mapping) else value


def decide_rows(
    frame: Any,
    coordinates: Sequence[str],
    columns: Mapping[str, str | None],
    decide: Callable[[list[dict[str, Any]]], list[Decision]],
) -> Any:
    """Decide for each row of a frame, all or none; a frame of the same kind with the decisions.

    `columns` say which column has the unit, the key or the time of a reading. Those of the context are named
    like its coordinates, or `context.<name>`. Other columns are passed over.
    """
    names = _frames.names_of(frame)
    check_once(names)
    context = {name: _find_column(names, name) for name in coordinates}
    named = {argument: column for argument, column in columns.items() if column is not None}
    others = {argument: check_there(names, argument, column) for argument, column in named.items()}
    cells = _frames.cells(frame, [*dict.fromkeys([*context.values(), *others.values()])])
    requests: list[dict[str, Any]] = [
        {
            "context": {name: cells[column][i] for name, column in context.items()},
            **{argument: cells[column][i] for argument, column in others.items()},
        }
        for i in range(len(frame))
    ]
    for i, request in enumerate(requests):
        if "unit" in request and is_missing(request["unit"]):
            raise InputError(f"requests[{i}].unit", "missing", f"whose context it is, in {others['unit']!r}")
        request |= {name: None for name in ("key", "measured_at") if is_missing(request.get(name))}
    return _frames.build(_answer(decide(requests), requests, coordinates, "unit" in others), frame)


def _find_column(names: Sequence[str], coordinate: str) -> str:
    if f"context.{coordinate}" in names:
        return f"context.{coordinate}"
    return check_there(names, f"context.{coordinate}", coordinate)


def _answer(
    decisions: Sequence[Decision],
    requests: Sequence[Mapping[str, Any]],
    coordinates: Sequence[str],
    has_units: bool,
) -> dict[str, list[Any]]:
    """The columns of the answer."""
    columns: dict[str, list[Any]] = {
        "decision": [one.id for one in decisions],
        "number": [one.number for one in decisions],
    }
    if has_units:
        columns["unit"] = [validation.check_identifier("unit", request["unit"]) for request in requests]
    columns["arm"] = [one.arm for one in decisions]
    columns["probability"] = [one.probability for one in decisions]
    for arm in dict.fromkeys(arm for one in decisions for arm in one.probabilities):
        columns[f"probability.{arm}"] = [one.probabilities.get(arm) for one in decisions]
    for part in ("denoised", "sd"):
        rows = [flatten(getattr(one, part)) for one in decisions]
        columns |= {
            f"{part}.{name}": [row[name] for row in rows] for name in (rows[0] if rows else coordinates)
        }
    return columns


def flatten(belief: Mapping[str, Any]) -> dict[str, float]:
    """What is believed of a context, with a name for each level of a category: `weekday=mon`."""
    flat: dict[str, float] = {}
    for name, value in belief.items():
        levels = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"{name}={level}": x for level, x in levels} if levels else {name: value}
    return flat


def reward_rows(
    frame: Any, reward: Callable[[dict[str, Any], dict[str, str] | None], dict[str, Receipt]]
) -> Any:
    """Report the rewards in a frame, all or none; a frame of the same kind with what became of them.

    It has the columns `decision` and `reward`, and may have a `key`. Rows without a reward are passed over.
    """
    names = _frames.names_of(frame)
    wanted = [check_there(names, one, one) for one in ("decision", "reward")]
    cells = _frames.cells(frame, [*wanted, *(["key"] if "key" in names else [])])
    rewards: dict[str, Any] = {}
    for i, (decision, value) in enumerate(zip(cells["decision"], cells["reward"], strict=True)):
        if is_missing(value):
            continue
        if validation.check_name(f"row {i + 1}, decision", decision) in rewards:
            raise InputError(f"row {i + 1}, decision", repr(decision), "each decision once")
        rewards[decision] = value
    keys = {
        decision: key
        for decision, key in zip(cells["decision"], cells.get("key", []), strict=False)
        if decision in rewards and not is_missing(key)
    }
    receipts = reward(rewards, keys or None)
    answers = [receipts.get(decision) for decision in cells["decision"]]
    columns: dict[str, list[Any]] = {"decision": cells["decision"]}
    for name in Receipt._fields:
        columns[name] = [None if one is None else getattr(one, name) for one in answers]
    return _frames.build(columns, frame)


def check_no_columns(columns: Mapping[str, object]) -> None:
    """Raise InputError if names of columns are given where there is no frame."""
    for name, column in columns.items():
        if column is not None:
            raise InputError(name, validation.display(column), "none but for a frame: it names a column")
