"""The place of a log that is a SQLite file, and its one connection: opened again, given back, left alone."""

import contextlib
import ctypes
import sqlite3
from collections.abc import Mapping, Sequence

from unfog.live import copying, opening, table
from unfog.live.errors import FAILURES, StoreError, reason
from unfog.live.holder import Holder
from unfog.live.place import Change, Contents, Pause, Row, Tail
from unfog.validation import one_of


class File:
    """A path that this process holds: see `Place`."""

    failures: tuple[type[BaseException], ...] = FAILURES
    only = None

    def __init__(self, path: object, sync: str = "full", *, connect: opening.Connect = opening.plain) -> None:
        """Hold a path. `sync`: "full" outlives a power cut, "normal" a killed process."""
        self.sync = one_of("sync", sync, opening.SYNC)
        self.path = opening.place(path)
        self.name, self.label = self.path.name, str(self.path)
        self.holder = Holder(self.path)
        self.pid = self.holder.pid
        self.connection: sqlite3.Connection | None = None
        self._connect = connect
        self._log_path = self.path.with_name(f"{self.path.name}-wal")
        self._which: opening.Identity | None = None  # the file, from its first opening on
        self._log: opening.Identity | None = None  # its write-ahead log

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
            if self._which is not None and self._which != opening.identity(self.path):
                raise StoreError(f"{self.path} was moved or taken away while it was open")
            connection, self._which = opening.connection(self.path, self.sync, self._connect)
            try:
                # What a holder that was killed, or an fsync that failed, left in the write-ahead log may not
                # be on the disk, though it can be read: a copy made anew is.
                table.checkpoint(connection)
                contents = table.contents(connection)
            except BaseException:
                connection.close()
                raise
        except (*FAILURES, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {reason(error)}") from error
        self.connection, self._log = connection, opening.identity(self._log_path)
        self.holder.announce()
        return contents

    def write(
        self, tails: Mapping[str, Tail], rows: Sequence[Row], change: Change | None = None
    ) -> Mapping[str, Tail]:
        """Rows and a change in one transaction."""
        self._check_place()
        return table.write(self.alone, tails, rows, change)

    def chunk(self, tails: Mapping[str, Tail], after: int, upto: int, size: int) -> list[Row]:
        """The next rows of all problems."""
        return table.chunk(self.alone, tails, after, upto, size)

    def chunk_of(self, problem: str, tail: Tail, after: int, upto: int, size: int) -> list[Row]:
        """The next rows of one problem."""
        return table.chunk_of(self.alone, problem, tail, after, upto, size)

    def keyed(self, problem: str, tail: Tail, key: str) -> Row | None:
        """The row with this key."""
        return table.keyed(self.alone, problem, tail, key)

    def decided(self, problem: str, tail: Tail, decision: str) -> list[Row]:
        """The rows of one decision."""
        return table.decided(self.alone, problem, tail, decision)

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is whole."""
        return table.snapshot(self.alone, problem)

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot."""
        table.keep(self.alone, problem, seq, fingerprint, blob)

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""
        table.discard(self.alone, problem)

    def befores(self, tails: Mapping[str, Tail], rows: Sequence[Row]) -> list[int]:
        """The rows before these in their problems."""
        return table.befores(self.alone, tails, rows)

    def rewrite(self, rows: Sequence[Row], befores: Sequence[int]) -> None:
        """Put these keys and bodies in the place of those that are there."""
        table.rewrite(self.alone, rows, befores)

    def rebuild(self) -> None:
        """Leave nothing in the file but what its tables hold."""
        table.rebuild(self.alone)

    def backup(self, path: object, pause: Pause) -> None:
        """A copy of the file, made while others write."""
        copying.copied(self.alone, opening.place(path), pause, lambda: self.connection)

    def announce(self, url: str | None) -> None:
        """Tell those who are refused where this store can be reached."""
        self.holder.url = url
        self.holder.announce()

    def _check_place(self) -> None:
        """Refuse where it is not where it was: it would take rows that nobody ever finds."""
        for path, which in ((self.path, self._which), (self._log_path, self._log)):
            if opening.identity(path) != which:
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
