"""`unfog live show`: the problems of a store, or all that there is to know of one, in lines of 80 columns."""

import json as jsonlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli.live.common import CONTEXT, StoreFile, check_known, opened, read_named, refuse_store, text_of
from unfog.lab.tables import GLUE, align, percent, wrap

if TYPE_CHECKING:
    from unfog.live import Problem, Store
    from unfog.serve import Client
    from unfog.serve.client import RemoteProblem

EXAMPLE = (
    "Examples: unfog live show walks.unfog   |   unfog live show walks.unfog walks --unit ann --json   |"
    "   unfog live show walks.unfog walks --context steps=1648,sleep= --figure walks.png"
)
FORMATS = ("png", "svg", "pdf")
LISTED = ("agent", "context", "arms", "decisions", "rewards", "pending")
LONGEST = 16  # letters of a name in a table


def command(
    store: StoreFile,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The problem to show; without it, all are listed.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="The unit whose bias to show, also for --context.")] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="A=1,B=2|JSON|-", help="A context: also show the expected reward of each arm in it."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON and nothing else.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it, too: FILE.png, FILE.svg or FILE.pdf.")
    ] = None,
) -> None:
    """Show what a problem believes, how its arms do, and whether its readings are as the channel says."""
    from unfog.validation import InputError

    if name is None and (unit is not None or context is not None or figure is not None):
        raise InputError("name", "not given", "the name of a problem, for --unit, --context and --figure")
    if figure is not None and figure.suffix[1:] not in FORMATS:
        raise InputError("figure", str(figure), ", ".join(f"FILE.{kind}" for kind in FORMATS))
    noisy = None if context is None else read_named("context", text_of("context", context), CONTEXT)
    with opened(store) as connection:
        if name is None:
            facts = {each: summarise_problem(connection, each) for each in connection.names()}
            typer.echo(jsonlib.dumps(facts, allow_nan=False) if json else format_list(str(store), facts))
            return
        check_known(connection, name)
        report = describe_problem(connection.problem(name), unit, noisy)
        if figure is not None:
            refuse_store("figure", figure, connection)
            _save_figure(connection.problem(name), figure)
            report["figure"] = str(figure)
    typer.echo(jsonlib.dumps(report, allow_nan=False) if json else format_problem(report))


def describe_problem(problem: "Problem | RemoteProblem", unit: str | None, noisy: Any) -> dict[str, Any]:
    """Everything there is to know about a problem, as plain data."""
    from unfog.live.inspection import plain

    description = problem.describe()
    facts: dict[str, Any] = {
        "problem": problem.name,
        **{name: description[name] for name in ("seed", "channel", "pinned", "retired", "shadows")},
        "diagnostics": plain(problem.diagnostics()),
        "belief": plain(problem.belief(unit)),
    }
    if noisy is not None:
        facts["predicted_rewards"] = plain(problem.predict_rewards(noisy, unit=unit))
    return facts


def summarise_problem(store: "Store | Client", name: str) -> dict[str, Any]:
    """The main facts about a problem, for a list."""
    description = store.problem(name).describe()
    return {part: description[part] for part in LISTED}


def _save_figure(problem: "Problem | RemoteProblem", path: Path) -> None:
    from unfog.plotting import save

    save(problem.figure(), path.parent, path.stem, (path.suffix[1:],))


