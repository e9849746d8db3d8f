"""The place of a log that is one problem in PostgreSQL, as long as this process owns it.

Every commit locks the owner's row and requires the epoch in which this process owns the problem; otherwise it
writes nothing and raises Lost. It also requires to come after the last opening in that epoch: a commit whose
connection broke may still be on its way when the place is opened again to see what became of it, and must not
come afterwards. Rows of later epochs are another owner's and are never read here.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import psycopg

from unfog.live.errors import Lost, StoreError
from unfog.live.place import Change, Contents, Pause, Row, Tail
from unfog.live.postgres import connecting, table
from unfog.live.postgres.pool import Pool

if TYPE_CHECKING:
    from psycopg import Connection


class PostgresPlace:
    """One problem of a database: see `Place`. It uses a connection of the pool while it needs one."""

    failures: tuple[type[BaseException], ...] = (psycopg.Error, UnicodeError)
    path = None

    def __init__(self, pool: Pool, problem: str, epoch: int) -> None:
        """Nothing is opened yet. `epoch` is what `Owners.claim` gave."""
        self.only, self.epoch, self.pid = problem, epoch, os.getpid()
        self.name = self.label = f"{problem!r} at {connecting.where(pool.dsn)}"
        self.mine = table.Mine(problem, 0, epoch, 0)
        self.is_open = False
        self._pool = pool
        self._lost: Lost | None = None
        self._within: Connection | None = None  # the transaction that a change is a part of

    def reason(self, error: BaseException) -> str:
        """What PostgreSQL said of it."""
        return connecting.reason(error)

    @contextlib.contextmanager
    def using(self) -> "Iterator[Connection]":
        """A connection: that of the transaction, within one."""
        if self._within is not None:
            yield self._within
            return
        with self._pool.using() as connection:
            yield connection

    def open(self) -> Contents:
        """Shut out what an earlier connection may still do, and say what is there."""
        if self._lost is not None:
            raise self._lost
        try:
            with self.using() as connection:
                mine = table.opened(connection, self.mine)
                if mine is None:
                    self._lose(connection)
                contents = table.contents(connection, mine)
        except (psycopg.Error, UnicodeError, OSError) as error:
            raise StoreError(f"{self.label} cannot be opened: {self.reason(error)}") from error
        self.is_open, self.mine = True, mine
        return contents

    def write(
        self, tails: Mapping[str, Tail], rows: Sequence[Row], change: Change | None = None
    ) -> Mapping[str, Tail]:
        """Rows and a change in one transaction of this epoch."""
        if change is None and not rows:
            return tails
        with self.using() as connection:
            if change is None:
                is_mine = table.append(connection, self.mine, rows)
            else:
                is_mine = self._changed(connection, rows, change)
            if not is_mine:
                self._lose(connection)
        return tails if not rows else {self.only: Tail(self.mine.number, rows[-1].seq, rows[-1].time)}

    def _changed(self, connection: "Connection", rows: Sequence[Row], change: Change) -> bool:
        connection.execute("BEGIN")
        if not table.lock(connection, self.mine):
            connection.execute("ROLLBACK")
            return False
        if rows:
            table.append(connection, self.mine, rows)
        self._within = connection
        try:
            change()
        finally:
            self._within = None
        connection.execute("COMMIT")
        return True

    def _lose(self, connection: "Connection") -> NoReturn:
        """Find out what became of the last rows, and never open again."""
        said = f"another process serves {self.only!r} by now, epoch {self.epoch} is over"
        self._lost = Lost(said, table.kept(connection, self.mine))
        raise self._lost

    def chunk(self, tails: Mapping[str, Tail], after: int, upto: int, size: int) -> list[Row]:
        """The next rows."""
        with self.using() as connection:
            return table.chunk(connection, self.mine, after, upto, size)

    def chunk_of(self, problem: str, tail: Tail, after: int, upto: int, size: int) -> list[Row]:
        """The next rows; none of any other problem."""
        if problem != self.only or after >= tail.last:
            return []
        with self.using() as connection:
            return table.chunk(connection, self.mine, after, min(upto, tail.last), size)

    def keyed(self, problem: str, tail: Tail, key: str) -> Row | None:
        """The row with this key."""
        if problem != self.only:
            return None
        with self.using() as connection:
            return table.keyed(connection, self.mine, key)

    def decided(self, problem: str, tail: Tail, decision: str) -> list[Row]:
        """The rows of one decision."""
        if problem != self.only:
            return []
        with self.using() as connection:
            return table.decided(connection, self.mine, decision)

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is whole."""
        if problem != self.only:
            return None
        with self.using() as connection:
            return table.snapshot(connection, self.mine)

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot; of another problem there is nothing to keep."""
        if problem == self.only:
            with self.using() as connection:
                table.keep(connection, self.mine, seq, fingerprint, blob)

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""
        if problem == self.only:
            with self.using() as connection:
                table.discard(connection, self.mine)

    def befores(self, tails: Mapping[str, Tail], rows: Sequence[Row]) -> list[int]:
        """The rows before these."""
        with self.using() as connection:
            return table.befores(connection, self.mine, rows)

    def rewrite(self, rows: Sequence[Row], befores: Sequence[int]) -> None:
        """Put these keys and bodies in the place of those that are there."""
        with self.using() as connection:
            table.rewrite(connection, self.mine, rows)

    def rebuild(self) -> None:
        """Let the server clear away rows as they were. Its files, write-ahead log and backups are its own."""
        with self.using() as connection:
            connection.execute("VACUUM event")

    def backup(self, path: object, pause: Pause) -> NoReturn:
        """A database has tools of its own for this."""
        raise StoreError(f"{self.label} is in PostgreSQL: copy the database with pg_dump")

    def announce(self, url: str | None) -> None:
        """The owner's row says it."""

    def close_connection(self) -> None:
        """Be closed until it is opened again."""
        self.is_open = False

    def close(self) -> None:
        """Be closed; who owns the problem is said by `Owners`, and connections are the pool's."""
        self.is_open = False

    def leave_to_parent(self) -> None:
        """After a fork: connections know the process that made them, and do nothing in another."""
        self.is_open = False
