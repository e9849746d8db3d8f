"""The PostgreSQL backend of a log: one problem of a database, for as long as this process owns it.

Every commit locks the owner's row and requires the epoch in which this process owns the problem; otherwise it
writes nothing and raises OwnershipLostError. It also requires that no connection was opened later in that
epoch: a commit whose connection broke may still be on its way when the problem is opened again to see what
became of it, and must not arrive afterwards. Rows of later epochs belong to another owner and are never
read here.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import psycopg

from unfog.live.backend import Change, Contents, Pause, Row, Tail, checksum, snapshot_checksum
from unfog.live.errors import OwnershipLostError, StoreError
from unfog.live.postgres import connection
from unfog.live.postgres.connection import Pool

if TYPE_CHECKING:
    from psycopg import Connection

FIELDS = "kind, decision, key, time, body, checksum"
OWN = "problem = %s AND epoch <= %s"  # rows of later epochs are another owner's
HELD = "SELECT 1 FROM owner WHERE problem = %s AND epoch = %s AND opening = %s FOR UPDATE"

# One statement is one transaction and one message: a process that stops in the middle of it holds no lock.
APPEND = (
    f"WITH held AS ({HELD})"
    " INSERT INTO event (problem, epoch, seq, kind, decision, key, time, body, checksum)"
    " SELECT %s, %s, given.* FROM held, unnest(%b::bigint[], %b::text[], %b::text[], %b::text[],"
    " %b::double precision[], %b::text[], %b::bigint[]) AS given"
)


class PostgresBackend:
    """One problem of a database: see `Backend`. It uses a connection of the pool while it needs one."""

    failures: tuple[type[BaseException], ...] = (psycopg.Error, UnicodeError)
    path = None
    is_durable = True
    first_decision = 0

    def __init__(self, pool: Pool, problem: str, epoch: int) -> None:
        """Start unopened; `epoch` is what `Owners.claim` returned."""
        self.only, self.epoch, self.pid = problem, epoch, os.getpid()
        self.name = self.label = f"{problem!r} at {connection.where(pool.dsn)}"
        self.number = 0  # of the problem in the tables
        self.opening = 0  # how often the problem has been opened in this epoch
        self.tails: Mapping[str, Tail] = {}
        self.is_open = False
        self._pool = pool
        self._lost: OwnershipLostError | None = None
        self._transaction: Connection | None = None  # the one that a change is part of

    @property
    def _own(self) -> tuple[int, int]:
        """The parameters of `OWN`: rows of this and earlier epochs."""
        return self.number, self.epoch

    @property
    def _held(self) -> tuple[str, int, int]:
        """The parameters of `HELD`: the owner's row."""
        return self.only, self.epoch, self.opening

    def reason(self, error: BaseException) -> str:
        """Why it failed, with the message of PostgreSQL."""
        return connection.reason(error)

    @contextlib.contextmanager
    def using(self) -> "Iterator[Connection]":
        """A connection; within a transaction, the one of the transaction."""
        if self._transaction is not None:
            yield self._transaction
            return
        with self._pool.using() as connection:
            yield connection

    def open(self) -> Contents:
        """Become the only connection that may write in this epoch, and report what is stored."""
        if self._lost is not None:
            raise self._lost
        reopen = "UPDATE owner SET opening = opening + 1 WHERE problem = %s AND epoch = %s RETURNING opening"
        newest = f"SELECT seq, time FROM event WHERE {OWN} ORDER BY seq DESC LIMIT 1"
        try:
            with self.using() as connection:
                opening = connection.execute(reopen, (self.only, self.epoch)).fetchone()
                sql = "SELECT id FROM problem WHERE name = %s"
                number = connection.execute(sql, (self.only,)).fetchone()
                if opening is None or number is None:
                    self._lose(connection)
                self.opening, self.number = opening[0], number[0]
                seq, time = connection.execute(newest, self._own).fetchone() or (0, 0.0)
        except (psycopg.Error, UnicodeError, OSError) as error:
            raise StoreError(f"{self.label} cannot be opened: {self.reason(error)}") from error
        self.tails = {self.only: Tail(self.number, seq, time)} if seq else {}
        self.is_open = True
        return Contents(seq, rewriting=False)

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:
        """Write rows and a change in one transaction of this epoch."""
        if change is None and not rows:
            return
        with self.using() as connection:
            if change is None:
                is_mine = self._append(connection, rows)
            else:
                is_mine = self._change(connection, rows, change)
            if not is_mine:
                self._lose(connection)
        if rows:
            self.tails = {self.only: Tail(self.number, rows[-1].seq, rows[-1].time)}

    def _append(self, connection: "Connection", rows: Sequence[Row]) -> bool:
        """Insert new rows; False, and none, if another process has taken over the problem."""
        seq, _, kind, decision, key, time, body = map(list, zip(*rows, strict=True))
        sums = [checksum(row, row.seq - 1) for row in rows]
        params = (*self._held, *self._own, seq, kind, decision, key, [float(t) for t in time], body, sums)
        return connection.execute(APPEND, params).rowcount == len(rows)

    def _change(self, connection: "Connection", rows: Sequence[Row], change: Change) -> bool:
        """Insert rows and make a change; False, and neither, if another process has the problem."""
        connection.execute("BEGIN")
        if not self._lock(connection):
            connection.execute("ROLLBACK")
            return False
        if rows:
            self._append(connection, rows)
        self._transaction = connection
        try:
            change()
        finally:
            self._transaction = None
        connection.execute("COMMIT")
        return True

    def _lock(self, connection: "Connection") -> bool:
        """Keep others from taking over the problem until the transaction ends; False if one has."""
        return connection.execute(HELD, self._held).fetchone() is not None

    def _lose(self, connection: "Connection") -> NoReturn:
        """Find the last row that was written; raise OwnershipLostError now and at every later `open`."""
        sql = "SELECT max(seq) FROM event JOIN problem ON event.problem = id WHERE name = %s AND epoch <= %s"
        last = None  # if the database does not answer
        with contextlib.suppress(psycopg.Error):
            (last,) = connection.execute(sql, (self.only, self.epoch)).fetchone() or (None,)
            last = last or 0
        self._lost = OwnershipLostError(
            f"another process serves {self.only!r} by now, epoch {self.epoch} is over", last
        )
        raise self._lost

    def _read_rows(self, condition: str, *params: object) -> list[Row]:
        """Rows of the problem in order, after checking each against its checksum."""
        sql = f"SELECT seq, %s, {FIELDS} FROM event WHERE {OWN} AND {condition}"
        with self.using() as connection:
            return [_decode_row(*row) for row in connection.execute(sql, (self.only, *self._own, *params))]

    def read(self, problem: str | None, after: int, upto: int, size: int) -> list[Row]:
        """The next rows, after checking that none is missing; no rows of any other problem."""
        if problem not in (None, self.only):
            return []
        rows = self._read_rows("seq > %s AND seq <= %s ORDER BY seq LIMIT %s", after, upto, size)
        if len(rows) != min(size, upto - after) or rows[-1].seq != after + len(rows):
            raise psycopg.DataError(f"rows are missing after row {after}")
        return rows

    def keyed(self, problem: str, key: str) -> Row | None:
        """The row with this key."""
        rows = self._read_rows("key = %s", key) if problem == self.only else []
        return rows[0] if rows else None

    def decided(self, problem: str, decision: str) -> list[Row]:
        """The rows of one decision."""
        return self._read_rows("decision = %s ORDER BY seq", decision) if problem == self.only else []

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest undamaged snapshot; damaged ones are skipped, since it is only a cache."""
        if problem != self.only:
            return None
        last = "SELECT COALESCE(max(seq), 0) FROM event WHERE problem = %s AND epoch <= %s"
        sql = "SELECT seq, snapshot_key, blob, checksum FROM snapshot WHERE problem = %s AND seq <= "
        sql += f"({last}) ORDER BY seq DESC"
        with self.using() as connection:
            for seq, snapshot_key, blob, crc in connection.execute(
                sql, (self.number, *self._own), binary=True
            ):
                if snapshot_checksum(problem, seq, snapshot_key, blob) == crc:
                    return seq, snapshot_key, blob
        return None

    def keep(self, problem: str, seq: int, snapshot_key: str, blob: bytes) -> None:
        """Store a snapshot, and delete all but the two newest; other problems are ignored."""
        if problem != self.only:
            return
        sql = (
            "INSERT INTO snapshot VALUES (%s, %s, %s, %b, %s) ON CONFLICT (problem, seq) DO UPDATE SET"
            " snapshot_key = excluded.snapshot_key, blob = excluded.blob, checksum = excluded.checksum"
        )
        crc = snapshot_checksum(problem, seq, snapshot_key, blob)
        older = "SELECT seq FROM snapshot WHERE problem = %s ORDER BY seq DESC LIMIT 1 OFFSET 1"
        with self.using() as connection:
            connection.execute(sql, (self.number, seq, snapshot_key, blob, crc))
            sql = f"DELETE FROM snapshot WHERE problem = %s AND seq < ({older})"
            connection.execute(sql, (self.number, self.number))

    def discard(self, problem: str) -> None:
        """Delete the snapshots of this problem."""
        if problem == self.only:
            with self.using() as connection:
                connection.execute("DELETE FROM snapshot WHERE problem = %s", (self.number,))

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the keys and bodies of these rows."""
        sql = f"UPDATE event SET key = %s, body = %s, checksum = %s WHERE {OWN} AND seq = %s"
        params = [(row.key, row.body, checksum(row, row.seq - 1), *self._own, row.seq) for row in rows]
        with self.using() as connection, connection.cursor() as cursor:
            cursor.executemany(sql, params)

    def rebuild(self) -> None:
        """Make the server remove old versions of rows; its own logs and backups may still have them."""
        with self.using() as connection:
            connection.execute("VACUUM event")

    def backup(self, path: object, pause: Pause) -> NoReturn:
        """Raise StoreError: a database has its own tools for this."""
        raise StoreError(f"{self.label} is in PostgreSQL: copy the database with pg_dump")

    def announce(self, url: str | None) -> None:
        """Do nothing: the owner's row has the address."""

    def close_connection(self) -> None:
        """Mark the backend as closed; it can be opened again."""
        self.is_open = False

    def close(self) -> None:
        """Mark the backend as closed; `Owners` releases the problem, and the pool has the connections."""
        self.is_open = False

    def leave_to_parent(self) -> None:
        """After a fork, mark the backend as closed: connections of the parent do nothing in the child."""
        self.is_open = False


def _decode_row(*fields: Any) -> Row:
    """A row from its stored fields; DataError if it is damaged."""
    row = Row._make(fields[:7])
    if checksum(row, row.seq - 1) != fields[7]:
        raise psycopg.DataError(f"row {row.seq} is damaged")
    return row
