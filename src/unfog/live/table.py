"""What is said to SQLite: the statements of the log, each a function of a connection."""

import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from unfog.inputs import InputError
from unfog.live.errors import StoreError
from unfog.live.schema import INSERT, Row, checksum, values

Statements: TypeAlias = Callable[[sqlite3.Connection], None]

FIELDS = "kind, decision, key, time, body, checksum FROM event"
REWRITING = "rewriting"


def state(connection: sqlite3.Connection) -> tuple[dict[str, int], int, float]:
    """The problems' numbers in the order of their first rows, the last row and its time."""
    names = {name: number for number, name in connection.execute("SELECT id, name FROM problem ORDER BY id")}
    found = connection.execute("SELECT seq, time FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    return names, *(found or (0, 0.0))


def write(
    connection: sqlite3.Connection,
    names: Mapping[str, int],
    batch: Sequence[Row],
    statements: Statements | None = None,
) -> dict[str, int]:
    """Rows and statements in one transaction; the problems' numbers with those that are new."""
    numbers = dict(names)
    connection.execute("BEGIN IMMEDIATE")
    for row in batch:
        if row.problem not in numbers:
            numbers[row.problem] = len(numbers) + 1
            connection.execute("INSERT INTO problem VALUES (?, ?)", (numbers[row.problem], row.problem))
    if batch:
        connection.executemany(INSERT, [values(row, numbers[row.problem]) for row in batch])
    if statements is not None:
        statements(connection)
    connection.execute("COMMIT")
    return numbers


def chunk(
    connection: sqlite3.Connection,
    names: Mapping[str, int],
    problem: str | None,
    after: int,
    upto: int,
    size: int,
) -> list[Row]:
    """The next rows, each held against its checksum, and all of them against their numbers."""
    if problem is None or len(names) == 1:
        by_number = {number: name for name, number in names.items()}
        said = f"SELECT seq, problem, {FIELDS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        found = connection.execute(said, (after, upto, size)).fetchall()
        rows = [_row(seq, by_number.get(number, ""), *rest) for seq, number, *rest in found]
        if len(rows) < min(size, upto - after) or rows[-1].seq != after + len(rows):
            raise sqlite3.DatabaseError(f"rows are missing after row {after}")
        return rows
    said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    return [_row(*row) for row in connection.execute(said, (problem, names[problem], after, upto, size))]


def _row(*fields: Any) -> Row:
    row = Row._make(fields[:7])
    if checksum(row) != fields[7]:
        raise sqlite3.DatabaseError(f"row {row.seq} is damaged")
    return row


def keyed(connection: sqlite3.Connection, names: Mapping[str, int], problem: str, key: str) -> Row | None:
    """The row with this key."""
    said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND key = ?"
    found = connection.execute(said, (problem, names.get(problem), key)).fetchone()
    return None if found is None else _row(*found)


def decided(
    connection: sqlite3.Connection, names: Mapping[str, int], problem: str, decision: str
) -> list[Row]:
    """The rows of one decision."""
    said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND decision = ? ORDER BY seq"
    return [_row(*row) for row in connection.execute(said, (problem, names.get(problem), decision))]


def check_same(connection: sqlite3.Connection, names: Mapping[str, int], rows: Sequence[Row]) -> None:
    """Refuse rows that differ in more than their keys and bodies from those that are there."""
    said = "SELECT 1 FROM event WHERE seq = ? AND problem = ? AND kind = ? AND decision IS ? AND time = ?"
    for row in rows:
        told = (row.seq, names.get(row.problem), row.kind, row.decision, row.time)
        if connection.execute(said, told).fetchone() is None:
            raise InputError("seq", row.seq, "a row that is there, with its problem, kind, decision and time")


def rewrite(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Put these keys and bodies in the place of those that are there, and note that the rest is to come."""
    said = "UPDATE event SET key = ?, body = ?, checksum = ? WHERE seq = ?"
    connection.executemany(said, [(row.key, row.body, checksum(row), row.seq) for row in rows])
    connection.execute("INSERT OR REPLACE INTO note VALUES (?)", (REWRITING,))


def rebuild(connection: sqlite3.Connection) -> None:
    """Leave nothing in the file but what its tables hold."""
    connection.execute("VACUUM")
    checkpoint(connection)
    connection.execute("DELETE FROM note WHERE name = ?", (REWRITING,))


def is_rewriting(connection: sqlite3.Connection) -> bool:
    """Whether a rewriting was cut short before the file was rebuilt."""
    return connection.execute("SELECT 1 FROM note WHERE name = ?", (REWRITING,)).fetchone() is not None


def checkpoint(connection: sqlite3.Connection) -> None:
    """Bring the write-ahead log into the file, and cut it to nothing."""
    (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StoreError("the write-ahead log could not be brought into the file")


def snapshot(connection: sqlite3.Connection, problem: str) -> tuple[int, str, bytes] | None:
    """The newest that is as it was written; it is a cache, so a damaged one is passed over."""
    said = "SELECT seq, fingerprint, blob, checksum FROM snapshot WHERE problem = ? ORDER BY seq DESC"
    for seq, fingerprint, blob, told in connection.execute(said, (problem,)):
        if _sum(problem, seq, fingerprint, blob) == told:
            return seq, fingerprint, blob
    return None


def keep(connection: sqlite3.Connection, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
    """One more snapshot; all but the two newest go."""
    told = _sum(problem, seq, fingerprint, blob)
    connection.execute(
        "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)", (problem, seq, fingerprint, blob, told)
    )
    older = "SELECT seq FROM snapshot WHERE problem = ? ORDER BY seq DESC LIMIT 1 OFFSET 1"
    connection.execute(f"DELETE FROM snapshot WHERE problem = ? AND seq < ({older})", (problem, problem))


def discard(connection: sqlite3.Connection, problem: str) -> None:
    """No snapshots of this problem."""
    connection.execute("DELETE FROM snapshot WHERE problem = ?", (problem,))


def _sum(problem: str, seq: int, fingerprint: str, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(f"{problem} {seq} {fingerprint}".encode()))
