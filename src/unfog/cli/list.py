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
    """List experiments, problems, agents, rivals, the parts of agents, features, engines and data sets."""
    from unfog.validation import one_of

    chosen = common.KINDS if kind is None else (one_of("kind", kind, common.KINDS),)
    whole = groups()
    found = {name: _having(whole[name], words or []) for name in chosen}
    if words:
        _refuse_nothing(found, {name for one in chosen for name in whole[one]}, words)
    if json:
        typer.echo(jsonlib.dumps(found))
        return
    typer.echo("\n".join(_lines(found)))


def groups() -> Groups:
    """Everything that can be listed: names, and what is said of them, by kind."""
    from unfog.agents import denoise
    from unfog.agents.baselines import RIVALS
    from unfog.agents.catalogue import AGENTS, CHOOSERS
    from unfog.lab.datasets.files import DATASETS
    from unfog.lab.spec import SUITES, catalog

    denoisers = [vars(denoise)[name] for name in denoise.__all__]
    return {
        "experiments": {name: spec.title for name, spec in catalog().items()} | SUITES,
        "problems": PROBLEMS,
        "agents": {name: row.summary for name, row in AGENTS.items()},
        "rivals": {name: rival.agent.summary for name, rival in RIVALS.items()},
        "denoisers": {part.name: str(part.note) for part in denoisers},
        "learners": {name: _told(name) for names in _learners().values() for name in names},
        "choosers": {name: _told(name) for name in CHOOSERS},
        "features": FEATURES,
        "engines": ENGINES,
        "datasets": {name: f"{one.title} (see `unfog data list`)" for name, one in DATASETS.items()},
    }


def _learners() -> dict[str, list[str]]:
    """By the kind of rewards that they learn from."""
    from unfog.agents.catalogue import LEARNERS

    return {
        kind: [name for name, part in LEARNERS.items() if part.rewards == kind]
        for kind in ("gaussian", "bernoulli")
    }


def _told(part: str) -> str:
    """A part in words, with its settings where it has any."""
    from unfog.agents.catalogue import PARTS, settings_of

    settings = ", ".join(settings_of(part))
    return f"{PARTS[part].note} ({settings})" if settings else str(PARTS[part].note)


def _having(rows: Mapping[str, str], words: Sequence[str]) -> dict[str, str]:
    """The rows in which all words occur."""
    wanted = [word.lower() for word in words]
    return {
        name: said for name, said in rows.items() if all(word in f"{name} {said}".lower() for word in wanted)
    }


def _refuse_nothing(found: Groups, names: set[str], words: Sequence[str]) -> None:
    """Complain of words that are nowhere: silence would look like an empty list."""
    from unfog.validation import InputError, nearest

    if not any(found.values()):
        text = " ".join(words)
        allowed = f"words that occur in `unfog list {next(iter(found))}`"
        raise InputError("words", f"nothing listed has {text!r}", allowed, nearest(text, sorted(names)))


def _lines(found: Groups) -> list[str]:
    """Each kind with its heading and its rows, in 80 columns."""
    own = ", ".join(_learners()["gaussian"])
    headings = {
        "problems": 'problems, of specs: [problem] kind = "gaussian"',
        "denoisers": "denoisers, of agents: see `unfog explain AGENT`; unfog.denoise in Python",
        "features": 'features, of problems: features = "per_arm"',
        "engines": "engines, of runs: unfog run EXPERIMENT --engine numba",
        "rivals": "rivals, published systems as agents: `unfog explain linucb`",
        "learners": f"learners, after a dash: alg1-hetero ({own} for Gaussian rewards,"
        " the others for rewards of 0 or 1), with settings: alg1-lmc:temperature=1:steps=20",
        "choosers": "choosers, likewise: alg1-exact-ucb, alg1-hetero-ucb:quantile=0.9",
    }
    width = max((len(name) for rows in found.values() for name in rows), default=0) + 4
    lines = list[str]()
    for kind, rows in found.items():
        lines += wrap(headings.get(kind, kind), " ", long_words=False)
        for name, said in rows.items():
            lines += wrap(f"  {name}".ljust(width) + said, " " * width, long_words=False)
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
    from unfog.agents.explain import explained

    found = explained(agent, rewards)
    if json:
        typer.echo(jsonlib.dumps({**found._asdict(), "parts": [part._asdict() for part in found.parts]}))
        return
    typer.echo("\n".join(lines(found)))


def lines(found: "Explained") -> list[str]:
    """All of it, in 80 columns."""
    kind = f"as it is for {'rewards of 0 or 1' if found.rewards == 'bernoulli' else 'Gaussian rewards'}"
    said = [*wrap(f"{found.agent}: {found.summary or 'an agent of your own'}"), kind, ""]
    said += [*wrap(f"When: {found.when}"), ""] if found.when else []
    for part in found.parts:
        said += [*_part(part), ""]
    said += [*wrap(f"Reference: {found.reference}", "  "), ""] if found.reference else []
    return said + wrap(f"In formulas: {_letters(found.letters)}.")


def _part(part: "Part") -> list[str]:
    """One of the three parts."""
    said = wrap(f"{part.step.capitalize()}: {part.name}, {part.note}", "  ")
    said += wrap(f"  {part.idea}", "  ")
    said += [line for formula in part.formula for line in _formula(formula)]
    said += wrap(f"      {_letters(part.letters)}", "      ") if part.letters else []
    if part.settings:
        told = ", ".join(f"{name}={value}" for name, value in part.settings.items())
        said += [
            *wrap(f"  Settings: {told}", "    "),
            *wrap(f"    {part.meaning}", "    "),
        ]
    return said


def _letters(letters: dict[str, str]) -> str:
    """What each stands for."""
    return "; ".join(f"{letter}: {words}" for letter, words in letters.items())


def _formula(line: str) -> list[str]:
    """A line of a formula; one that is too long is cut where it has wide gaps."""
    indent, found = " " * 6, list[str]()
    for piece in re.split(r" {3,}", line):
        if found and len(f"{found[-1]}   {piece}") <= WIDTH:
            found[-1] += f"   {piece}"
        else:
            found.append(indent + piece)
    return [cut for one in found for cut in wrap(one.rstrip(","), f"{indent}  ")]
