"""`unfog live log` and `replay`: what happened, and whether what is believed follows from it."""

from itertools import islice
from typing import Annotated

import typer

from unfog.cli.live.common import Name, StoreFile, check_known, opened, say

LOG = (
    "Examples: unfog live log walks.unfog walks   |   unfog live log walks.unfog walks --since 120 --limit 10"
)
REPLAY = "Examples: unfog live replay walks.unfog   |   unfog live replay walks.unfog walks --verify"


def log(
    store: StoreFile,
    name: Name,
    since: Annotated[int, typer.Option(min=0, help="Only events after that of this number (seq).")] = 0,
    limit: Annotated[int | None, typer.Option(min=0, help="As many at most.")] = None,
) -> None:
    """Print the events of a problem as NDJSON, oldest first."""
    with opened(store) as found:
        check_known(found, name)
        for event in islice(found.events(name, since), limit):
            say(event)


def replay(
    store: StoreFile,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One problem; all unless told.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Make every decision again, too; it must come out as logged.")
    ] = False,
) -> None:
    """Read the log from its beginning, and hold what is remembered against it, to the last bit."""
    with opened(store) as found:
        if name is not None:
            check_known(found, name)
        done = found.replay(verify=verify, problem=name)
    for problem, one in done.items():
        words = "equal to the bit" if one.same else "what is remembered is not what the log says"
        say({"problem": problem, **one._asdict(), "words": words})
    if not all(one.same for one in done.values()):
        raise typer.Exit(1)
