"""The place of a log that is one problem in PostgreSQL, as long as this process owns it.

Every commit locks the owner's row and requires the epoch in which this process owns the problem; otherwise it
writes nothing and raises Lost. It also requires to be the last connection that was opened in that epoch: a
commit whose connection broke may still be on its way when the next connection looks what became of it, and
must not come afterwards. Rows of later epochs are another owner's and are never read here.
"""

import contextlib
import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import psycopg

from unfog.inputs import one_of
from unfog.live.errors import Lost, StoreError
from unfog.live.place import Change, Contents, Pause
from unfog.live.postgres import connecting, table
from unfog.live.schema import Row, Tail

if TYPE_CHECKING:
    from psycopg import Connection


class PostgresPlace:
    """One problem of a database: see `Place`."""

    failures: tuple[type[BaseException], ...] = (psycopg.Error, UnicodeError)
    path = None

    def __init__(
        self,
        dsn: str,
        problem: str,
        epoch: int,
        sync: str = "full",
        *,
        connect: connecting.Connect = connecting.plain,
    ) -> None:
        """Nothing is opened yet. `epoch` is what `Owners.claim` gave."""
        self.sync = one_of("sync", sync, tuple(connecting.SYNC))
        self.only, self.epoch, self.pid = problem, epoch, os.getpid()
        self.name = self.label = f"{problem!r} at {connecting.where(dsn)}"
        self._dsn, self._connect = connecting.check(dsn), connect
        self._mine = table.Mine(problem, 0, epoch, 0)
        self._lost: Lost | None = None
        self.connection: Connection | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; one that broke is none."""
        return self.connection is not None and not self.connection.closed

    @property
    def alone(self) -> "Connection":
        """The connection, for whom it was opened."""
        assert self.connection is not None
        return self.connection

    def reason(self, error: BaseException) -> str:
        """What PostgreSQL said of it."""
        return connecting.reason(error)

    def open(self) -> Contents:
        """Connect, shut out what an earlier connection may still do, and say what is there."""
        if self._lost is not None:
            raise self._lost
        try:
            connection = connecting.connected(self._dsn, self.sync, self._connect)
            try:
                mine = table.opened(connection, self._mine)
                if mine is None:
                    self._lose(connection)
                contents = table.contents(connection, mine)
            except BaseException:
                connection.close()
                raise
        except (psycopg.Error, UnicodeError, OSError) as error:
            raise StoreError(f"{self.label} cannot be opened: {self.reason(error)}") from error
        self.connection, self._mine = connection, mine
        return contents

    def write(
        self, tails: Mapping[str, Tail], rows: Sequence[Row], change: Change | None = None
    ) -> Mapping[str, Tail]:
        """Rows and a change in one transaction of this epoch."""
        if change is None:
            if not rows:
                return tails
            is_mine = table.append(self.alone, self._mine, rows)
        else:
            is_mine = self._changed(rows, change)
        if not is_mine:
            self._lose(self.alone)
        return tails if not rows else {self.only: Tail(self._mine.number, rows[-1].seq, rows[-1].time)}

    def _changed(self, rows: Sequence[Row], change: Change) -> bool:
        self.alone.execute("BEGIN")
        if not table.lock(self.alone, self._mine):
            self.alone.execute("ROLLBACK")
            return False
        if rows:
            table.append(self.alone, self._mine, rows)
        change()
        self.alone.execute("COMMIT")
        return True

    def _lose(self, connection: "Connection") -> NoReturn:
        """Find out what became of the last rows, and never open again."""
        said = f"another process serves {self.only!r} by now, epoch {self.epoch} is over"
        self._lost = Lost(said, table.kept(connection, self._mine))
        raise self._lost

    def chunk(self, tails: Mapping[str, Tail], after: int, upto: int, size: int) -> list[Row]:
        """The next rows."""
        return table.chunk(self.alone, self._mine, after, upto, size)

    def chunk_of(self, problem: str, tail: Tail, after: int, upto: int, size: int) -> list[Row]:
        """The next rows; none of any other problem."""
        if problem != self.only or after >= tail.last:
            return []
        return table.chunk(self.alone, self._mine, after, min(upto, tail.last), size)

    def keyed(self, problem: str, tail: Tail, key: str) -> Row | None:
        """The row with this key."""
        return table.keyed(self.alone, self._mine, key) if problem == self.only else None

    def decided(self, problem: str, tail: Tail, decision: str) -> list[Row]:
        """The rows of one decision."""
        return table.decided(self.alone, self._mine, decision) if problem == self.only else []

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is whole."""
        return table.snapshot(self.alone, self._mine) if problem == self.only else None

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot; of another problem there is nothing to keep."""
        if problem == self.only:
            table.keep(self.alone, self._mine, seq, fingerprint, blob)

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""
        if problem == self.only:
            table.discard(self.alone, self._mine)

    def befores(self, tails: Mapping[str, Tail], rows: Sequence[Row]) -> list[int]:
        """The rows before these."""
        return table.befores(self.alone, self._mine, rows)

    def rewrite(self, rows: Sequence[Row], befores: Sequence[int]) -> None:
        """Put these keys and bodies in the place of those that are there."""
        table.rewrite(self.alone, self._mine, rows)

    def rebuild(self) -> None:
        """Let the server clear away rows as they were. Its files, write-ahead log and backups are its own."""
        self.alone.execute("VACUUM event")

    def backup(self, path: object, pause: Pause) -> NoReturn:
        """A database has tools of its own for this."""
        raise StoreError(f"{self.label} is in PostgreSQL: copy the database with pg_dump")

    def announce(self, url: str | None) -> None:
        """The owner's row says it."""

    def close_connection(self) -> None:
        """Let the connection go."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(*self.failures):  # what the database says is the truth
                connection.close()

    def close(self) -> None:
        """Let it go; who owns the problem is said by `Owners`."""
        self.close_connection()

    def leave_to_parent(self) -> None:
        """After a fork the child may not close the connection: the server would end the parent's session."""
        if self.connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        self.connection = None
