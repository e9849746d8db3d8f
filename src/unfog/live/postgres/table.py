"""What is said to PostgreSQL: the statements of the log of one problem, each a function of a connection."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from unfog.live.place import Contents, Row, Tail, checksum
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


def opened(connection: "Connection", mine: Mine) -> Mine | None:
    """Be the one connection that may write in this epoch; None where the epoch is over."""
    said = "UPDATE owner SET opening = opening + 1 WHERE problem = %s AND epoch = %s RETURNING opening"
    found = connection.execute(said, (mine.problem, mine.epoch)).fetchone()
    number = connection.execute("SELECT id FROM problem WHERE name = %s", (mine.problem,)).fetchone()
    if found is None or number is None:
        return None
    return mine._replace(number=number[0], opening=found[0])


def contents(connection: "Connection", mine: Mine) -> Contents:
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


def snapshot(connection: "Connection", mine: Mine) -> tuple[int, str, bytes] | None:
    """The newest that is as it was written; it is a cache, so a damaged one is passed over."""
    last = "SELECT COALESCE(max(seq), 0) FROM event WHERE problem = %s AND epoch <= %s"
    said = "SELECT seq, fingerprint, blob, checksum FROM snapshot WHERE problem = %s AND seq <= "
    said += f"({last}) ORDER BY seq DESC"
    for seq, fingerprint, blob, told in connection.execute(said, (mine.number, *mine.own), binary=True):
        if _sum(mine.problem, seq, fingerprint, blob) == told:
            return seq, fingerprint, blob
    return None


def keep(connection: "Connection", mine: Mine, seq: int, fingerprint: str, blob: bytes) -> None:
    """One more snapshot; all but the two newest go."""
    connection.execute(
        "INSERT INTO snapshot VALUES (%s, %s, %s, %b, %s) ON CONFLICT (problem, seq) DO UPDATE SET"
        " fingerprint = excluded.fingerprint, blob = excluded.blob, checksum = excluded.checksum",
        (mine.number, seq, fingerprint, blob, _sum(mine.problem, seq, fingerprint, blob)),
    )
    older = "SELECT seq FROM snapshot WHERE problem = %s ORDER BY seq DESC LIMIT 1 OFFSET 1"
    said = f"DELETE FROM snapshot WHERE problem = %s AND seq < ({older})"
    connection.execute(said, (mine.number, mine.number))


def discard(connection: "Connection", mine: Mine) -> None:
    """No snapshots of this problem."""
    connection.execute("DELETE FROM snapshot WHERE problem = %s", (mine.number,))


def _sum(problem: str, seq: int, fingerprint: str, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(f"{problem} {seq} {fingerprint}".encode()))
