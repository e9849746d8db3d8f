"""A problem of `unfog live`: `make` it, say who may be chosen and by whom, and `erase` a unit from it.

`arms`, `freeze` and `thaw` say which arms may be chosen; `shadow` adds an agent that decides without being
obeyed. `erase` makes what is known of a unit go, for those who must.
"""

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from unfog.cli.live import common
from unfog.cli.live.common import Name, StoreFile, Sync, opened, parsed, read_file, say, say_receipt, text_of

MAKE_EXAMPLE = (
    "Examples: unfog live make walks.unfog walks --terms walks.toml   |"
    """   echo '{"context": ["steps"], "arms": ["send", "wait"]}' |"""
    " unfog live make walks.unfog walks --terms -"
)
ARMS = (
    "Examples: unfog live arms walks.unfog walks --add call --retire send   |"
    "   unfog live arms shop.unfog shop --add 'shoes=[0.2, 1.0]'"
)
FREEZE = "Example: unfog live freeze walks.unfog walks wait"
THAW = "Example: unfog live thaw walks.unfog walks"
SHADOW = (
    "Examples: unfog live shadow walks.unfog walks naive   |"
    "   unfog live shadow walks.unfog walks naive --leave"
)
ERASE_EXAMPLE = "Example: unfog live erase walks.unfog --unit ann --yes"
SIMPLE = '{"context": ["steps", "sleep"], "arms": ["send", "wait"]}'


class Make(common.Anywhere):
    """Its help ends with every term, and what the term is unless it is given."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """What is imported for the terms takes a second: too long for the help of other commands."""
        from unfog.live.config import FIELDS

        terms = [
            name if field.default is None else f"{name} = {json.dumps(field.default)}"
            for name, field in FIELDS.items()
        ]
        formatter.write_paragraph()
        formatter.write_text(f"Terms: {', '.join(terms)}")
        super().format_epilog(ctx, formatter)


def make_command(
    store: StoreFile,
    name: Name,
    terms: Annotated[
        str,
        typer.Option(
            metavar="FILE|-",
            help="FILE.toml, FILE.json, or - for JSON on stdin: the terms, as `unfog.live.Store.problem` has"
            " them. Only the context is a must. The channel is a table: context_mean, context_cov, noise_cov,"
            " bias_cov, bias.",
        ),
    ],
    sync: Sync = "full",
) -> None:
    """Make a problem, and the store where there is none. Again with the same terms changes nothing."""
    given = read(terms)
    if not store.remote and not store.path.exists():
        _check(name, given)
    with opened(store, sync, create=True) as found:
        there = name in found.names()
        problem = found.problem(name, **given)
        told = problem.terms
        said = {
            "store": str(store),
            "problem": name,
            "made": not there,
            "words": "it is there, with these terms: nothing was changed" if there else "made",
            "context": list(told.context),
            "arms": told.arms if any(told.arms.values()) else list(told.arms),
            "agent": told.agent,
            "seed": told.seed,
            "note": problem.note or None,
        }
    say(said)


def read(source: str) -> dict[str, Any]:
    """The terms, as keywords."""
    from unfog.validation import InputError

    path = Path(source)
    text = text_of("terms", source) if source == "-" else read_file("terms", path)
    if source != "-" and path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError("terms", f"{source} is not TOML ({error})", "a file of TOML or JSON") from None
    found = parsed("terms", text, SIMPLE)
    if not isinstance(found, dict) or not found:
        raise InputError("terms", text, f"a JSON object such as {SIMPLE}")
    return found


def _check(name: str, given: dict[str, Any]) -> None:
    """Refuse terms before a store is made for them."""
    from unfog import validation
    from unfog.live import config
    from unfog.live.config import Made

    validation.check_name("name", name)
    Made(config.Terms.read(config.written(given)))


def arms(
    store: StoreFile,
    name: Name,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="ARM[=JSON]", help="A new arm, with its vector where arms have any."),
    ] = None,
    retire: Annotated[list[str] | None, typer.Option(metavar="ARM", help="Choose it no more.")] = None,
    restore: Annotated[list[str] | None, typer.Option(metavar="ARM", help="Choose it again.")] = None,
) -> None:
    """Add, retire and restore arms, one after the other, with a receipt for each. Options may be repeated."""
    from unfog.validation import InputError

    added = [_added(text) for text in add or ()]
    if not (added or retire or restore):
        raise InputError("arms", "nothing to do", "--add, --retire or --restore")
    with opened(store) as found:
        problem = found.problem(name)
        for arm, vector in added:
            say_receipt(problem.add_arm(arm, vector), add=arm)
        for arm in restore or ():
            say_receipt(problem.restore_arm(arm), restore=arm)
        for arm in retire or ():
            say_receipt(problem.retire_arm(arm), retire=arm)


def _added(text: str) -> tuple[str, Any]:
    """A name, and its vector after an equals sign."""
    name, sign, vector = text.partition("=")
    return name, parsed("add", vector, "shoes=[0.2, 1.0]") if sign else None


def freeze(
    store: StoreFile, name: Name, arm: Annotated[str, typer.Argument(metavar="ARM", help="The one arm.")]
) -> None:
    """From now on one arm, whatever the context, until `thaw`."""
    with opened(store) as found:
        receipt = found.problem(name).freeze(arm)
    say_receipt(receipt, freeze=arm)


def thaw(store: StoreFile, name: Name) -> None:
    """The agent decides again."""
    with opened(store) as found:
        receipt = found.problem(name).thaw()
    say_receipt(receipt)


def shadow(
    store: StoreFile,
    name: Name,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="A name from `unfog list`, or module:name.")],
    leave: Annotated[bool, typer.Option("--leave", help="It is to decide no more.")] = False,
) -> None:
    """One more agent that decides beside the problem's own, without being obeyed."""
    with opened(store) as found:
        problem = found.problem(name)
        receipt = problem.unshadow(agent) if leave else problem.shadow(agent)
    say_receipt(receipt, shadow=agent)


def erase_command(
    store: StoreFile,
    unit: Annotated[str, typer.Option(help="Whose contexts are to go, from all problems.")],
    yes: Annotated[bool, typer.Option("--yes", help="It cannot be undone; copies and exports stay.")] = False,
) -> None:
    """Erase the contexts of a unit and what was learnt from them; arms and rewards stay, as nobody's."""
    from unfog.validation import InputError

    if not yes:
        raise InputError("yes", "not given", "--yes: what is erased cannot be brought back")
    with opened(store) as found:
        decisions = found.erase(unit=unit)
    say({"unit": unit, "decisions": decisions, "words": "erased"})
