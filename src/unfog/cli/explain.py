"""`unfog explain`: an agent in words: its three parts, their formulas and settings, and when to use it."""

import json as jsonlib
import re
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from unfog.cli import complete
from unfog.cli.list import WIDTH

if TYPE_CHECKING:
    from unfog.agents.explain import Explained, Part

EXAMPLE = (
    "Examples: unfog explain unfog   |   unfog explain alg1-hetero-ucb:quantile=0.9   |"
    "   unfog explain linucb --json   |   unfog explain alg1 --rewards bernoulli"
)


def command(
    agent: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, also with parts: alg1-hetero-ucb; or module:name.",
            autocompletion=complete.agents,
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
    said = [*_wrapped(f"{found.agent}: {found.summary or 'an agent of your own'}"), kind, ""]
    said += [*_wrapped(f"When: {found.when}"), ""] if found.when else []
    for part in found.parts:
        said += [*_part(part), ""]
    said += [*_wrapped(f"Reference: {found.reference}", "  "), ""] if found.reference else []
    return said + _wrapped(f"In formulas: {_letters(found.letters)}.")


def _part(part: "Part") -> list[str]:
    """One of the three parts."""
    said = _wrapped(f"{part.step.capitalize()}: {part.name}, {part.note}", "  ")
    said += _wrapped(f"  {part.idea}", "  ")
    said += [line for formula in part.formula for line in _formula(formula)]
    said += _wrapped(f"      {_letters(part.letters)}", "      ") if part.letters else []
    if part.settings:
        told = ", ".join(f"{name}={value}" for name, value in part.settings.items())
        said += [*_wrapped(f"  Settings: {told}", "    "), *_wrapped(f"    {part.meaning}", "    ")]
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
    return [cut for one in found for cut in _wrapped(one.rstrip(","), f"{indent}  ")]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
