"""The PostgreSQL backend of a log: one problem of a database, for as long as this process owns it.

Every commit locks the owner's row and requires the epoch in which this process owns the problem; otherwise it
writes nothing and raises Lost. It also requires that no connection was opened later in that epoch: a commit
whose connection broke may still be on its way when the problem is opened again to see what became of it, and
must not arrive afterwards. Rows of later epochs belong to another owner and are never read here.

`PostgresPlace` implements `Place` (live/backend.py). The SQL statements are functions of a connection and of
what this process owns (`Mine`).
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import psycopg

from unfog.live.backend import Change, Contents, Pause, Row, Tail, checksum, snapshot_checksum
from unfog.live.errors import Lost, StoreError
from unfog.live.postgres import connection
from unfog.live.postgres.connection import Pool
from unfog.validation import InputError

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


class Mine(NamedTuple):
    """What a commit requires to be so."""

    problem: str
    number: int  # of the problem in the tables
    epoch: int  # in which this process owns it
    opening: int  # which of the connections of this epoch it is

    @property
    def own(self) -> tuple[int, int]:
        """For rows of this and earlier epochs."""
        return self.number, self.epoch

    @property
    def held(self) -> tuple[str, int, int]:
        """For the owner's row."""
        return self.problem, self.epoch, self.opening


class PostgresPlace:
    """One problem of a database: see `Place`. It uses a connection of the pool while it needs one."""

    failures: tuple[type[BaseException], ...] = (psycopg.Error, UnicodeError)
    path = None

    def __init__(self, pool: Pool, problem: str, epoch: int) -> None:
        """Nothing is opened yet. `epoch` is what `Owners.claim` gave."""
        self.only, self.epoch, self.pid = problem, epoch, os.getpid()
        self.name = self.label = f"{problem!r} at {connection.where(pool.dsn)}"
        self.mine = Mine(problem, 0, epoch, 0)
        self.is_open = False
        self._pool = pool
        self._lost: Lost | None = None
        self._within: Connection | None = None  # the transaction that a change is a part of

    def reason(self, error: BaseException) -> str:
        """What PostgreSQL said of it."""
        return connection.reason(error)

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
                mine = opened(connection, self.mine)
                if mine is None:
                    self._lose(connection)
                contents = read_contents(connection, mine)
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
                is_mine = append(connection, self.mine, rows)
            else:
                is_mine = self._changed(connection, rows, change)
            if not is_mine:
                self._lose(connection)
        return tails if not rows else {self.only: Tail(self.mine.number, rows[-1].seq, rows[-1].time)}

    def _changed(self, connection: "Connection", rows: Sequence[Row], change: Change) -> bool:
        connection.execute("BEGIN")
        if not lock(connection, self.mine):
            connection.execute("ROLLBACK")
            return False
        if rows:
            append(connection, self.mine, rows)
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
        self._lost = Lost(said, kept(connection, self.mine))
        raise self._lost

    def chunk(self, tails: Mapping[str, Tail], after: int, upto: int, size: int) -> list[Row]:
        """The next rows."""
        with self.using() as connection:
            return chunk(connection, self.mine, after, upto, size)

    def chunk_of(self, problem: str, tail: Tail, after: int, upto: int, size: int) -> list[Row]:
        """The next rows; none of any other problem."""
        if problem != self.only or after >= tail.last:
            return []
        with self.using() as connection:
            return chunk(connection, self.mine, after, min(upto, tail.last), size)

    def keyed(self, problem: str, tail: Tail, key: str) -> Row | None:
        """The row with this key."""
        if problem != self.only:
            return None
        with self.using() as connection:
            return keyed(connection, self.mine, key)

    def decided(self, problem: str, tail: Tail, decision: str) -> list[Row]:
        """The rows of one decision."""
        if problem != self.only:
            return []
        with self.using() as connection:
            return decided(connection, self.mine, decision)

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is whole."""
        if problem != self.only:
            return None
        with self.using() as connection:
            return snapshot(connection, self.mine)

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot; of another problem there is nothing to keep."""
        if problem == self.only:
            with self.using() as connection:
                keep(connection, self.mine, seq, fingerprint, blob)

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""
        if problem == self.only:
            with self.using() as connection:
                discard(connection, self.mine)

    def befores(self, tails: Mapping[str, Tail], rows: Sequence[Row]) -> list[int]:
        """The rows before these."""
        with self.using() as connection:
            return befores(connection, self.mine, rows)

    def rewrite(self, rows: Sequence[Row], befores: Sequence[int]) -> None:
        """Put these keys and bodies in the place of those that are there."""
        with self.using() as connection:
            rewrite(connection, self.mine, rows)

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


def opened(connection: "Connection", mine: Mine) -> Mine | None:
    """Be the one connection that may write in this epoch; None where the epoch is over."""
    said = "UPDATE owner SET opening = opening + 1 WHERE problem = %s AND epoch = %s RETURNING opening"
    found = connection.execute(said, (mine.problem, mine.epoch)).fetchone()
    number = connection.execute("SELECT id FROM problem WHERE name = %s", (mine.problem,)).fetchone()
    if found is None or number is None:
        return None
    return mine._replace(number=number[0], opening=found[0])


def read_contents(connection: "Connection", mine: Mine) -> Contents:
    """What there is of the problem."""
    said = f"SELECT seq, time FROM event WHERE {OWN} ORDER BY seq DESC LIMIT 1"
    found = connection.execute(said, mine.own).fetchone()
    if found is None:
        return Contents({}, 0, 0.0, False)
    seq, time = found
    return Contents({mine.problem: Tail(mine.number, seq, time)}, seq, time, False)


