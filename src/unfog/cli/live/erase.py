"""`unfog live erase`: what is known of a unit goes, for those who must."""

from typing import Annotated

import typer

from unfog.cli.live.common import StoreFile, opened, say

EXAMPLE = "Example: unfog live erase walks.unfog --unit ann --yes"


def command(
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
