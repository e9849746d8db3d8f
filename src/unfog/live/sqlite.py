"""The SQLite backend of a log: one file, its connection, and the SQL statements.

The connection may be opened again after a failure. A forked child does not touch it. live/sqlite_file.py
opens the file for this process alone.
"""

import contextlib
import ctypes
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any

from unfog import _io
from unfog.live import sqlite_file
from unfog.live.backend import Change, Contents, Pause, Row, Tail, checksum, snapshot_checksum
from unfog.live.errors import ConflictError, StoreError
from unfog.live.sqlite_file import FAILURES, Holder, reason
from unfog.validation import InputError, one_of

INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
FIELDS = "kind, decision, key, time, body, before, checksum FROM event"
REWRITING = "rewriting"
NOBODY = Tail(0, 0)  # a problem that has no rows
PAGES = 256  # that a backup copies in one step: a megabyte
REST = 0.001  # seconds between these steps, so that threads that wait for the lock get it


class SqliteBackend:
    """A file that this process holds: see `Backend` of live/backend.py.

    Each row stores the number of the row before it in its problem. If an index has lost a row, the next one
    shows it.
    """

    failures: tuple[type[BaseException], ...] = FAILURES
    only = None
    is_durable = True
    first_decision = 0

    def __init__(
        self, path: object, sync: str = "full", *, connect: sqlite_file.Connect = sqlite_file.plain
    ) -> None:
        """Claim a path. `sync`: "full" survives a power cut, "normal" a killed process."""
        self.sync = one_of("sync", sync, sqlite_file.SYNC)
        self.path = sqlite_file.place(path)
        self.name, self.label = self.path.name, str(self.path)
        self.holder = Holder(self.path)
        self.pid = self.holder.pid
        self.tails: Mapping[str, Tail] = {}
        self.connection: sqlite3.Connection | None = None
        self._connect = connect
        self._log_path = f"{self.path}-wal"
        self._identity: sqlite_file.Identity | None = None  # of the file, once it was opened
        self._log_identity: sqlite_file.Identity | None = None  # of its write-ahead log

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self.connection is not None

    @property
    def alone(self) -> sqlite3.Connection:
        """The connection, which must be open."""
        assert self.connection is not None
        return self.connection

    def reason(self, error: BaseException) -> str:
        """Why it failed, with the message of SQLite or the system."""
        return reason(error)

    def open(self) -> Contents:
        """Open the file, and report what it contains."""
        try:
            if self._identity is not None and self._identity != sqlite_file.identity(self.path):
                raise StoreError(f"{self.path} was moved or taken away while it was open")
            self.connection, self._identity = sqlite_file.connection(self.path, self.sync, self._connect)
            try:
                # Rows left in the write-ahead log by a killed process or a failed fsync can be read, but may
                # not be on the disk. After a checkpoint they are.
                self._checkpoint()
                contents = self._read_contents()
            except BaseException:
                self.close_connection()
                raise
        except (*FAILURES, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {reason(error)}") from error
        self._log_identity = sqlite_file.identity(self._log_path)
        self.holder.announce()
        return contents

    def _read_contents(self) -> Contents:
        tails = {}
        for number, name in self.alone.execute("SELECT id, name FROM problem ORDER BY id").fetchall():
            sql = "SELECT max(seq) FROM event INDEXED BY event_problem WHERE problem = ?"
            (last,) = self.alone.execute(sql, (number,)).fetchone()
            newest = self.alone.execute("SELECT time FROM event WHERE seq = ?", (last or 0,)).fetchone()
            tails[name] = Tail(number, last or 0, *(newest or (0.0,)))
        (seq,) = self.alone.execute("SELECT max(seq) FROM event").fetchone()
        seq, floats = seq or 0, all(isinstance(tail.time, float) for tail in tails.values())
        if not floats or seq != max((tail.last for tail in tails.values()), default=0):
            raise sqlite3.DatabaseError(f"rows are missing after row {seq}, or their index is damaged")
        noted = self.alone.execute("SELECT 1 FROM note WHERE name = ?", (REWRITING,)).fetchone()
        self.tails = tails
        return Contents(seq, noted is not None)

    def _checkpoint(self) -> None:
        """Copy the write-ahead log into the file, and truncate it."""
        (busy, _, _) = self.alone.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("the write-ahead log could not be brought into the file")

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:
        """Write rows and a change in one transaction."""
        self._check_not_moved()
        connection, tails = self.alone, dict(self.tails)
        connection.execute("BEGIN IMMEDIATE")
        if rows:
            connection.executemany(INSERT, [_encode_row(row, tails) for row in rows])
        for name in list(tails)[len(self.tails) :]:
            connection.execute("INSERT INTO problem VALUES (?, ?)", (tails[name].number, name))
        if change is not None:
            change()
        connection.execute("COMMIT")
        self.tails = tails

    def read(self, problem: str | None, after: int, upto: int, size: int) -> list[Row]:
        """The next rows, after checking each against its checksum and that none is missing."""
        if problem is None or [problem] == list(self.tails):
            return self._read_all(after, upto, size)
        sql = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        tail = self.tails.get(problem, NOBODY)
        records = self.alone.execute(sql, (problem, tail.number, after, upto, size)).fetchall()
        rows = [_decode_row(*row) for row in records]
        last = after
        for seq, before in ((row[0], row[7]) for row in records):
            # Of the first row, the one before it may be at or before `after`, and was not read.
            if before != last and not before < after == last:
                raise sqlite3.DatabaseError(f"rows are missing after row {last}")
            last = seq
        if len(records) < size and last < tail.last <= upto:
            raise sqlite3.DatabaseError(f"rows are missing after row {last}")
        return rows

    def _read_all(self, after: int, upto: int, size: int) -> list[Row]:
        names = {tail.number: name for name, tail in self.tails.items()}
        sql = f"SELECT seq, problem, {FIELDS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        records = self.alone.execute(sql, (after, upto, size)).fetchall()
        rows = [_decode_row(seq, names.get(number, ""), *rest) for seq, number, *rest in records]
        if len(rows) != min(size, upto - after) or rows[-1].seq != after + len(rows):
            raise sqlite3.DatabaseError(f"rows are missing after row {after}")
        return rows

    def keyed(self, problem: str, key: str) -> Row | None:
        """The row with this key."""
        sql = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND key = ?"
        number = self.tails.get(problem, NOBODY).number
        record = self.alone.execute(sql, (problem, number, key)).fetchone()
        return None if record is None else _decode_row(*record)

    def decided(self, problem: str, decision: str) -> list[Row]:
        """The rows of one decision."""
        sql = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND decision = ? ORDER BY seq"
        number = self.tails.get(problem, NOBODY).number
        return [_decode_row(*row) for row in self.alone.execute(sql, (problem, number, decision))]

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest undamaged snapshot; damaged ones are skipped, since it is only a cache."""
        sql = "SELECT seq, snapshot_key, blob, checksum FROM snapshot WHERE problem = ? ORDER BY seq DESC"
        for seq, snapshot_key, blob, crc in self.alone.execute(sql, (problem,)):
            if isinstance(blob, bytes) and snapshot_checksum(problem, seq, snapshot_key, blob) == crc:
                return seq, snapshot_key, blob
        return None

    def keep(self, problem: str, seq: int, snapshot_key: str, blob: bytes) -> None:
        """Store a snapshot, and delete all but the two newest."""
        crc = snapshot_checksum(problem, seq, snapshot_key, blob)
        self.alone.execute(
            "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)", (problem, seq, snapshot_key, blob, crc)
        )
        older = "SELECT seq FROM snapshot WHERE problem = ? ORDER BY seq DESC LIMIT 1 OFFSET 1"
        self.alone.execute(f"DELETE FROM snapshot WHERE problem = ? AND seq < ({older})", (problem, problem))

    def discard(self, problem: str) -> None:
        """Delete the snapshots of this problem."""
        self.alone.execute("DELETE FROM snapshot WHERE problem = ?", (problem,))

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the keys and bodies of these rows, and note that a `rebuild` must follow."""
        for row in rows:
            sql = "SELECT before FROM event WHERE seq = ?"
            (before,) = self.alone.execute(sql, (row.seq,)).fetchone()
            sql = "UPDATE event SET key = ?, body = ?, checksum = ? WHERE seq = ?"
            self.alone.execute(sql, (row.key, row.body, checksum(row, before), row.seq))
        self.alone.execute("INSERT OR REPLACE INTO note VALUES (?)", (REWRITING,))

    def rebuild(self) -> None:
        """Remove from the file whatever is not in its tables."""
        self.alone.execute("VACUUM")
        self._checkpoint()
        self.alone.execute("DELETE FROM note WHERE name = ?", (REWRITING,))

    def backup(self, path: object, pause: Pause) -> None:
        """Copy the file while other threads write: the copy appears complete, or not at all.

        SQLite copies some pages at a time. It also applies later changes to pages that it has copied already,
        so that the copy is the store at the time of the last step.
        """
        source, target = self.alone, sqlite_file.place(path)
        exists = ConflictError("path", str(target), "a file that does not exist yet")
        if not target.parent.is_dir():
            raise InputError("path", str(target), "a file in a folder that is there")
        if target.exists():
            raise exists

        def rest(*_: int) -> None:
            with pause():
                time.sleep(REST)
            if self.connection is not source:
                raise StoreError("the store failed meanwhile and was opened again")

        try:
            with _io.temporary_file(target) as temporary:
                with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
                    source.backup(copy, pages=PAGES, progress=rest, sleep=0)
                _io.publish(temporary, target)
        except FileExistsError:
            raise exists from None
        except (*FAILURES, OSError, StoreError) as error:
            raise StoreError(f"there is no copy at {target}: {reason(error)}") from error

    def announce(self, url: str | None) -> None:
        """Publish the address at which other processes can reach this store."""
        self.holder.url = url
        self.holder.announce()

    def _check_not_moved(self) -> None:
        """Raise StoreError if the file was moved: rows written to it would be lost."""
        for path, identity in ((self.label, self._identity), (self._log_path, self._log_identity)):
            if sqlite_file.identity(path) != identity:
                raise StoreError(f"{path} was moved or taken away while it was open")

    def close_connection(self) -> None:
        """Close the connection, and with it the lock; the path stays claimed within this process."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(*FAILURES):  # what counts is what is in the file
                connection.close()

    def close(self) -> None:
        """Close the file, so that others can open it."""
        if self.connection is not None:
            self.holder.release()  # while this process still has the lock
        self.holder.forget()
        self.close_connection()

    def leave_to_parent(self) -> None:
        """After a fork, do not even close the connection in the child: that would destroy the parent's log.

        SQLite would take the lock for the child's, and on closing remove the write-ahead log that the parent
        still uses. So the connection is kept from ever being garbage-collected.
        """
        if self.connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        self.connection = None


def _encode_row(row: Row, tails: dict[str, Tail]) -> tuple[object, ...]:
    """The fields of a row as they are stored, with the row before it in its problem; updates `tails`."""
    number, before, _ = tails.get(row.problem, Tail(len(tails) + 1, 0))
    tails[row.problem] = Tail(number, row.seq, row.time)
    fields = row.seq, number, row.kind, row.decision, row.key, float(row.time), row.body
    return *fields, before, checksum(row, before)


def _decode_row(*fields: Any) -> Row:
    """A row from its stored fields; DatabaseError if it is damaged."""
    row = Row._make(fields[:7])
    try:
        is_intact = checksum(row, fields[7]) == fields[8]
    except (TypeError, ValueError):  # a page of zeros reads as a row of NULL
        is_intact = False
    if not is_intact:
        raise sqlite3.DatabaseError(f"row {row.seq} is damaged")
    return row
