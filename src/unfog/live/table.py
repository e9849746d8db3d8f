"""What is said to SQLite: the statements of the log, each a function of a connection."""

import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from unfog.live.place import Change, Contents, Row, Tail, checksum, numbered
from unfog.live.schema import INSERT, NAME
from unfog.validation import InputError

FIELDS = "kind, decision, key, time, body, before, checksum FROM event"
REWRITING = "rewriting"


def contents(connection: sqlite3.Connection) -> Contents:
    """What the file holds."""
    tails = {}
    for number, name in connection.execute("SELECT id, name FROM problem ORDER BY id").fetchall():
        said = "SELECT max(seq) FROM event INDEXED BY event_problem WHERE problem = ?"
        (last,) = connection.execute(said, (number,)).fetchone()
        when = connection.execute("SELECT time FROM event WHERE seq = ?", (last or 0,)).fetchone()
        tails[name] = Tail(number, last or 0, *(when or (0.0,)))
    (seq,) = connection.execute("SELECT max(seq) FROM event").fetchone()
    seq, times = seq or 0, [tail.time for tail in tails.values()]
    floats = all(isinstance(time, float) for time in times)
    if not floats or seq != max((tail.last for tail in tails.values()), default=0):
        raise sqlite3.DatabaseError(f"rows are missing after row {seq}, or their index is damaged")
    noted = connection.execute("SELECT 1 FROM note WHERE name = ?", (REWRITING,)).fetchone()
    return Contents(tails, seq, max(times, default=0.0), noted is not None)


def write(
    connection: sqlite3.Connection,
    tails: Mapping[str, Tail],
    batch: Sequence[Row],
    change: Change | None = None,
) -> dict[str, Tail]:
    """Rows and a change in one transaction; the problems as they are then."""
    grown = dict(tails)
    connection.execute("BEGIN IMMEDIATE")
    if batch:
        connection.executemany(INSERT, list(numbered(batch, grown)))
    for name in list(grown)[len(tails) :]:
        connection.execute(NAME, (grown[name].number, name))
    if change is not None:
        change()
    connection.execute("COMMIT")
    return grown


def chunk(
    connection: sqlite3.Connection, tails: Mapping[str, Tail], after: int, upto: int, size: int
) -> list[Row]:
    """The next rows of all problems, each held against its checksum, all of them against their numbers."""
    names = {tail.number: name for name, tail in tails.items()}
    said = f"SELECT seq, problem, {FIELDS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    found = connection.execute(said, (after, upto, size)).fetchall()
    rows = [_row(seq, names.get(number, ""), *rest) for seq, number, *rest in found]
    if len(rows) != min(size, upto - after) or rows[-1].seq != after + len(rows):
        raise sqlite3.DatabaseError(f"rows are missing after row {after}")
    return rows


def chunk_of(
    connection: sqlite3.Connection, problem: str, tail: Tail, after: int, upto: int, size: int
) -> list[Row]:
    """The next rows of one problem, each held against its checksum and the one before it."""
    said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    found = connection.execute(said, (problem, tail.number, after, upto, size)).fetchall()
    rows = [_row(*row) for row in found]
    last = after
    for seq, before in ((row[0], row[7]) for row in found):
        if before != last and not before < after == last:  # a row before `after` was not asked for
            raise sqlite3.DatabaseError(f"rows are missing after row {last}")
        last = seq
    if len(found) < size and last < tail.last <= upto:
        raise sqlite3.DatabaseError(f"rows are missing after row {last}")
    return rows


def _row(*fields: Any) -> Row:
    row = Row._make(fields[:7])
    try:
        whole = checksum(row, fields[7]) == fields[8]
    except (TypeError, ValueError):  # a page of zeros reads as a row of nothing
        whole = False
    if not whole:
        raise sqlite3.DatabaseError(f"row {row.seq} is damaged")
    return row


def keyed(connection: sqlite3.Connection, problem: str, tail: Tail, key: str) -> Row | None:
    """The row with this key."""
    said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND key = ?"
    found = connection.execute(said, (problem, tail.number, key)).fetchone()
    return None if found is None else _row(*found)


def decided(connection: sqlite3.Connection, problem: str, tail: Tail, decision: str) -> list[Row]:
    """The rows of one decision."""
    said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND decision = ? ORDER BY seq"
    return [_row(*row) for row in connection.execute(said, (problem, tail.number, decision))]


def befores(connection: sqlite3.Connection, tails: Mapping[str, Tail], rows: Sequence[Row]) -> list[int]:
    """The rows before these in their problems; refused where they differ in more than keys and bodies."""
    said = (
        "SELECT before FROM event WHERE seq = ? AND problem = ? AND kind = ? AND decision IS ? AND time = ?"
    )
    found = []
    for row in rows:
        number = tails[row.problem].number if row.problem in tails else None
        there = connection.execute(said, (row.seq, number, row.kind, row.decision, row.time)).fetchone()
        if there is None:
            raise InputError("seq", row.seq, "a row that is there, with its problem, kind, decision and time")
        found.append(there[0])
    return found


def rewrite(connection: sqlite3.Connection, rows: Sequence[Row], befores: Sequence[int]) -> None:
    """Put these keys and bodies in the place of those that are there, and note that the rest is to come."""
    said = "UPDATE event SET key = ?, body = ?, checksum = ? WHERE seq = ?"
    pairs = zip(rows, befores, strict=True)
    connection.executemany(said, [(row.key, row.body, checksum(row, at), row.seq) for row, at in pairs])
    connection.execute("INSERT OR REPLACE INTO note VALUES (?)", (REWRITING,))


def rebuild(connection: sqlite3.Connection) -> None:
    """Leave nothing in the file but what its tables hold."""
    connection.execute("VACUUM")
    checkpoint(connection)
    connection.execute("DELETE FROM note WHERE name = ?", (REWRITING,))


def checkpoint(connection: sqlite3.Connection) -> None:
    """Bring the write-ahead log into the file, and cut it to nothing."""
    (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("the write-ahead log could not be brought into the file")


def snapshot(connection: sqlite3.Connection, problem: str) -> tuple[int, str, bytes] | None:
    """The newest that is as it was written; it is a cache, so a damaged one is passed over."""
    said = "SELECT seq, fingerprint, blob, checksum FROM snapshot WHERE problem = ? ORDER BY seq DESC"
    for seq, fingerprint, blob, told in connection.execute(said, (problem,)):
        if isinstance(blob, bytes) and _sum(problem, seq, fingerprint, blob) == told:
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
