"""What the log says of a mistake: its kind and its place, never its words.

The words of an exception may hold a context, a unit or a key, which are nobody's business. Of disk and
database it is told what they said: that names no values.
"""

import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

from unfog.live.errors import reason

FRAMES = 4  # of a traceback, the innermost


def told(error: BaseException) -> str:
    """A mistake and what it came from, on one line."""
    return "; from ".join(map(_one, _chain(error)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def _one(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    where = ", ".join(f"{Path(one.filename).name}:{one.lineno}" for one in frames)
    said = f" ({reason(error)})" if isinstance(error, sqlite3.Error) else ""
    if isinstance(error, OSError):
        said = f" ({error.strerror or 'no reason given'})"
    return f"{type(error).__name__}{said} at {where or 'no place'}"
