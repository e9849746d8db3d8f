"""The tables of a store, their version, and the way from an older version to this one.

    version 1   the name of the problem stood in each row, there was no index on decisions and no checksum
    version 2   problems have a number; a checksum for each row; an index on decisions; notes of work undone

An older file is read row by row into a new one beside it, which then takes its place by a rename: whoever
looks finds the old file or the new one, whole. Snapshots are caches and do not travel.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from unfog._io import PRIVATE
from unfog.live.errors import FAILURES, StoreError, reason
from unfog.live.place import Row, Tail, numbered

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
NAME = "INSERT INTO problem VALUES (?, ?)"
INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the layout; 0 for a file in which nothing is yet. Others' files are refused."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not owner and not found:
        return 0
    if owner != APPLICATION or found < 1:
        raise StoreError(
            f"{path} is a database of another program (application id {owner:#x}); "
            "allowed: a store of unfog, or a file that does not exist yet"
        )
    if found > VERSION:
        raise StoreError(
            f"{path} has version {found}, written by a newer unfog; allowed: versions 1 to {VERSION}; "
            "install a newer unfog to open it"
        )
    return int(found)


def create(connection: sqlite3.Connection) -> None:
    """All tables in one transaction, so that a file has all of them or none."""
    connection.execute("BEGIN IMMEDIATE")
    _lay_out(connection)
    connection.execute("COMMIT")


def _lay_out(connection: sqlite3.Connection) -> None:
    for table in TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def upgrade(connection: sqlite3.Connection, path: Path, found: int) -> None:
    """Put a file of this version in the place of an older one, whose lock `connection` holds."""
    copy = path.with_name(f"{path.name}-upgrade")
    try:
        copy.unlink(missing_ok=True)
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        # Events that are still in the old file's write-ahead log belong into the file: SQLite would apply
        # a log that lies beside the new file to the new file.
        connection.execute("PRAGMA journal_mode = DELETE")
        _copied(READERS[found](connection), copy)
        os.chmod(copy, stat.S_IMODE(path.stat().st_mode))
        synced(copy)
        os.replace(copy, path)
        synced(path.parent)
    except (*FAILURES, OSError) as error:
        copy.unlink(missing_ok=True)
        said = f"could not be brought from version {found} to version {VERSION}"
        raise StoreError(f"{path} {said}: {reason(error)}; the file is as it was") from error


def _copied(rows: Iterator[Row], copy: Path) -> None:
    connection = sqlite3.connect(copy, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # whoever is interrupted starts again
        connection.execute("BEGIN EXCLUSIVE")
        _lay_out(connection)
        tails: dict[str, Tail] = {}
        connection.executemany(INSERT, numbered(rows, tails))
        connection.executemany(NAME, [(tail.number, name) for name, tail in tails.items()])
        connection.execute("COMMIT")
    finally:
        connection.close()


def synced(path: Path) -> None:
    """What was written to a file, or renamed in a folder, is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rows_of_1(connection: sqlite3.Connection) -> Iterator[Row]:
    names = "seq, problem, kind, decision, key, time, body"
    return map(Row._make, connection.execute(f"SELECT {names} FROM event ORDER BY seq"))


READERS: dict[int, Callable[[sqlite3.Connection], Iterator[Row]]] = {1: _rows_of_1}
