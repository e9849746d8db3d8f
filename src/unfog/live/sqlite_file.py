"""A store file: opened by one process at a time, its tables and their version, and its lock file.

Opening a path locks the file, checks its version, and applies the settings. With the write-ahead log and an
exclusive lock no shared memory file is needed, and no second connection can ever write or checkpoint.

The lock that SQLite takes on the file decides which process holds the store. A small file beside it
(`Holder`) only says which one that is, for the error that a second process gets. A process that is killed
leaves this file behind, which does no harm; if it could not be written, the error names no process. Within
one process a list of open stores is checked first, and the file is opened through SQLite alone: POSIX locks
belong to the process, so opening and closing a file that this process has locked would drop the lock.
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
from unfog.live import errors
from unfog.live.errors import StoreError, StoreLockedError
from unfog.validation import InputError

APPLICATION = 0x756E666F  # "unfo", at byte 68 of the file
VERSION = 3

TABLES = (
    "CREATE TABLE problem (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE event (seq INTEGER PRIMARY KEY, problem INTEGER NOT NULL, kind TEXT NOT NULL, "
    "decision TEXT, key TEXT, time REAL NOT NULL, body TEXT NOT NULL,"
    " before INTEGER NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE INDEX event_problem ON event (problem)",
    "CREATE UNIQUE INDEX event_key ON event (problem, key) WHERE key IS NOT NULL",
    "CREATE INDEX event_decision ON event (problem, decision) WHERE decision IS NOT NULL",
    "CREATE TABLE snapshot (problem TEXT NOT NULL, seq INTEGER NOT NULL, snapshot_key TEXT NOT NULL,"
    " blob BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (problem, seq))",
    "CREATE TABLE note (name TEXT PRIMARY KEY)",
)

SYNC = ("full", "normal")
PATIENCE = 0.1  # seconds to wait for the lock: two processes that open at once would otherwise both fail

SETTINGS = (
    "PRAGMA secure_delete = ON",
    "PRAGMA wal_autocheckpoint = 2000",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA cache_size = -16384",
    "PRAGMA cell_size_check = ON",
    "PRAGMA trusted_schema = OFF",
)

SENTENCES = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_NOTADB: "it is no store of unfog",
    sqlite3.SQLITE_READONLY: "the file may not be written",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_PERM: "the file may not be opened",
    sqlite3.SQLITE_TOOBIG: "a text is too long",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
}

# What SQLite may raise. In messages about a damaged file it quotes bytes, which may be no valid text.
FAILURES = (sqlite3.Error, UnicodeError)

Connect: TypeAlias = Callable[[Path], sqlite3.Connection]
Identity: TypeAlias = tuple[int, int]  # device and inode
_open: "WeakValueDictionary[Path, Holder]" = WeakValueDictionary()
_guard = threading.Lock()


def plain(path: Path) -> sqlite3.Connection:
    """A connection without implicit transactions, to be used under a lock from any thread."""
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def place(path: object) -> Path:
    """The resolved path of a store: files beside it must lie beside the file itself, not beside a link."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError("path", path, "the name of a file")
    return Path(path).expanduser().resolve()


def identity(path: str | Path) -> Identity | None:
    """Device and inode of a file; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def ensure_file(path: Path) -> Identity:
    """Create the file if there is none, and check what can be checked without opening it; its identity."""
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
    """Open a store file, created if there is none: checked, locked and set up. With its identity."""
    for _ in range(5):
        which = ensure_file(path)
        conn = connect(path)
        try:
            if _take_lock(conn, path, which):
                _set_up(conn, path, sync)
                return conn, which
        except FAILURES as error:
            conn.close()
            raise _explain(error, path) from error
        except BaseException:
            conn.close()
            raise
        conn.close()
    raise StoreError(f"{path} cannot be opened: it is being replaced again and again")


def _take_lock(connection: sqlite3.Connection, path: Path, which: Identity) -> bool:
    """Take the lock; False if the path was given to another file while this waited."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("ROLLBACK")
    return identity(path) == which


