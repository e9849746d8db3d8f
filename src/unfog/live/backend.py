"""Where the rows of a log are stored: what a row is, and what a log needs of its file or database.

Only one thread uses a backend at a time: the log holds its lock meanwhile. A method that fails raises one of
`failures`, or a StoreError; which rows are stored is then known only after the next `open`.

`tests/live/test_backend.py` checks what every backend must do.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

LAST = 2**63 - 1  # the largest number that a row can have


class Row(NamedTuple):
    """One event of the log."""

    seq: int  # 1, 2, ... over the whole store, never reused, no holes
    problem: str  # its name
    kind: str  # problem, arms, decide, reward, reveal, cancel, expire, pin, shadow, erase, ...
    decision: str | None
    key: str | None  # the caller's idempotency key, unique within a problem
    time: float  # of the store's clock, seconds since 1970, never decreasing
    body: str  # JSON text, as written


class Tail(NamedTuple):
    """What the tables say of a problem."""

    number: int  # of the problem in the tables
    last: int  # its last row
    time: float = 0.0  # of its last row


def checksum(row: Row, before: int) -> int:
    """The checksum of all fields of a row: SQLite itself does not notice a changed byte in a text."""
    seq, problem, kind, decision, key, time, body = row
    head = f"{before:d} {seq:d} {float(time).hex()} {problem!r} {kind} {decision!r} {key!r} "
    return zlib.crc32((head + body).encode())


def snapshot_checksum(problem: str, seq: int, snapshot_key: str, blob: bytes) -> int:
    """The checksum of everything in a snapshot."""
    return zlib.crc32(blob, zlib.crc32(f"{problem} {seq} {snapshot_key}".encode()))


class Contents(NamedTuple):
    """What a backend reports when it is opened, besides its problems."""

    last: int  # its last row
    rewriting: bool  # rows were rewritten, and their old text may still be there


Change: TypeAlias = Callable[[], None]
"""What else is done in the transaction of a `write`: calls `keep`, `discard` or `rewrite`."""
Pause: TypeAlias = Callable[[], AbstractContextManager[None]]
"""A context in which other threads may use the connection."""


class Backend(Protocol):
    """The rows and snapshots of problems, used by this process alone."""

    name: str  # short, for messages
    label: str  # where it is: path or address, for messages
    pid: int  # the process that opened it
    failures: tuple[type[BaseException], ...]
    is_durable: bool  # whether rows outlive this process; if not, no other process can have them either
    first_decision: int  # the events of decisions before this number may have been dropped; else 0
    tails: Mapping[str, Tail]  # the problems that have rows, in the order of their first rows

    @property
    def path(self) -> Path | None:
        """The file; None for a database."""

    @property
    def only(self) -> str | None:
        """The only problem whose rows are stored here; None: rows of any problem."""

    @property
    def is_open(self) -> bool:
        """Whether it can be used without opening it again."""

    def reason(self, error: BaseException) -> str:
        """Why it failed, as part of a sentence for users."""

    def open(self) -> Contents:
        """Connect and report what is stored. OwnershipLostError means that this will never work again."""

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:
        """Write rows and a change in one transaction, durable when this returns."""

    def read(self, problem: str | None, after: int, upto: int, size: int) -> list[Row]:
        """The next rows of a problem, or of all: at most `size` of those after `after` and up to `upto`,
        which is at most the last stored row. Missing or damaged rows are an error.
        """

    def keyed(self, problem: str, key: str) -> Row | None:
        """The row with this key."""

    def decided(self, problem: str, decision: str) -> list[Row]:
        """The rows of one decision."""

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest undamaged snapshot: the row up to which it goes, its snapshot_key and its bytes."""

    def keep(self, problem: str, seq: int, snapshot_key: str, blob: bytes) -> None:
        """Store a snapshot, and delete all but the two newest."""

    def discard(self, problem: str) -> None:
        """Delete the snapshots of this problem."""

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the keys and bodies of stored rows by these."""

    def rebuild(self) -> None:
        """Remove all traces of text that was rewritten."""

    def backup(self, path: object, pause: Pause) -> None:
        """Copy it to a file that does not exist yet; other threads work meanwhile."""

    def announce(self, url: str | None) -> None:
        """Publish the address at which other processes can reach this one."""

    def close_connection(self) -> None:
        """Close the connection; the backend can be opened again."""

    def close(self) -> None:
        """Close the backend for good and let other processes open it."""

    def leave_to_parent(self) -> None:
        """After a fork, leave the connection to the parent."""
