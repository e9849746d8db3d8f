"""From a path to a connection that holds the store alone: lock, check, upgrade, settings.

The write-ahead log with an exclusive lock needs no shared memory file, and no second connection can ever
write or checkpoint. Nothing here opens the file other than through SQLite: see `holder`.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from unfog._io import PRIVATE
from unfog.live import schema
from unfog.live.errors import FAILURES, StoreError, is_busy, reason
from unfog.live.holder import refusal
from unfog.validation import InputError

Connect: TypeAlias = Callable[[Path], sqlite3.Connection]
Identity: TypeAlias = tuple[int, int]  # device and inode

SYNC = ("full", "normal")
PATIENCE = 0.1  # seconds: two that open at the same moment would otherwise refuse each other
SETTINGS = (
    "PRAGMA secure_delete = ON",
    "PRAGMA wal_autocheckpoint = 2000",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA cache_size = -16384",
    "PRAGMA cell_size_check = ON",
    "PRAGMA trusted_schema = OFF",
)


def plain(path: Path) -> sqlite3.Connection:
    """A connection without implicit transactions, to be used under a lock from any thread."""
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def place(path: object) -> Path:
    """Where the store is, links followed: what lies beside it is to lie beside the file itself."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError("path", path, "the name of a file")
    return Path(path).expanduser().resolve()


def identity(path: Path) -> Identity | None:
    """Which file it is; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def found(path: Path) -> Identity:
    """The file, made where there is none; what can be said without opening it."""
    try:
        if not path.parent.is_dir():
            raise StoreError(f"{path} cannot be opened: there is no folder {path.parent}")
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no ordinary file"
            raise StoreError(f"{path} cannot be opened: it is {what}; allowed: a file")
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))
        which = identity(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}") from error
    if which is None:
        raise StoreError(f"{path} cannot be opened: it was taken away while it was opened")
    return which


def connection(path: Path, sync: str, connect: Connect) -> tuple[sqlite3.Connection, Identity]:
    """A store that is there by the time this returns, of this version, locked, set up."""
    for _ in range(5):
        which = found(path)
        opened = connect(path)
        try:
            if _locked(opened, path, which) and _current(opened, path):
                _set_up(opened, path, sync)
                return opened, which
        except FAILURES as error:
            opened.close()
            raise _explained(error, path) from error
        except BaseException:
            opened.close()
            raise
        opened.close()
    raise StoreError(f"{path} cannot be opened: it is being replaced again and again")


def _locked(opened: sqlite3.Connection, path: Path, which: Identity) -> bool:
    """Take the lock for good; false where another file has taken its place while we waited for it."""
    opened.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    opened.execute("BEGIN EXCLUSIVE")
    opened.execute("ROLLBACK")
    return identity(path) == which


def _current(opened: sqlite3.Connection, path: Path) -> bool:
    """Whether the layout is this version's; an older one is upgraded, and is to be opened again."""
    version = schema.version(opened, path)
    if version not in (0, schema.VERSION):
        schema.upgrade(opened, path, version)
        return False
    if version == 0:
        _write_ahead(opened, path)
        schema.create(opened)
    return True


def _set_up(opened: sqlite3.Connection, path: Path, sync: str) -> None:
    _write_ahead(opened, path)
    opened.execute(f"PRAGMA synchronous = {sync}")
    for setting in SETTINGS:
        opened.execute(setting).fetchall()


def _write_ahead(opened: sqlite3.Connection, path: Path) -> None:
    (mode,) = opened.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path} cannot be opened: its file system has no write-ahead log (mode {mode})")


def _explained(error: BaseException, path: Path) -> StoreError:
    if is_busy(error):
        return refusal(path)
    return StoreError(f"{path} cannot be opened: {reason(error)}")