def format_list(store: str, facts: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each problem."""
    if not facts:
        return f"{store} is empty: `unfog live create` creates a problem"
    rows = [["problem", "agent", "arms", "decisions", "rewards", "pending"]]
    for name, problem in facts.items():
        counts = (f"{problem[field]:,}" for field in ("decisions", "rewards", "pending"))
        rows.append([_shorten(name), _shorten(problem["agent"]), str(len(problem["arms"])), *counts])
    return "\n".join(align(rows))


def format_problem(facts: Mapping[str, Any]) -> str:
    """A problem as text: its arms, bias, readings, rewards, and expected rewards in a context."""
    diagnostics = facts["diagnostics"]
    blocks = [
        _header_lines(facts),
        _arm_lines(facts),
        _bias_lines(facts),
        _channel_lines(facts),
        _pending_lines(diagnostics),
    ]
    if "predicted_rewards" in facts:
        blocks.append(_expected_lines(facts["predicted_rewards"]))
    blocks += [_wrap(f"note: {note}") for note in diagnostics["notes"]]
    if "figure" in facts:
        blocks.append([f"figure: {facts['figure']}"])
    return "\n".join("\n".join(block) for block in blocks if block)


def _header_lines(facts: Mapping[str, Any]) -> list[str]:
    diagnostics = facts["diagnostics"]
    decisions = f"{diagnostics['decisions']:,} decisions"
    sentences = [f"{facts['problem']}: agent {diagnostics['agent']}, {decisions}, seed {facts['seed']}"]
    if facts["pinned"] is not None:
        sentences.append(f"pinned: {facts['pinned']} is taken whatever the context, until `unfog live unpin`")
    if facts["shadows"]:
        sentences.append(f"shadows: {', '.join(facts['shadows'])}")
    return [line for sentence in sentences for line in _wrap(sentence)]


def _arm_lines(facts: Mapping[str, Any]) -> list[str]:
    diagnostics = facts["diagnostics"]
    rows = [["arm", "chosen", "share", "rewards", "mean reward"]]
    for arm, chosen in diagnostics["chosen"].items():
        name = f"{_shorten(arm)} (retired)" if arm in facts["retired"] else _shorten(arm)
        earned = _format_error(diagnostics["reward_mean"][arm], diagnostics["reward_error"][arm])
        rows.append(
            [
                name,
                f"{chosen:,.0f}",
                _format_percent(diagnostics["share"][arm]),
                f"{diagnostics['rewarded'][arm]:,.0f}",
                earned,
            ]
        )
    return align(rows)


def _bias_lines(facts: Mapping[str, Any]) -> list[str]:
    """By coordinate: the bias of one unit, and the errors of readings and denoised contexts of all units."""
    diagnostics, belief = facts["diagnostics"], facts["belief"]
    if "bias" not in belief:
        return []
    rows = [["coordinate", "bias", "sd", "readings", "off by", "denoised", "true ones"]]
    for name, value in belief["bias"].items():
        errors = (_format_number(diagnostics[field][name]) for field in ("rmse_noisy", "rmse_denoised"))
        counts = (f"{diagnostics[field][name] or 0:,.0f}" for field in ("readings", "true_contexts"))
        readings, true = counts
        rows.append(
            [
                _shorten(name),
                _format_number(value),
                _format_number(belief["bias_sd"][name]),
                readings,
                *errors,
                true,
            ]
        )
    hint = (
        f" ({belief['units']} units: name one with --unit)"
        if belief["units"] > 1 and not belief["unit"]
        else ""
    )
    return [
        *_wrap(f"bias as believed of {belief['bias_label']}{hint}; how far readings were off, of all:"),
        *align(rows),
    ]


def _channel_lines(facts: Mapping[str, Any]) -> list[str]:
    """Whether readings are as the channel says, and how often intervals held the reward."""
    diagnostics = facts["diagnostics"]
    sentences = [f"ALARM: {sentence}" for sentence in diagnostics["alarm"]]
    if not sentences and facts["channel"] and diagnostics["decisions"]:
        unchecked = f"agent {diagnostics['agent']} does not check whether readings are as the channel says"
        sentences = [
            unchecked if diagnostics["e_value_of_all"] is None else "readings are as the channel says"
        ]
    held = {float(level): x for level, x in diagnostics["coverage"].items() if x is not None}
    if held:
        levels, shares = (", ".join(f"{100 * x:.0f}" for x in part) for part in (held, held.values()))
        sentences.append(f"intervals of {levels} % held {shares} % of {diagnostics['judged']:,} rewards")
    return [line for sentence in sentences for line in _wrap(sentence)]


def _pending_lines(diagnostics: Mapping[str, Any]) -> list[str]:
    ages = ", ".join(f"{x:,.0f} {_describe_age(age)}" for age, x in diagnostics["waiting"].items() if x)
    pending = f"pending: {diagnostics['pending']:,}" + (f" ({ages})" if ages else "")
    late = (
        f"late reports: {diagnostics['late']:,} of rewards, {diagnostics['late_contexts']:,} of true contexts"
    )
    rate = (
        "nothing settled yet"
        if diagnostics["join_rate"] is None
        else f"{_format_percent(diagnostics['join_rate'])} came in time"
    )
    closed = f"cancelled: {diagnostics['cancelled']:,}; expired: {diagnostics['expired']:,}"
    rest = f"{closed}; true contexts: {diagnostics['revealed']:,}"
    return [*_wrap(f"{pending}; {late}; {rate}"), *_wrap(rest)]


def _describe_age(age: str) -> str:
    return "older" if age == "longer" else f"within the {age}"


def _expected_lines(expected: Mapping[str, Any]) -> list[str]:
    level = _format_percent(expected["level"])
    rows = [["arm", "expected", f"{level} interval", "best with"]]
    for arm, mean in expected["mean"].items():
        between = f"{_format_number(expected['low'][arm])} to {_format_number(expected['high'][arm])}"
        rows.append(
            [_shorten(arm), _format_number(mean), between, _format_percent(expected["probability_best"][arm])]
        )
    return ["what each arm would be expected to earn in this context:", *align(rows)]


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _format_error(mean: float | None, error: float | None) -> str:
    return _format_number(mean) if error is None else f"{_format_number(mean)} ± {error:.2g}"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _wrap(text: str) -> list[str]:
    """Lines that fit; a number stays with its per cent sign."""
    return wrap(text.replace(" %", f"{GLUE}%"), "  ", hyphens=True)
