"""Where the rows of a log are kept: what a log asks of its backend, a file or a database, and what a row is.

Whoever uses a backend does so alone: the log holds its own lock meanwhile. A method that fails raises one of
`failures`, or a StoreError; what is then known of the rows is what `open` says next.

`tests/live/test_backend.py` holds what every backend must do.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
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

    number: int  # of the problem in the tables
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


class Contents(NamedTuple):
    """What is known of a backend when it is opened, besides its problems."""

    last: int  # its last row
    rewriting: bool  # rows were rewritten, and their old text may still be there


Change: TypeAlias = Callable[[], None]
"""What else is done in the transaction of a `write`: one of keep, discard and rewrite."""
Pause: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Others may use the connection inside of it."""


class Backend(Protocol):
    """The rows and snapshots of problems, used by this process alone."""

    name: str  # in a word, for messages
    label: str  # where it is, for messages
    pid: int  # the process that opened it
    failures: tuple[type[BaseException], ...]
    tails: Mapping[str, Tail]  # the problems that have rows, in the order of their first rows

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""

    @property
    def only(self) -> str | None:
        """The problem whose rows alone are kept here; None: those of any problem."""

    @property
    def is_open(self) -> bool:
        """Whether it can be used without opening it again."""

    def reason(self, error: BaseException) -> str:
        """Why it failed, in plain words."""

    def open(self) -> Contents:
        """Connect, and say what is there. A Lost says that this will never work again."""

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:
        """Rows and a change in one transaction, durable when this returns."""

    def read(self, problem: str | None, after: int, upto: int, size: int) -> list[Row]:
        """The next rows of a problem, or of all, none of them missing or damaged: at most `size` of those
        after `after` and up to `upto`, which is at most the last row there is.
        """

    def keyed(self, problem: str, key: str) -> Row | None:
        """The row with this key."""

    def decided(self, problem: str, decision: str) -> list[Row]:
        """The rows of one decision."""

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that is as it was written: its row, its fingerprint and itself."""

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """One more snapshot; all but the two newest go."""

    def discard(self, problem: str) -> None:
        """No snapshots of this problem."""

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Put these keys and bodies in the place of those that are there."""

    def rebuild(self) -> None:
        """Leave nothing there but what the rows say."""

    def backup(self, path: object, pause: Pause) -> None:
        """Copy it to a file that is not there yet; others work meanwhile."""

    def announce(self, url: str | None) -> None:
        """Tell those who are refused where it can be reached."""

    def close_connection(self) -> None:
        """Let the connection go; the backend can be opened again."""

    def close(self) -> None:
        """Give it back."""

    def leave_to_parent(self) -> None:
        """After a fork, do nothing to the connection, which is the parent's."""
