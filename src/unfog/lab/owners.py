"""Whose an unfinished folder is: run.json says so and, where that is damaged or lost, each of the blocks."""

import re
from contextlib import suppress
from pathlib import Path

from unfog._io import DamagedError, content_of, digest
from unfog.lab import blocks, finished

OURS = re.compile(r"run\.json|lock|final|block-.*|.*\.tmp")  # names in an unfinished folder


def owners(folder: Path) -> set[str]:
    """The runs that a folder belongs to, by the hashes of their identities; none where nothing says so."""
    said = stated(folder)
    if said is not None:
        return {said}
    found = set[str]()
    for path in folder.iterdir():
        if not OURS.fullmatch(path.name):
            found.add(path.name)  # whoever made this, it was not us
        elif path.name.startswith("block-"):
            with suppress(OSError):
                found |= blocks.owner(path)
    return found


def stated(folder: Path) -> str | None:
    """The run that run.json says; None where that is damaged or missing."""
    try:
        return digest(finished.stated(content_of(folder / finished.RUN), finished.FIRST))
    except (OSError, DamagedError):
        return None
