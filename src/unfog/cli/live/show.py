"""`unfog live show`: the problems of a store, or all that there is to know of one, in lines of 80 columns."""

import json as jsonlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli.live.common import CONTEXT, StoreFile, check_known, opened, parsed, refuse_store, text_of
from unfog.lab.tables import GLUE, align, percent, wrap

if TYPE_CHECKING:
    from unfog.live import Problem, Store
    from unfog.serve import Client
    from unfog.serve.client import Remote

EXAMPLE = (
    "Examples: unfog live show walks.unfog   |   unfog live show walks.unfog walks --unit ann --json   |"
    f"   unfog live show walks.unfog walks --context '{CONTEXT}' --figure walks.png"
)
FORMATS = ("png", "svg", "pdf")
LISTED = ("agent", "context", "arms", "decisions", "rewards", "pending")
LONGEST = 16  # letters of a name in a table


def command(
    store: StoreFile,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One problem; a list of all without.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Whose bias to show, and whose context it is.")] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="JSON|-", help="What each arm would be expected to earn in this context."),
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
    noisy = None if context is None else parsed("context", text_of("context", context), CONTEXT)
    with opened(store) as found:
        if name is None:
            facts = {one: listed(found, one) for one in found.names()}
            typer.echo(jsonlib.dumps(facts, allow_nan=False) if json else of_all(str(store), facts))
            return
        check_known(found, name)
        whole = told(found.problem(name), unit, noisy)
        if figure is not None:
            refuse_store("figure", figure, found)
            _draw(found.problem(name), figure)
            whole["figure"] = str(figure)
    typer.echo(jsonlib.dumps(whole, allow_nan=False) if json else of_one(whole))


def told(problem: "Problem | Remote", unit: str | None, noisy: Any) -> dict[str, Any]:
    """All there is to know of a problem, as JSON has it."""
    from unfog.live.inspection import plain

    about = problem.about()
    found: dict[str, Any] = {
        "problem": problem.name,
        **{name: about[name] for name in ("seed", "channel", "frozen", "retired", "shadows")},
        "diagnostics": plain(problem.diagnostics()),
        "belief": plain(problem.belief(unit)),
    }
    if noisy is not None:
        found["expected"] = plain(problem.expected(noisy, unit=unit))
    return found


def listed(store: "Store | Client", name: str) -> dict[str, Any]:
    """A problem in a few words."""
    about = store.problem(name).about()
    return {part: about[part] for part in LISTED}


def _draw(problem: "Problem | Remote", path: Path) -> None:
    from unfog.plotting import save

    save(problem.figure(), path.parent, path.stem, (path.suffix[1:],))


def of_all(store: str, facts: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each problem."""
    if not facts:
        return f"{store} is empty: `unfog live make` makes a problem"
    rows = [["problem", "agent", "arms", "decisions", "rewards", "pending"]]
    for name, one in facts.items():
        counts = (f"{one[field]:,}" for field in ("decisions", "rewards", "pending"))
        rows.append([_short(name), _short(one["agent"]), str(len(one["arms"])), *counts])
    return "\n".join(align(rows))


def of_one(facts: Mapping[str, Any]) -> str:
    """A problem: its arms, its bias, its readings, its rewards, and what is expected of a context."""
    found = facts["diagnostics"]
    blocks = [_head(facts), _arms(facts), _bias(facts), _readings(facts), _waiting(found)]
    if "expected" in facts:
        blocks.append(_expected(facts["expected"]))
    blocks += [_wrapped(f"note: {note}") for note in found["notes"]]
    if "figure" in facts:
        blocks.append([f"figure: {facts['figure']}"])
    return "\n".join("\n".join(block) for block in blocks if block)


def _head(facts: Mapping[str, Any]) -> list[str]:
    found = facts["diagnostics"]
    said = [
        f"{facts['problem']}: agent {found['agent']}, {found['decisions']:,} decisions, seed {facts['seed']}"
    ]
    if facts["frozen"] is not None:
        said.append(f"frozen: {facts['frozen']} is taken whatever the context, until `unfog live thaw`")
    if facts["shadows"]:
        said.append(f"shadows: {', '.join(facts['shadows'])}")
    return [line for one in said for line in _wrapped(one)]


def _arms(facts: Mapping[str, Any]) -> list[str]:
    found = facts["diagnostics"]
    rows = [["arm", "chosen", "share", "rewards", "mean reward"]]
    for arm, chosen in found["chosen"].items():
        name = f"{_short(arm)} (retired)" if arm in facts["retired"] else _short(arm)
        earned = _error(found["reward_mean"][arm], found["reward_error"][arm])
        rows.append(
            [name, f"{chosen:,.0f}", _percent(found["share"][arm]), f"{found['rewarded'][arm]:,.0f}", earned]
        )
    return align(rows)


def _bias(facts: Mapping[str, Any]) -> list[str]:
    """By coordinate: the bias of one unit, and of all units how far readings and denoised ones are off."""
    found, belief = facts["diagnostics"], facts["belief"]
    if "bias" not in belief:
        return []
    rows = [["coordinate", "bias", "sd", "readings", "off by", "denoised", "true ones"]]
    for name, value in belief["bias"].items():
        off = (_number(found[field][name]) for field in ("rmse_noisy", "rmse_denoised"))
        seen = (f"{found[field][name] or 0:,.0f}" for field in ("readings", "true_contexts"))
        read, true = seen
        rows.append([_short(name), _number(value), _number(belief["bias_sd"][name]), read, *off, true])
    more = (
        f" ({belief['units']} units: name one with --unit)"
        if belief["units"] > 1 and not belief["unit"]
        else ""
    )
    return [
        *_wrapped(f"bias as believed of {belief['bias_of']}{more}; how far readings were off, of all:"),
        *align(rows),
    ]


def _readings(facts: Mapping[str, Any]) -> list[str]:
    """Whether the channel is as told, and intervals hold what they say."""
    found = facts["diagnostics"]
    said = [f"ALARM: {one}" for one in found["alarm"]]
    if not said and facts["channel"] and found["decisions"]:
        unchecked = f"agent {found['agent']} does not check whether readings are as the channel says"
        said = [unchecked if found["e_value_of_all"] is None else "readings are as the channel says"]
    held = {float(level): x for level, x in found["coverage"].items() if x is not None}
    if held:
        levels, shares = (", ".join(f"{100 * x:.0f}" for x in part) for part in (held, held.values()))
        said.append(f"intervals of {levels} % held {shares} % of {found['judged']:,} rewards")
    return [line for one in said for line in _wrapped(one)]


def _waiting(found: Mapping[str, Any]) -> list[str]:
    ages = ", ".join(f"{x:,.0f} {_age(age)}" for age, x in found["waiting"].items() if x)
    pending = f"pending: {found['pending']:,}" + (f" ({ages})" if ages else "")
    late = f"late reports: {found['late']:,} of rewards, {found['late_contexts']:,} of true contexts"
    rate = (
        "nothing settled yet"
        if found["join_rate"] is None
        else f"{_percent(found['join_rate'])} came in time"
    )
    rest = f"void: {found['voided']:,}; expired: {found['expired']:,}; true contexts: {found['revealed']:,}"
    return [*_wrapped(f"{pending}; {late}; {rate}"), *_wrapped(rest)]


def _age(age: str) -> str:
    return "older" if age == "longer" else f"within the {age}"


def _expected(found: Mapping[str, Any]) -> list[str]:
    level = _percent(found["level"])
    rows = [["arm", "expected", f"{level} interval", "best with"]]
    for arm, mean in found["mean"].items():
        between = f"{_number(found['low'][arm])} to {_number(found['high'][arm])}"
        rows.append([_short(arm), _number(mean), between, _percent(found["probability_best"][arm])])
    return ["what each arm would be expected to earn in this context:", *align(rows)]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _error(mean: float | None, error: float | None) -> str:
    return _number(mean) if error is None else f"{_number(mean)} ± {error:.2g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _wrapped(text: str) -> list[str]:
    """Lines that fit; a number stays with its per cent sign."""
    return wrap(text.replace(" %", f"{GLUE}%"), "  ", hyphens=True)
