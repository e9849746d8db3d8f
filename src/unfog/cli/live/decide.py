"""`unfog live decide`: one decision or several; `reward`, `reveal` and `cancel`: what became of it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli.live.common import (
    CONTEXT,
    Decided,
    Key,
    Name,
    StoreFile,
    Sync,
    opened,
    parsed,
    read_file,
    read_named,
    read_names,
    say,
    say_receipt,
    text_of,
)

if TYPE_CHECKING:
    from unfog.live import Decision, Problem
    from unfog.serve.client import RemoteProblem

EXAMPLE = (
    "Examples: unfog live decide walks.unfog walks --context steps=1648,sleep=,weekday=mon --unit ann   |"
    "   unfog live decide walks.unfog walks --batch requests.ndjson"
)
REWARD = "Example: unfog live reward walks.unfog walks 17-2f9c01ab 1.0"
REVEAL = "Example: unfog live reveal walks.unfog walks 17-2f9c01ab steps=7065"
CANCEL = "Example: unfog live cancel walks.unfog walks 17-2f9c01ab"
TIME = "a number, or a date and time with its offset: 2026-11-15T09:00:00+01:00"


def command(
    store: StoreFile,
    name: Name,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="A=1,B=2|JSON|-",
            help="The reading, by name; nothing, or null in JSON, where it was lost. - for stdin.",
        ),
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Whose reading it is.")] = None,
    arms: Annotated[
        str | None,
        typer.Option(metavar="A,B|JSON", help="Arms that may be chosen this time; in JSON with vectors."),
    ] = None,
    key: Key = None,
    measured_at: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"When the reading was taken: {TIME}.")
    ] = None,
    logged_arm: Annotated[
        str | None, typer.Option(metavar="ARM", help="An arm that somebody else chose.")
    ] = None,
    probability: Annotated[float | None, typer.Option(help="Its probability.")] = None,
    noise_sd: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|JSON",
            help="How far this reading alone may be off, as a standard deviation; by name in JSON.",
        ),
    ] = None,
    noise_cov: Annotated[
        str | None, typer.Option(metavar="JSON", help="The noise covariance of this reading alone.")
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="NDJSON, a request a line with these options as fields; answers in the same order, and one"
            " commit for all.",
        ),
    ] = None,
    sync: Sync = "full",
) -> None:
    """Choose an arm for a noisy context: id, arm, probability, what is believed of the context."""
    from unfog.validation import InputError

    options = (context, unit, arms, key, measured_at, logged_arm, probability, noise_sd, noise_cov)
    if (batch is None) == (context is None) or (batch is not None and any(x is not None for x in options)):
        raise InputError(
            "context", "with --batch" if batch else "not given", "--context alone, or --batch alone"
        )
    requests = _read_batch(batch) if batch is not None else {0: _read_request(*options)}
    with opened(store, sync) as connection:
        problem = connection.problem(name)
        answers = _decide_batch(problem, requests) if batch is not None else [problem.decide(**requests[0])]
    for answer in answers:
        say(facts(answer))


def _read_request(
    context: str | None,
    unit: str | None,
    arms: str | None,
    key: str | None,
    measured_at: str | None,
    logged_arm: str | None,
    probability: float | None,
    noise_sd: str | None,
    noise_cov: str | None,
) -> dict[str, Any]:
    """The arguments of `decide`, from the options of the command."""
    return {
        "context": read_named("context", text_of("context", context or ""), CONTEXT),
        "unit": unit,
        "arms": None if arms is None else read_names("arms", arms),
        "key": key,
        "measured_at": None if measured_at is None else _read_time("measured_at", measured_at),
        "noise_sd": None if noise_sd is None else parsed("noise_sd", noise_sd, '{"steps": 900}'),
        "noise_cov": None
        if noise_cov is None
        else parsed("noise_cov", noise_cov, "[[1.0, 0.0], [0.0, 4.0]]"),
        "logged_arm": logged_arm,
        "probability": probability,
    }


def _read_time(field: str, value: Any) -> Any:
    """A number, or a date and time; values of JSON that are not text are left as they are."""
    from unfog.validation import check_time

    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return check_time(field, value, TIME)


def _read_batch(source: str) -> dict[int, Any]:
    """The requests of a batch, by line number."""
    from unfog.validation import InputError

    text = text_of("batch", "-") if source == "-" else read_file("batch", Path(source))
    example = json.dumps({"context": json.loads(CONTEXT), "unit": "ann"})
    requests = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        request = parsed(f"line {number}", line, example)
        if not isinstance(request, dict):
            raise InputError(f"line {number}", line, f"a JSON object such as {example}")
        if "measured_at" in request:
            request["measured_at"] = _read_time(f"line {number}, measured_at", request["measured_at"])
        requests[number] = request
    return requests


def _decide_batch(problem: "Problem | RemoteProblem", requests: Mapping[int, Any]) -> list["Decision"]:
    """Decide a batch; errors name the line."""
    from unfog.validation import InputError

    try:
        return problem.decide_many(requests.values())
    except InputError as error:
        match = re.match(r"requests\[(\d+)\]\.?", error.field)
        if match is None:
            raise
        line = f"line {list(requests)[int(match[1])]}"
        parts = [part for part in (line, error.field[match.end() :]) if part]
        raise error.renamed(", ".join(parts)) from None


def facts(answer: "Decision") -> dict[str, Any]:
    """The fields of a decision; shadows only if there are any."""
    fields = answer._asdict()
    return fields if answer.shadows else {name: fields[name] for name in fields if name != "shadows"}


def reward(
    store: StoreFile,
    name: Name,
    decision: Decided,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The reward of the decision.")],
    key: Key = None,
    sync: Sync = "full",
) -> None:
    """Report what a decision earned; the receipt says whether it was learnt, kept or too late."""
    number = parsed("value", value, "1.0")
    with opened(store, sync) as connection:
        receipt = connection.problem(name).reward(decision, number, key=key)
    say_receipt(receipt)


def reveal(
    store: StoreFile,
    name: Name,
    decision: Decided,
    context: Annotated[
        str,
        typer.Argument(
            metavar="A=1,B=2|JSON|-", help="The true context by name, complete or in part. - for stdin."
        ),
    ],
    key: Key = None,
    sync: Sync = "full",
) -> None:
    """Report the true context of a decision, when it becomes known."""
    true = read_named("context", text_of("context", context), '{"steps": 7065}')
    with opened(store, sync) as connection:
        receipt = connection.problem(name).reveal(decision, true, key=key)
    say_receipt(receipt)


def cancel(store: StoreFile, name: Name, decision: Decided, key: Key = None, sync: Sync = "full") -> None:
    """Report that a decision was never carried out, so that nothing is learnt from it."""
    with opened(store, sync) as connection:
        receipt = connection.problem(name).cancel(decision, key=key)
    say_receipt(receipt)
