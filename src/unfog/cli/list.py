"""`unfog list`: experiments, agents and what goes with them, a line each; `unfog explain`: an agent in words.

`unfog list` takes a kind, and words that lines must have in them. `unfog explain` gives an agent's three
parts, their formulas and settings, and when to use it.
"""

import json as jsonlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from unfog.cli import common
from unfog.cli.common import ENGINES, FEATURES, PROBLEMS
from unfog.lab.tables import WIDTH, wrap

if TYPE_CHECKING:
    from unfog.agents.explain import Explained, Part

LIST_EXAMPLE = "Examples: unfog list   |   unfog list agents drift   |   unfog list learners --json"
EXPLAIN_EXAMPLE = (
    "Examples: unfog explain unfog   |   unfog explain alg1-hetero-ucb:quantile=0.9   |"
    "   unfog explain linucb --json   |   unfog explain alg1 --rewards bernoulli"
)
Groups = dict[str, dict[str, str]]


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help=f"What to list: {', '.join(common.KINDS)}; all of them unless told.",
            autocompletion=common.kinds,
        ),
    ] = None,
    words: Annotated[
        list[str] | None, typer.Argument(help="Only lines that have these words in them, small or large.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List experiments, problems, agents, baselines, the parts of agents, features, engines and data sets."""
    from unfog.validation import one_of

    kinds = common.KINDS if kind is None else (one_of("kind", kind, common.KINDS),)
    all_groups = groups()
    listed = {name: _filter_rows(all_groups[name], words or []) for name in kinds}
    if words:
        _check_matches(listed, {name for group in kinds for name in all_groups[group]}, words)
    if json:
        typer.echo(jsonlib.dumps(listed))
        return
    typer.echo("\n".join(_kind_lines(listed)))


def groups() -> Groups:
    """Everything that can be listed: names with a line on each, by kind."""
    from unfog.agents import denoise
    from unfog.agents.baselines import BASELINES
    from unfog.agents.catalogue import AGENTS, CHOOSERS
    from unfog.lab.datasets.files import DATASETS
    from unfog.lab.spec import SUITES, catalog

    denoisers = [vars(denoise)[name] for name in denoise.__all__]
    return {
        "experiments": {name: spec.title for name, spec in catalog().items()} | SUITES,
        "problems": PROBLEMS,
        "agents": {name: row.summary for name, row in AGENTS.items()},
        "baselines": {name: baseline.agent.summary for name, baseline in BASELINES.items()},
        "denoisers": {part.name: str(part.note) for part in denoisers},
        "learners": {
            name: _describe_part(name) for names in _learners_by_rewards().values() for name in names
        },
        "choosers": {name: _describe_part(name) for name in CHOOSERS},
        "features": FEATURES,
        "engines": ENGINES,
        "datasets": {name: f"{dataset.title} (see `unfog data list`)" for name, dataset in DATASETS.items()},
    }


def _learners_by_rewards() -> dict[str, list[str]]:
    """The names of learners, by the kind of rewards that they are for."""
    from unfog.agents.catalogue import LEARNERS

    return {
        kind: [name for name, learner in LEARNERS.items() if learner.rewards == kind]
        for kind in ("gaussian", "bernoulli")
    }


def _describe_part(part: str) -> str:
    """The note of a part, with the names of its settings."""
    from unfog.agents.catalogue import PARTS, settings_of

    settings = ", ".join(settings_of(part))
    return f"{PARTS[part].note} ({settings})" if settings else str(PARTS[part].note)


def _filter_rows(rows: Mapping[str, str], words: Sequence[str]) -> dict[str, str]:
    """The rows in which all words occur."""
    lowered = [word.lower() for word in words]
    return {
        name: summary
        for name, summary in rows.items()
        if all(word in f"{name} {summary}".lower() for word in lowered)
    }


def _check_matches(listed: Groups, names: set[str], words: Sequence[str]) -> None:
    """Raise InputError if no row has these words: an empty output would look like an empty list."""
    from unfog.validation import InputError, nearest

    if not any(listed.values()):
        text = " ".join(words)
        allowed = f"words that occur in `unfog list {next(iter(listed))}`"
        raise InputError("words", f"nothing listed has {text!r}", allowed, nearest(text, sorted(names)))


def _kind_lines(listed: Groups) -> list[str]:
    """Each kind with its heading and its rows, in 80 columns."""
    gaussian = ", ".join(_learners_by_rewards()["gaussian"])
    headings = {
        "problems": 'problems, of specs: [problem] kind = "gaussian"',
        "denoisers": "denoisers, of agents: see `unfog explain AGENT`; unfog.denoise in Python",
        "features": 'features, of problems: features = "per_arm"',
        "engines": "engines, of runs: unfog run EXPERIMENT --engine numba",
        "baselines": "baselines, published systems as agents: `unfog explain linucb`",
        "learners": f"learners, after a dash: alg1-hetero ({gaussian} for Gaussian rewards,"
        " the others for rewards of 0 or 1), with settings: alg1-lmc:temperature=1:steps=20",
        "choosers": "choosers, likewise: alg1-exact-ucb, alg1-hetero-ucb:quantile=0.9",
    }
    width = max((len(name) for rows in listed.values() for name in rows), default=0) + 4
    lines = list[str]()
    for kind, rows in listed.items():
        lines += wrap(headings.get(kind, kind), " ", long_words=False)
        for name, summary in rows.items():
            lines += wrap(f"  {name}".ljust(width) + summary, " " * width, long_words=False)
    return lines


def explain_command(
    agent: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, also with parts: alg1-hetero-ucb; or module:name.",
            autocompletion=common.agents,
        ),
    ],
    rewards: Annotated[
        str | None,
        typer.Option(
            help="gaussian, or bernoulli for rewards of 0 or 1: an agent may learn either differently."
            " Gaussian unless told, if it can."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Explain an agent: how it denoises, learns and chooses, its settings, and when to use it."""
    from unfog.agents.explain import explain

    explanation = explain(agent, rewards)
    if json:
        typer.echo(
            jsonlib.dumps({**explanation._asdict(), "parts": [part._asdict() for part in explanation.parts]})
        )
        return
    typer.echo("\n".join(lines(explanation)))


def lines(explanation: "Explained") -> list[str]:
    """The explanation of an agent, in 80 columns."""
    kind = f"as it is for {'rewards of 0 or 1' if explanation.rewards == 'bernoulli' else 'Gaussian rewards'}"
    text = [*wrap(f"{explanation.agent}: {explanation.summary or 'an agent of your own'}"), kind, ""]
    text += [*wrap(f"When: {explanation.when}"), ""] if explanation.when else []
    for part in explanation.parts:
        text += [*_part_lines(part), ""]
    text += [*wrap(f"Reference: {explanation.reference}", "  "), ""] if explanation.reference else []
    return text + wrap(f"In formulas: {_explain_letters(explanation.letters)}.")


def _part_lines(part: "Part") -> list[str]:
    """The explanation of one of the three parts."""
    text = wrap(f"{part.step.capitalize()}: {part.name}, {part.note}", "  ")
    text += wrap(f"  {part.idea}", "  ")
    text += [line for formula in part.formula for line in _wrap_formula(formula)]
    text += wrap(f"      {_explain_letters(part.letters)}", "      ") if part.letters else []
    if part.settings:
        settings = ", ".join(f"{name}={value}" for name, value in part.settings.items())
        text += [
            *wrap(f"  Settings: {settings}", "    "),
            *wrap(f"    {part.meaning}", "    "),
        ]
    return text


def _explain_letters(letters: dict[str, str]) -> str:
    """The letters of a formula and what each stands for."""
    return "; ".join(f"{letter}: {words}" for letter, words in letters.items())


def _wrap_formula(line: str) -> list[str]:
    """Indent a line of a formula; one that is too long is broken where it has wide gaps."""
    indent, pieces = " " * 6, list[str]()
    for piece in re.split(r" {3,}", line):
        if pieces and len(f"{pieces[-1]}   {piece}") <= WIDTH:
            pieces[-1] += f"   {piece}"
        else:
            pieces.append(indent + piece)
    return [row for cell in pieces for row in wrap(cell.rstrip(","), f"{indent}  ")]
