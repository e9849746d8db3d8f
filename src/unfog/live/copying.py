"""A copy of a store that is open, by SQLite's own backup, over the one connection that may use the file.

It goes in steps of some pages, and others write in between: what they change of pages that were copied
already SQLite changes in the copy, too. So the copy is the store as it is when the last step is done.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from unfog import _io
from unfog.live.errors import FAILURES, Conflict, StoreError, reason
from unfog.live.place import Pause
from unfog.live.schema import synced
from unfog.validation import InputError

PAGES = 256  # a step: a megabyte
REST = 0.001  # seconds between steps: without them those who wait for the lock would not get it


def copied(
    source: sqlite3.Connection, target: Path, pause: Pause, current: Callable[[], sqlite3.Connection | None]
) -> None:
    """Copy to a file beside the target, which then gets its name: it is there whole, or not at all."""
    if not target.parent.is_dir():
        raise InputError("path", str(target), "a file in a folder that is there")
    if target.exists():
        raise _taken(target)

    def rest(*_: int) -> None:
        with pause():
            time.sleep(REST)
        if current() is not source:
            raise StoreError("the store failed meanwhile and was opened again")

    try:
        _io.sweep(target.parent)
        with _io.draft(target) as draft:
            _fill(source, draft, rest)
            _io.appear(draft, target)
        synced(target.parent)
    except FileExistsError:
        raise _taken(target) from None
    except (*FAILURES, OSError, StoreError) as error:
        raise StoreError(f"there is no copy at {target}: {reason(error)}") from error


def _fill(source: sqlite3.Connection, draft: Path, rest: Callable[[int, int, int], None]) -> None:
    copy = sqlite3.connect(draft, isolation_level=None)
    try:
        source.backup(copy, pages=PAGES, progress=rest, sleep=0)
    finally:
        copy.close()
    synced(draft)


def _taken(target: Path) -> Conflict:
    return Conflict("path", str(target), "a file that does not exist yet")
