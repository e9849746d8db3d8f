"""`unfog live reward`, `reveal` and `void`: what became of a decision."""

from typing import Annotated

import typer

from unfog.cli.live.common import Decided, Key, Name, StoreFile, Sync, opened, parsed, say_receipt, text_of

REWARD = "Example: unfog live reward walks.unfog walks 17-2f9c01ab 1.0"
REVEAL = """Example: unfog live reveal walks.unfog walks 17-2f9c01ab '{"steps": 7065}'"""
VOID = "Example: unfog live void walks.unfog walks 17-2f9c01ab"


def reward(
    store: StoreFile,
    name: Name,
    decision: Decided,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="What it earned.")],
    key: Key = None,
    sync: Sync = "full",
) -> None:
    """Report what a decision earned; the receipt says whether it was learnt, kept or too late."""
    paid = parsed("value", value, "1.0")
    with opened(store, sync) as found:
        receipt = found.problem(name).reward(decision, paid, key=key)
    say_receipt(receipt)


def reveal(
    store: StoreFile,
    name: Name,
    decision: Decided,
    context: Annotated[
        str, typer.Argument(metavar="JSON|-", help="The true context by name, whole or in part. - for stdin.")
    ],
    key: Key = None,
    sync: Sync = "full",
) -> None:
    """Tell the true context of a decision, when it becomes known."""
    true = parsed("context", text_of("context", context), '{"steps": 7065}')
    with opened(store, sync) as found:
        receipt = found.problem(name).reveal(decision, true, key=key)
    say_receipt(receipt)


def void(store: StoreFile, name: Name, decision: Decided, key: Key = None, sync: Sync = "full") -> None:
    """Say that a decision was never shown: nothing is learnt from it."""
    with opened(store, sync) as found:
        receipt = found.problem(name).void(decision, key=key)
    say_receipt(receipt)
