"""The SQLite backend of a log: one file, its connection, and the SQL statements.

The connection may be opened again after a failure. A forked child leaves it alone. live/sqlite_file.py opens
the file for this process alone.
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
from unfog.live.errors import FAILURES, Conflict, StoreError, reason
from unfog.live.sqlite_file import Holder
from unfog.validation import InputError, one_of

INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
FIELDS = "kind, decision, key, time, body, before, checksum FROM event"
REWRITING = "rewriting"
NOBODY = Tail(0, 0)  # a problem that has no rows
PAGES = 256  # that a copy takes in a step: a megabyte
REST = 0.001  # seconds between such steps: without them those who wait for the lock would not get it


class SqliteBackend:
    """A file that this process holds: see `Backend` of live/backend.py.

    Each row has the number of the one before it in its problem. That shows a row that an index has lost: the
    next one does not fit.
    """

    failures: tuple[type[BaseException], ...] = FAILURES
    only = None

    def __init__(
        self, path: object, sync: str = "full", *, connect: sqlite_file.Connect = sqlite_file.plain
    ) -> None:
        """Hold a path. `sync`: "full" outlives a power cut, "normal" a killed process."""
        self.sync = one_of("sync", sync, sqlite_file.SYNC)
        self.path = sqlite_file.place(path)
        self.name, self.label = self.path.name, str(self.path)
        self.holder = Holder(self.path)
        self.pid = self.holder.pid
        self.tails: Mapping[str, Tail] = {}
        self.connection: sqlite3.Connection | None = None
        self._connect = connect
        self._log_path = f"{self.path}-wal"
        self._which: sqlite_file.Identity | None = None  # the file, from its first opening on
        self._log: sqlite_file.Identity | None = None  # its write-ahead log

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self.connection is not None

    @property
    def alone(self) -> sqlite3.Connection:
        """The connection, for whom it was opened."""
        assert self.connection is not None
        return self.connection

    def reason(self, error: BaseException) -> str:
        """What SQLite or the system said of it."""
        return reason(error)

    def open(self) -> Contents:
        """Open it, and what it holds."""
        try:
            if self._which is not None and self._which != sqlite_file.identity(self.path):
                raise StoreError(f"{self.path} was moved or taken away while it was open")
            self.connection, self._which = sqlite_file.connection(self.path, self.sync, self._connect)
            try:
                # What a holder that was killed, or an fsync that failed, left in the write-ahead log may not
                # be on the disk, though it can be read: a copy made anew is.
                self._checkpoint()
                contents = self._contents()
            except BaseException:
                self.close_connection()
                raise
        except (*FAILURES, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {reason(error)}") from error
        self._log = sqlite_file.identity(self._log_path)
        self.holder.announce()
        return contents

    def _contents(self) -> Contents:
        tails = {}
        for number, name in self.alone.execute("SELECT id, name FROM problem ORDER BY id").fetchall():
            said = "SELECT max(seq) FROM event INDEXED BY event_problem WHERE problem = ?"
            (last,) = self.alone.execute(said, (number,)).fetchone()
            when = self.alone.execute("SELECT time FROM event WHERE seq = ?", (last or 0,)).fetchone()
            tails[name] = Tail(number, last or 0, *(when or (0.0,)))
        (seq,) = self.alone.execute("SELECT max(seq) FROM event").fetchone()
        seq, floats = seq or 0, all(isinstance(tail.time, float) for tail in tails.values())
        if not floats or seq != max((tail.last for tail in tails.values()), default=0):
            raise sqlite3.DatabaseError(f"rows are missing after row {seq}, or their index is damaged")
        noted = self.alone.execute("SELECT 1 FROM note WHERE name = ?", (REWRITING,)).fetchone()
        self.tails = tails
        return Contents(seq, noted is not None)

    def _checkpoint(self) -> None:
        """Bring the write-ahead log into the file, and cut it to nothing."""
        (busy, _, _) = self.alone.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("the write-ahead log could not be brought into the file")

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:
        """Rows and a change in one transaction."""
        self._check_place()
        connection, tails = self.alone, dict(self.tails)
        connection.execute("BEGIN IMMEDIATE")
        if rows:
            connection.executemany(INSERT, [_stored(row, tails) for row in rows])
        for name in list(tails)[len(self.tails) :]:
            connection.execute("INSERT INTO problem VALUES (?, ?)", (tails[name].number, name))
        if change is not None:
            change()
        connection.execute("COMMIT")
        self.tails = tails

    def read(self, problem: str | None, after: int, upto: int, size: int) -> list[Row]:
        """The next rows, each held against its checksum, all of them against their numbers."""
        if problem is None or [problem] == list(self.tails):
            return self._read_all(after, upto, size)
        said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        tail = self.tails.get(problem, NOBODY)
        found = self.alone.execute(said, (problem, tail.number, after, upto, size)).fetchall()
        rows = [_row(*row) for row in found]
        last = after
        for seq, before in ((row[0], row[7]) for row in found):
            if before != last and not before < after == last:  # a row before `after` was not asked for
                raise sqlite3.DatabaseError(f"rows are missing after row {last}")
            last = seq
        if len(found) < size and last < tail.last <= upto:
            raise sqlite3.DatabaseError(f"rows are missing after row {last}")
        return rows

    def _read_all(self, after: int, upto: int, size: int) -> list[Row]:
        names = {tail.number: name for name, tail in self.tails.items()}
        said = f"SELECT seq, problem, {FIELDS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        found = self.alone.execute(said, (after, upto, size)).fetchall()
        rows = [_row(seq, names.get(number, ""), *rest) for seq, number, *rest in found]
        if len(rows) != min(size, upto - after) or rows[-1].seq != after + len(rows):
            raise sqlite3.DatabaseError(f"rows are missing after row {after}")
        return rows

    def keyed(self, problem: str, key: str) -> Row | None:
        """The row with this key."""
        said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND key = ?"
        number = self.tails.get(problem, NOBODY).number
        found = self.alone.execute(said, (problem, number, key)).fetchone()
        return None if found is None else _row(*found)

    def decided(self, problem: str, decision: str) -> list[Row]:
        """The rows of one decision."""
        said = f"SELECT seq, ?, {FIELDS} WHERE problem = ? AND decision = ? ORDER BY seq"
        number = self.tails.get(problem, NOBODY).number
        return [_row(*row) for row in self.alone.execute(said, (problem, number, decision))]

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is as it was written; it is a cache, so a damaged one is passed over."""
        said = "SELECT seq, fingerprint, blob, checksum FROM snapshot WHERE problem = ? ORDER BY seq DESC"
        for seq, fingerprint, blob, told in self.alone.execute(said, (problem,)):
            if isinstance(blob, bytes) and snapshot_checksum(problem, seq, fingerprint, blob) == told:
                return seq, fingerprint, blob
        return None

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot; all but the two newest go."""
        told = snapshot_checksum(problem, seq, fingerprint, blob)
        self.alone.execute(
            "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)", (problem, seq, fingerprint, blob, told)
        )
        older = "SELECT seq FROM snapshot WHERE problem = ? ORDER BY seq DESC LIMIT 1 OFFSET 1"
        self.alone.execute(f"DELETE FROM snapshot WHERE problem = ? AND seq < ({older})", (problem, problem))

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""
        self.alone.execute("DELETE FROM snapshot WHERE problem = ?", (problem,))

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Put these keys and bodies in place of those that are there; note that `rebuild` is to come."""
        for row in rows:
            said = "SELECT before FROM event WHERE seq = ?"
            (before,) = self.alone.execute(said, (row.seq,)).fetchone()
            said = "UPDATE event SET key = ?, body = ?, checksum = ? WHERE seq = ?"
            self.alone.execute(said, (row.key, row.body, checksum(row, before), row.seq))
        self.alone.execute("INSERT OR REPLACE INTO note VALUES (?)", (REWRITING,))

    def rebuild(self) -> None:
        """Leave nothing in the file but what its tables hold."""
        self.alone.execute("VACUUM")
        self._checkpoint()
        self.alone.execute("DELETE FROM note WHERE name = ?", (REWRITING,))

    def backup(self, path: object, pause: Pause) -> None:
        """A copy of the file, made while others write: it is there whole, or not at all.

        SQLite copies some pages at a time, and changes pages that it has copied already in the copy as well.
        So the copy is the store as it is when the last step is done.
        """
        source, target = self.alone, sqlite_file.place(path)
        taken = Conflict("path", str(target), "a file that does not exist yet")
        if not target.parent.is_dir():
            raise InputError("path", str(target), "a file in a folder that is there")
        if target.exists():
            raise taken

        def rest(*_: int) -> None:
            with pause():
                time.sleep(REST)
            if self.connection is not source:
                raise StoreError("the store failed meanwhile and was opened again")

        try:
            with _io.draft(target) as draft:
                with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                    source.backup(copy, pages=PAGES, progress=rest, sleep=0)
                _io.appear(draft, target)
        except FileExistsError:
            raise taken from None
        except (*FAILURES, OSError, StoreError) as error:
            raise StoreError(f"there is no copy at {target}: {reason(error)}") from error

    def announce(self, url: str | None) -> None:
        """Tell those who are refused where this store can be reached."""
        self.holder.url = url
        self.holder.announce()

    def _check_place(self) -> None:
        """Refuse where it is not where it was: it would take rows that nobody ever finds."""
        for path, which in ((self.label, self._which), (self._log_path, self._log)):
            if sqlite_file.identity(path) != which:
                raise StoreError(f"{path} was moved or taken away while it was open")

    def close_connection(self) -> None:
        """Let the connection go, and with it the lock, but not the place among this process's stores."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(*FAILURES):  # what the file says is the truth
                connection.close()

    def close(self) -> None:
        """Give it back."""
        if self.connection is not None:
            self.holder.release()  # while the lock is still ours
        self.holder.forget()
        self.close_connection()

    def leave_to_parent(self) -> None:
        """After a fork the child may not even close the connection: that would end the parent's log.

        SQLite takes the lock to be the child's, and on closing it would remove the write-ahead log under the
        parent's feet. So the connection is kept from ever being collected.
        """
        if self.connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        self.connection = None


def _stored(row: Row, tails: dict[str, Tail]) -> tuple[object, ...]:
    """A row as it is stored, with the number of the one before it in its problem; `tails` grow."""
    number, before, _ = tails.get(row.problem, Tail(len(tails) + 1, 0))
    tails[row.problem] = Tail(number, row.seq, row.time)
    kept = row.seq, number, row.kind, row.decision, row.key, float(row.time), row.body
    return *kept, before, checksum(row, before)


def _row(*fields: Any) -> Row:
    row = Row._make(fields[:7])
    try:
        whole = checksum(row, fields[7]) == fields[8]
    except (TypeError, ValueError):  # a page of zeros reads as a row of nothing
        whole = False
    if not whole:
        raise sqlite3.DatabaseError(f"row {row.seq} is damaged")
    return row
