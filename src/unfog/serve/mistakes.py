"""What the log says of a mistake: its kind and its place, and its words where they can hold no values.

The words of an exception may hold a context, a unit or a key, which are nobody's business. Those of a store
name files, problems and rows alone, and so does what disk and database say.
"""

import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

from unfog.live.errors import Differs, StoreError, reason

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
    said = _words(error)
    return f"{type(error).__name__}{f' ({said})' if said else ''} at {where or 'no place'}"


def _words(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or "no reason given"
    silent = isinstance(error, Differs) or not isinstance(error, sqlite3.Error | StoreError)
    return "" if silent else reason(error)
