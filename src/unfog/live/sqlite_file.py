"""A store file: opened by one process alone, its tables and their version, and its lock file.

Opening a path locks the file, checks its version, and applies the settings. With the write-ahead log and an
exclusive lock no shared memory file is needed, and no second connection can ever write or checkpoint.

The lock that SQLite takes on the file decides who holds the store. A small file beside it (`Holder`) only
says who that is, for the message to a second opener. A holder that was killed leaves this file behind, which
does no harm; if it could not be written, the message names nobody. Within one process a list of open stores
is checked first, and nothing here opens the file other than through SQLite: POSIX locks belong to the
process, so opening and closing a file that this process has locked would drop the lock.
"""

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from unfog._io import PRIVATE
from unfog.live.errors import FAILURES, Held, StoreError, is_busy, reason
from unfog.validation import InputError

APPLICATION = 0x756E666F  # "unfo", at byte 68 of the file
VERSION = 2
LAST = 2**63 - 1  # the largest number that a row can have

TABLES = (
    "CREATE TABLE problem (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE event (seq INTEGER PRIMARY KEY, problem INTEGER NOT NULL, kind TEXT NOT NULL, "
    "decision TEXT, key TEXT, time REAL NOT NULL, body TEXT NOT NULL,"
    " before INTEGER NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE INDEX event_problem ON event (problem)",
    "CREATE UNIQUE INDEX event_key ON event (problem, key) WHERE key IS NOT NULL",
    "CREATE INDEX event_decision ON event (problem, decision) WHERE decision IS NOT NULL",
    "CREATE TABLE snapshot (problem TEXT NOT NULL, seq INTEGER NOT NULL, fingerprint TEXT NOT NULL,"
    " blob BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (problem, seq))",
    "CREATE TABLE note (name TEXT PRIMARY KEY)",
)

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

Connect: TypeAlias = Callable[[Path], sqlite3.Connection]
Identity: TypeAlias = tuple[int, int]  # device and inode
_open: "WeakValueDictionary[Path, Holder]" = WeakValueDictionary()
_guard = threading.Lock()


def plain(path: Path) -> sqlite3.Connection:
    """A connection without implicit transactions, to be used under a lock from any thread."""
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def place(path: object) -> Path:
    """Where the store is, links followed: what lies beside it is to lie beside the file itself."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError("path", path, "the name of a file")
    return Path(path).expanduser().resolve()


def identity(path: str | Path) -> Identity | None:
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
            if _locked(opened, path, which):
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


def _set_up(opened: sqlite3.Connection, path: Path, sync: str) -> None:
    empty = is_empty(opened, path)
    _write_ahead(opened, path)
    if empty:
        create(opened)
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


class Holder:
    """One store, held by this process."""

    def __init__(self, path: Path) -> None:
        """Claim the path within this process; the file is written by `announce`, once the lock is there."""
        self.path = path
        self.pid = os.getpid()
        self.since = time.time()
        self.url: str | None = None
        with _guard:
            if path in _open and _open[path].pid == self.pid:
                raise Held(f"{path.name} is held by this process already; close it first")
            _open[path] = self

    def announce(self) -> None:
        """Say who holds the store, and where it can be reached."""
        said = {"pid": self.pid, "since": self.since, "url": self.url}
        with contextlib.suppress(OSError):  # a full disk must not keep anybody from reading the store
            beside(self.path).write_text(json.dumps(said), "utf-8")

    def release(self) -> None:
        """Give the path back, while the lock is still there: later the file may be the next holder's."""
        with contextlib.suppress(OSError):
            beside(self.path).unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Give the path back within this process; what lies beside the store is not ours."""
        with _guard:
            if _open.get(self.path) is self:
                del _open[self.path]


def beside(path: Path) -> Path:
    """Where it is said who holds a store."""
    return path.with_name(f"{path.name}-holder")


def refusal(path: Path) -> Held:
    """The sentence for a second opener."""
    said = _said(path)
    if said is None:
        return Held(f"{path.name} is held by another process; close it there first")
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(said["since"]))
    who = f"process {said['pid']} since {since}"
    ask = f"it can be reached at {said['url']}: ask it there with --url {said['url']}"
    return Held(f"{path.name} is held by {who}; {ask if said['url'] else 'close it there first'}")


def _said(path: Path) -> dict[str, Any] | None:
    """What the file says, if it is there, and written whole by now."""
    try:
        said: dict[str, Any] = json.loads(beside(path).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return said


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether there is nothing in a file yet. What is no store of this version is refused."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not owner and not found:
        return True
    if owner != APPLICATION or found < 1:
        raise StoreError(
            f"{path} is a database of another program (application id {owner:#x}); "
            "allowed: a store of unfog, or a file that does not exist yet"
        )
    if found != VERSION:
        age = "a newer" if found > VERSION else "an older"
        raise StoreError(
            f"{path} has version {found}, written by {age} unfog; allowed: version {VERSION}; "
            "open it with the unfog that wrote it"
        )
    return False


def create(connection: sqlite3.Connection) -> None:
    """All tables in one transaction, so that a file has all of them or none."""
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