def kept(connection: "Connection", mine: Mine) -> int | None:
    """The last row of this and earlier epochs; None where it cannot be asked."""
    said = "SELECT max(seq) FROM event JOIN problem ON event.problem = id WHERE name = %s AND epoch <= %s"
    try:
        found = connection.execute(said, (mine.problem, mine.epoch)).fetchone()
    except psycopg.Error:
        return None
    return 0 if found is None or found[0] is None else int(found[0])


def lock(connection: "Connection", mine: Mine) -> bool:
    """Keep others from taking the problem over until the transaction ends; false where one has."""
    return connection.execute(HELD, mine.held).fetchone() is not None


def append(connection: "Connection", mine: Mine, rows: Sequence[Row]) -> bool:
    """New rows; false, and none, where another process has taken the problem over."""
    seq, _, kind, decision, key, time, body = map(list, zip(*rows, strict=True))
    sums = [checksum(row, row.seq - 1) for row in rows]
    told = (*mine.held, *mine.own, seq, kind, decision, key, [float(one) for one in time], body, sums)
    return connection.execute(APPEND, told).rowcount == len(rows)


def chunk(connection: "Connection", mine: Mine, after: int, upto: int, size: int) -> list[Row]:
    """The next rows, each held against its checksum, all of them against their numbers."""
    said = f"SELECT seq, %s, {FIELDS} FROM event WHERE {OWN} AND seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
    found = connection.execute(said, (mine.problem, *mine.own, after, upto, size)).fetchall()
    rows = [_row(*row) for row in found]
    if len(rows) != min(size, upto - after) or rows[-1].seq != after + len(rows):
        raise psycopg.DataError(f"rows are missing after row {after}")
    return rows


def _row(*fields: Any) -> Row:
    row = Row._make(fields[:7])
    if checksum(row, row.seq - 1) != fields[7]:
        raise psycopg.DataError(f"row {row.seq} is damaged")
    return row


def keyed(connection: "Connection", mine: Mine, key: str) -> Row | None:
    """The row with this key."""
    said = f"SELECT seq, %s, {FIELDS} FROM event WHERE {OWN} AND key = %s"
    found = connection.execute(said, (mine.problem, *mine.own, key)).fetchone()
    return None if found is None else _row(*found)


def decided(connection: "Connection", mine: Mine, decision: str) -> list[Row]:
    """The rows of one decision."""
    said = f"SELECT seq, %s, {FIELDS} FROM event WHERE {OWN} AND decision = %s ORDER BY seq"
    return [_row(*row) for row in connection.execute(said, (mine.problem, *mine.own, decision))]


def snapshot(connection: "Connection", mine: Mine) -> tuple[int, str, bytes] | None:
    """The newest that is as it was written; it is a cache, so a damaged one is passed over."""
    last = "SELECT COALESCE(max(seq), 0) FROM event WHERE problem = %s AND epoch <= %s"
    said = "SELECT seq, fingerprint, blob, checksum FROM snapshot WHERE problem = %s AND seq <= "
    said += f"({last}) ORDER BY seq DESC"
    for seq, fingerprint, blob, told in connection.execute(said, (mine.number, *mine.own), binary=True):
        if snapshot_checksum(mine.problem, seq, fingerprint, blob) == told:
            return seq, fingerprint, blob
    return None


def keep(connection: "Connection", mine: Mine, seq: int, fingerprint: str, blob: bytes) -> None:
    """One more snapshot; all but the two newest go."""
    connection.execute(
        "INSERT INTO snapshot VALUES (%s, %s, %s, %b, %s) ON CONFLICT (problem, seq) DO UPDATE SET"
        " fingerprint = excluded.fingerprint, blob = excluded.blob, checksum = excluded.checksum",
        (mine.number, seq, fingerprint, blob, snapshot_checksum(mine.problem, seq, fingerprint, blob)),
    )
    older = "SELECT seq FROM snapshot WHERE problem = %s ORDER BY seq DESC LIMIT 1 OFFSET 1"
    said = f"DELETE FROM snapshot WHERE problem = %s AND seq < ({older})"
    connection.execute(said, (mine.number, mine.number))


def discard(connection: "Connection", mine: Mine) -> None:
    """No snapshots of this problem."""
    connection.execute("DELETE FROM snapshot WHERE problem = %s", (mine.number,))


def befores(connection: "Connection", mine: Mine, rows: Sequence[Row]) -> list[int]:
    """The rows before these; refused where they differ in more than keys and bodies."""
    said = f"SELECT 1 FROM event WHERE {OWN} AND seq = %s AND kind = %s AND time = %s"
    said += " AND decision IS NOT DISTINCT FROM %s"
    for row in rows:
        told = (*mine.own, row.seq, row.kind, row.time, row.decision)
        if row.problem != mine.problem or connection.execute(said, told).fetchone() is None:
            raise InputError("seq", row.seq, "a row that is there, with its problem, kind, decision and time")
    return [row.seq - 1 for row in rows]


def rewrite(connection: "Connection", mine: Mine, rows: Sequence[Row]) -> None:
    """Put these keys and bodies in the place of those that are there."""
    said = f"UPDATE event SET key = %s, body = %s, checksum = %s WHERE {OWN} AND seq = %s"
    with connection.cursor() as cursor:
        told = [(row.key, row.body, checksum(row, row.seq - 1), *mine.own, row.seq) for row in rows]
        cursor.executemany(said, told)