def _set_up(connection: sqlite3.Connection, path: Path, sync: str) -> None:
    """Check the version, create the tables of a new file, and apply the settings."""
    empty = is_empty(connection, path)
    _enable_write_ahead_log(connection, path)
    if empty:
        create(connection)
    connection.execute(f"PRAGMA synchronous = {sync}")
    for setting in SETTINGS:
        connection.execute(setting).fetchall()


def _enable_write_ahead_log(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path} cannot be opened: its file system has no write-ahead log (mode {mode})")


def _explain(error: BaseException, path: Path) -> StoreError:
    """The StoreError to raise for an error of SQLite while opening."""
    if is_busy(error):
        return refusal(path)
    return StoreError(f"{path} cannot be opened: {reason(error)}")


class Holder:
    """A store that this process holds, and the file that says so."""

    def __init__(self, path: Path) -> None:
        """Claim the path within this process; `announce` writes the file once SQLite has the lock."""
        self.path = path
        self.pid = os.getpid()
        self.since = time.time()
        self.url: str | None = None
        with _guard:
            if path in _open and _open[path].pid == self.pid:
                raise StoreLockedError(f"{path.name} is held by this process already; close it first")
            _open[path] = self

    def announce(self) -> None:
        """Write which process holds the store, and where it can be reached."""
        content = {"pid": self.pid, "since": self.since, "url": self.url}
        with contextlib.suppress(OSError):  # with a full disk the store can still be read
            beside(self.path).write_text(json.dumps(content), "utf-8")

    def release(self) -> None:
        """Remove the file and release the path while the lock lasts: later the file may be another's."""
        with contextlib.suppress(OSError):
            beside(self.path).unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        """Release the path within this process, but leave the file, which may be another's."""
        with _guard:
            if _open.get(self.path) is self:
                del _open[self.path]


def beside(path: Path) -> Path:
    """The file that says which process holds a store."""
    return path.with_name(f"{path.name}-holder")


def refusal(path: Path) -> StoreLockedError:
    """The error for a second process that opens the store."""
    info = _read_lock_file(path)
    if info is None:
        return StoreLockedError(f"{path.name} is held by another process; close it there first")
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(info["since"]))
    owner = f"process {info['pid']} since {since}"
    ask = f"it can be reached at {info['url']}: ask it there with --url {info['url']}"
    return StoreLockedError(
        f"{path.name} is held by {owner}; {ask if info['url'] else 'close it there first'}"
    )


def _read_lock_file(path: Path) -> dict[str, Any] | None:
    """The content of the file; None if it is missing or not completely written."""
    try:
        content: dict[str, Any] = json.loads(beside(path).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether a file has no tables yet; StoreError if it is not a store of this version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not owner and not version:
        return True
    if owner != APPLICATION or version < 1:
        raise StoreError(
            f"{path} is a database of another program (application id {owner:#x}); "
            "allowed: a store of unfog, or a file that does not exist yet"
        )
    if version != VERSION:
        writer = "a newer unfog" if version > VERSION else "unfog 0.2 or older"
        raise StoreError(
            f"{path} has version {version}, written by {writer}; allowed: version {VERSION}; "
            "open it with the unfog that wrote it"
        )
    return False


def create(connection: sqlite3.Connection) -> None:
    """Create all tables in one transaction, so that a file has all of them or none."""
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def reason(error: BaseException) -> str:
    """Why it failed, as part of a sentence for users, with the message of SQLite or the system."""
    if isinstance(error, sqlite3.Error):
        code = vars(error).get("sqlite_errorcode", 0) & 0xFF  # the low byte is the kind, the rest its detail
        message = f"SQLite says: {error}"
        return f"{SENTENCES[code]} ({message})" if code in SENTENCES else message
    if isinstance(error, UnicodeError):
        return "the file is damaged (what should be text is not)"
    return errors.reason(error)


def is_busy(error: BaseException) -> bool:
    """Whether another connection has the lock."""
    code = vars(error).get("sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
