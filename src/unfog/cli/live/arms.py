"""`unfog live arms`, `freeze`, `thaw` and `shadow`: who may be chosen, and by whom."""

from typing import Annotated, Any

import typer

from unfog.cli.live.common import Name, StoreFile, opened, parsed, say_receipt

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
