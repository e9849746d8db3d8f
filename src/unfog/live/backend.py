"""Where the rows of a log are kept: what a log asks of a file, or of a database, and what a row is.

A place has one connection. Whoever uses it does so alone: the log holds its own lock meanwhile. A method that
fails raises one of `failures`, or a StoreError; what is then known of the rows is what `open` says next.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias


class Row(NamedTuple):
    """One event of the log."""

    seq: int  # 1, 2, ... over the whole store, never reused, no holes
    problem: str  # its name
    kind: str  # problem, arms, decide, reward, reveal, void, expire, freeze, shadow, erase, ...
    decision: str | None
    key: str | None  # the caller's idempotency key, unique within a problem
    time: float  # of the store's clock, seconds since 1970, never decreasing
    body: str  # JSON text, as written


class Tail(NamedTuple):
    """A problem as the tables know it."""

    number: int  # 1, 2, ... in the order of their first rows
    last: int  # its last row
    time: float = 0.0  # of that


def checksum(row: Row, before: int) -> int:
    """The checksum of everything in a row: SQLite itself does not notice a changed byte in a text."""
    seq, problem, kind, decision, key, time, body = row
    head = f"{before:d} {seq:d} {float(time).hex()} {problem!r} {kind} {decision!r} {key!r} "
    return zlib.crc32((head + body).encode())


def snapshot_checksum(problem: str, seq: int, fingerprint: str, blob: bytes) -> int:
    """The checksum of everything in a snapshot."""
    return zlib.crc32(blob, zlib.crc32(f"{problem} {seq} {fingerprint}".encode()))


def numbered(rows: Iterable[Row], tails: dict[str, Tail]) -> Iterator[tuple[object, ...]]:
    """Rows as they are stored, each with the number of the one before it in its problem; `tails` grow.

    That number shows a row that an index has lost: the next one does not fit.
    """
    for row in rows:
        number, before, _ = tails.get(row.problem, Tail(len(tails) + 1, 0))
        tails[row.problem] = Tail(number, row.seq, row.time)
        kept = row.seq, number, row.kind, row.decision, row.key, float(row.time), row.body
        yield *kept, before, checksum(row, before)


class Contents(NamedTuple):
    """What is known of a place when it is opened."""

    tails: dict[str, Tail]  # its problems, in the order of their first rows
    last: int  # its last row
    time: float  # the latest of all rows
    rewriting: bool  # a rewriting was cut short before the place was rebuilt


Change: TypeAlias = Callable[[], None]
"""What is said to the connection inside the transaction of a `write`: one of keep, discard and rewrite."""
Pause: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Others may use the connection inside of it."""


class Place(Protocol):
    """One place, used by this process."""

    name: str  # in a word, for messages
    label: str  # where it is, for messages
    pid: int  # the process that opened it
    failures: tuple[type[BaseException], ...]

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""

    @property
    def only(self) -> str | None:
        """The problem whose rows alone are kept here; None: those of any problem."""

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""

    def reason(self, error: BaseException) -> str:
        """Why it failed, in plain words."""

    def open(self) -> Contents:
        """Connect, and say what is there. A Lost says that this will never work again."""

    def write(
        self, tails: Mapping[str, Tail], rows: Sequence[Row], change: Change | None = None
    ) -> Mapping[str, Tail]:
        """Rows and a change in one transaction, durable when this returns; the problems as they are then."""

    def chunk(self, tails: Mapping[str, Tail], after: int, upto: int, size: int) -> list[Row]:
        """The next rows of all problems, none of them missing or damaged."""

    def chunk_of(self, problem: str, tail: Tail, after: int, upto: int, size: int) -> list[Row]:
        """The next rows of one problem."""

    def keyed(self, problem: str, tail: Tail, key: str) -> Row | None:
        """The row with this key."""

    def decided(self, problem: str, tail: Tail, decision: str) -> list[Row]:
        """The rows of one decision."""

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is as it was written: its row, its fingerprint and itself."""

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot; all but the two newest go."""

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""

    def befores(self, tails: Mapping[str, Tail], rows: Sequence[Row]) -> list[int]:
        """The rows before these in their problems; refused where they differ in more than keys and bodies."""

    def rewrite(self, rows: Sequence[Row], befores: Sequence[int]) -> None:
        """Put these keys and bodies in the place of those that are there."""

    def rebuild(self) -> None:
        """Leave nothing there but what the rows say."""

    def backup(self, path: object, pause: Pause) -> None:
        """Copy it to a file that is not there yet; others work meanwhile."""

    def announce(self, url: str | None) -> None:
        """Tell those who are refused where it can be reached."""

    def close_connection(self) -> None:
        """Let the connection go; the place can be opened again."""

    def close(self) -> None:
        """Give it back."""

    def leave_to_parent(self) -> None:
        """After a fork, do nothing to the connection, which is the parent's."""
