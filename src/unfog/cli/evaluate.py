"""`unfog evaluate`: what would other policies, and better sensors, have earned on a log?"""

import json as jsonlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli import common

if TYPE_CHECKING:
    from unfog.evaluation.log import DecisionLog
    from unfog.evaluation.policies import Tick

EXAMPLE = (
    "Examples: unfog evaluate walks.unfog --policies logger,unfog,naive   |"
    "   unfog evaluate walks.csv --context steps,sleep --arm message --reward walked --probability p --sensor"
)
CHANNEL = (
    '{"context_mean": [0], "context_cov": [[1]], "noise_cov": [[0.5]], "bias_cov": [[0.1]], "bias": [0]}'
)


def command(
    log: Annotated[
        Path,
        typer.Argument(
            help="A live store (.unfog), its export (.ndjson), dsjson (.json), or a table (.csv)."
        ),
    ],
    policies: Annotated[
        str | None,
        typer.Option(
            help="Separated by commas: logger, uniform, always:ARM, fitted, fitted-noisy, agents of"
            " `unfog list`; logger,uniform,fitted unless told.",
            autocompletion=common.policies,
        ),
    ] = None,
    estimators: Annotated[
        str | None,
        typer.Option(
            help="dr, snips, ips, clipped, switch, dm, replay: the first is in front; dr,snips,ips unless"
            " told, and replay where agents learn."
        ),
    ] = None,
    intervals: Annotated[
        str, typer.Option(help="adaptive: for loggers that may have learnt; plain: for others.")
    ] = "adaptive",
    level: Annotated[float, typer.Option(help="With which probability intervals hold.")] = 0.95,
    columns: Annotated[
        Path | None, typer.Option(help="FILE.toml that says which column of a table is what.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Columns of the noisy context, by commas.")] = None,
    arm: Annotated[str | None, typer.Option(help="The column of the arm that was drawn.")] = None,
    reward: Annotated[str | None, typer.Option(help="The column of the reward.")] = None,
    probability: Annotated[
        str | None,
        typer.Option(
            help="The column of the drawn arm's probability; or a number, where arms were drawn evenly."
        ),
    ] = None,
    true: Annotated[
        str | None,
        typer.Option(help="Columns of the true context, in the order of --context; or steps=true_steps,…"),
    ] = None,
    time: Annotated[str | None, typer.Option(help="The column of the time.")] = None,
    unit: Annotated[str | None, typer.Option(help="The column of whose context it is.")] = None,
    problem: Annotated[str | None, typer.Option(help="Which problem of a store.")] = None,
    arms: Annotated[str | None, typer.Option(help="All arms, by commas: also those never drawn.")] = None,
    channel: Annotated[
        Path | None,
        typer.Option(
            help="FILE.json or FILE.toml that says what is known of the noise, as found.channel.to_json() of"
            " unfog.calibrate does; pairs in the log are used unless told."
        ),
    ] = None,
    features: Annotated[
        str, typer.Option(help="Features of arms: an intercept and slopes for each.")
    ] = "per_arm",
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    sensor: Annotated[
        bool, typer.Option("--sensor", help="Also: what would a better sensor be worth?")
    ] = False,
    alone: Annotated[
        str | None,
        typer.Option(help="With --sensor: which sensors to look at alone, too: each, or names by commas."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where figures go.")] = Path("figures"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Say what other policies would have earned on a log, and what a better sensor would be worth."""
    from unfog.evaluation.evaluate import DEFAULT_POLICIES
    from unfog.lab.evaluate import evaluate, read_log
    from unfog.lab.run_folder import made_folder

    made_folder("out", out)
    _check_features(features)
    fields = {"context": context, "arm": arm, "reward": reward, "true": true, "time": time, "unit": unit}
    reader_options = {"arms": listed(arms), "problem": problem, **probability_of(probability)}
    decisions = read_log(log, **reading(log, columns, fields, reader_options))
    options: dict[str, Any] = {"level": level, "features": features, "seed": seed}
    options["channel"] = read_channel(channel)
    policy_names = DEFAULT_POLICIES if policies is None else listed(policies)
    worth = _evaluate_sensors(decisions, alone or "", options) if sensor or alone is not None else None
    with _show_progress("policies", _count_rounds(decisions, policy_names, estimators)) as tick:
        values = evaluate(
            decisions, policy_names, estimators=estimators, intervals=intervals, tick=tick, **options
        )
    _report(values, worth, out, f"evaluate-{log.stem}", json)


def _report(values: Any, worth: Any, out: Path, stem: str, json: bool) -> None:
    """Draw the figures, and print the results for people or for programs."""
    from unfog.lab import evaluate, sensor
    from unfog.plotting import save

    facts = {**evaluate.summary(values), "figures": []}
    if worth is not None:
        facts["sensor"] = sensor.summary(worth)
    try:
        facts["figures"] += map(str, save(evaluate.figure(values), out, stem))
        if worth is not None:
            facts["figures"] += map(str, save(evaluate.sensor(worth), out, f"{stem}-sensor"))
    finally:  # print the numbers even if a figure cannot be saved
        if json:
            typer.echo(jsonlib.dumps(facts, allow_nan=False))
        else:
            tables = [evaluate.table(values)] + ([] if worth is None else [sensor.table(worth)])
            typer.echo("\n\n".join([*tables, "\n".join(["figures:", *(facts["figures"] or ["none"])])]))


def _evaluate_sensors(decisions: "DecisionLog", alone: str, options: dict[str, Any]) -> Any:
    from unfog.lab.sensor import STEPS, named, sensor_worth

    names = named(alone, decisions.coordinates)
    with _show_progress("sensors", STEPS * (1 + len(names))) as tick:
        return sensor_worth(decisions, alone=names, tick=tick, **options)


def _check_features(features: str) -> None:
    """Refuse other features: they need a vector for each arm, for which there is no option."""
    from unfog.validation import InputError

    if features != "per_arm":
        raise InputError("features", features, "per_arm; for others, unfog.evaluate(…, actions=…) in Python")


def _count_rounds(decisions: "DecisionLog", policy_names: Any, estimators: str | None) -> int:
    """How many rounds agents will learn from: each sees the log once, and again if it is replayed."""
    from unfog.evaluation.policies import FIXED

    agents = [name for name in policy_names if name not in FIXED and not name.startswith("always:")]
    is_replayed = estimators is None or "replay" in (listed(estimators) or [])
    return len(agents) * decisions.rounds * (1 + is_replayed)


@contextmanager
def _show_progress(name: str, total: int) -> Iterator["Tick"]:
    """A bar that fills as steps are done."""
    from unfog.lab.progress import bar

    with bar(name) as progress:
        done = 0

        def tick(steps: int) -> None:
            nonlocal done
            done += steps
            progress(done, total)

        yield tick


def listed(text: str | Sequence[str] | None) -> list[str] | None:
    """Split names at commas; an option may also be given several times."""
    words = [text] if isinstance(text, str) else text
    return (
        None
        if words is None
        else [name.strip() for word in words for name in word.split(",") if name.strip()]
    )


def probability_of(text: str | None) -> dict[str, Any]:
    """A number, or the name of a column."""
    try:
        return {} if text is None else {"probability": float(text)}
    except ValueError:
        return {"column": text}


def reading(log: Path, file: Path | None, fields: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """How to read the log: columns of a table; of dsjson, which of its numbers are the context."""
    from unfog import _io
    from unfog.evaluation.readers import TABLES
    from unfog.evaluation.readers.table import Columns, from_toml
    from unfog.validation import InputError

    columns = {name: value for name, value in fields.items() if value is not None}
    if (column := options.pop("column", None)) is not None:
        columns["probability"] = column
    if log.suffix.lower() in TABLES:
        columns |= {name: listed(columns[name]) for name in ("context",) if name in columns}
        columns |= {"true": _split_true(columns["true"])} if "true" in columns else {}
        start = vars(from_toml(file)) if file is not None else {}
        return {**options, "columns": Columns(**{**start, **columns})}
    if _io.is_missing(log):  # the reader refuses it
        return options
    if file is not None:
        columns["columns"] = str(file)
    coordinates = listed(columns.pop("context", None))
    for name, value in columns.items():
        raise InputError(
            name, value, f"nothing, for {log.name}: only tables have columns ({', '.join(TABLES)})"
        )
    return {**options, "coordinates": coordinates}


def _split_true(text: str) -> list[str] | dict[str, str]:
    """Columns of true values: in order, or by the column of the context that each belongs to."""
    names = listed(text) or []
    if not all("=" in name for name in names):
        return names
    return {name.split("=", 1)[0].strip(): name.split("=", 1)[1].strip() for name in names}


def read_channel(path: Path | None) -> dict[str, Any] | None:
    """Read the channel from a file."""
    from unfog import _io
    from unfog.cli.live.common import parsed
    from unfog.validation import InputError

    if path is None:
        return None
    allowed = "a file of TOML or JSON"
    if path.suffix == ".toml":
        return _io.toml("channel", path, allowed)
    text = _io.text("channel", path, allowed, _io.MOST_BYTES)
    fields = parsed("channel", text, CHANNEL)
    if not isinstance(fields, dict):
        raise InputError("channel", text, f"a JSON object such as {CHANNEL}")
    return fields
