"""The rows of a problem in memory: the backend of an `unfog.Bandit`, which needs neither a file nor a server.

Rows are compressed, a block at a time. So a hundred thousand decisions and their rewards, with four
coordinates, take about 30 MB. The newest rows are as they are until there are enough for a block.

The rows of a decision are found by hashes, which are compared all at once: only a report on a closed
decision needs them. A row with a key is found by a dictionary, since each call with a key looks for one.

`drop` removes rows for good. What they led to is then in the snapshot alone.
"""

import marshal
import os
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from unfog.live.backend import Change, Contents, Pause, Row, Tail
from unfog.live.errors import StoreError

BLOCK = 256  # rows that are compressed together
LEVEL = 1  # of the compression: the highest saves a tenth more, and takes five times as long


class MemoryBackend:
    """Rows that live as long as this object: see `Backend` of live/backend.py."""

    failures: tuple[type[BaseException], ...] = ()
    path = only = None
    is_durable = False
    name = label = "this bandit"

    def __init__(self) -> None:
        """Start without rows."""
        self.pid = os.getpid()
        self.is_open = False
        self.first_decision = 0
        self.tails: Mapping[str, Tail] = {}
        self._blocks: list[bytes] = []
        self._lasts: list[int] = []  # number of the last row of each block
        self._ends: list[int] = []  # how many rows there are up to the end of each block
        self._newest: list[Row] = []  # the rows after the blocks
        self._hashes = array("q")  # of the problem and the decision of each row
        self._keys: dict[tuple[str, str], int] = {}  # numbers of rows
        self._snapshots: dict[str, tuple[int, str, bytes]] = {}
        self._cached: tuple[bytes, list[Row]] = b"", []  # the block that was last read

    def reason(self, error: BaseException) -> str:
        """Why it failed: by a bug, or for lack of memory."""
        return f"{type(error).__name__}: {error}"

    def open(self) -> Contents:
        """Report what is stored; of a write that was interrupted nothing is left half done."""
        last = max((tail.last for tail in self.tails.values()), default=0)
        count = min(len(self._blocks), len(self._lasts), len(self._ends))
        for values in (self._blocks, self._lasts, self._ends):
            del values[count:]
        sealed = self._lasts[-1] if count else 0
        self._newest = [row for row in self._newest if sealed < row.seq <= last]
        self._keys = {key: seq for key, seq in self._keys.items() if seq <= last}
        del self._hashes[(self._ends[-1] if count else 0) + len(self._newest) :]
        self.is_open = True
        return Contents(last, rewriting=False)

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:
        """Make a change and add rows: both, or neither if the change fails."""
        if change is not None:
            before = vars(self).copy()
            self._snapshots, self._keys = self._snapshots.copy(), self._keys.copy()
            self._blocks, self._newest = self._blocks.copy(), self._newest.copy()
            try:
                change()
            except BaseException:
                vars(self).update(before)
                raise
        for row in rows:
            self._add(row)

    def _add(self, row: Row) -> None:
        tail = self.tails.get(row.problem)
        number = len(self.tails) + 1 if tail is None else tail.number
        self._hashes.append(_hash(row))
        if row.key is not None:
            self._keys[row.problem, row.key] = row.seq
        self._newest.append(row)
        self.tails = {**self.tails, row.problem: Tail(number, row.seq, row.time)}
        if len(self._newest) >= 2 * BLOCK:
            self._seal(self._newest[:BLOCK])
            del self._newest[:BLOCK]

    def _seal(self, rows: Sequence[Row]) -> None:
        """Compress rows that follow the last block."""
        self._blocks.append(_compress(rows))
        self._lasts.append(rows[-1].seq)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(rows))

    def _block(self, index: int) -> list[Row]:
        """The rows of a block; after the last one come the newest rows."""
        if index == len(self._blocks):
            return self._newest
        block = self._blocks[index]
        if self._cached[0] is not block:
            self._cached = block, [Row._make(row) for row in marshal.loads(zlib.decompress(block))]
        return self._cached[1]

    def _rows(self, after: int) -> Iterator[Row]:
        """All rows after this one."""
        for index in range(bisect_right(self._lasts, after), len(self._blocks) + 1):
            for row in self._block(index):
                if row.seq > after:
                    yield row

    def read(self, problem: str | None, after: int, upto: int, size: int) -> list[Row]:
        """The next rows of a problem, or of all."""
        rows: list[Row] = []
        for row in self._rows(after):
            if row.seq > upto or len(rows) == size:
                break
            if problem is None or row.problem == problem:
                rows.append(row)
        return rows

    def keyed(self, problem: str, key: str) -> Row | None:
        """The row with this key."""
        seq = self._keys.get((problem, key))
        return None if seq is None else next(self._rows(seq - 1))

    def decided(self, problem: str, decision: str) -> list[Row]:
        """The rows of one decision."""
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        rows = []
        for i in np.flatnonzero(hashes == hash((problem, decision))).tolist():
            index = bisect_right(self._ends, i)
            row = self._block(index)[i - (self._ends[index - 1] if index else 0)]
            if (row.problem, row.decision) == (problem, decision):
                rows.append(row)
        return rows

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest snapshot."""
        return self._snapshots.get(problem)

    def keep(self, problem: str, seq: int, snapshot_key: str, blob: bytes) -> None:
        """Store a snapshot in place of an older one."""
        if problem not in self._snapshots or self._snapshots[problem][0] <= seq:
            self._snapshots[problem] = seq, snapshot_key, blob

    def discard(self, problem: str) -> None:
        """Delete the snapshot of this problem."""
        self._snapshots.pop(problem, None)

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace the keys and bodies of these rows."""
        changed = {row.seq: row for row in rows}
        for index in sorted({bisect_left(self._lasts, seq) for seq in changed}):
            before = self._block(index)
            after = [changed.get(row.seq, row) for row in before]
            for row in before:
                if row.key is not None and row.seq in changed and changed[row.seq].key is None:
                    del self._keys[row.problem, row.key]
            if index == len(self._blocks):
                self._newest = after
            else:
                self._blocks[index] = _compress(after)
        self._cached = b"", []

    def rebuild(self) -> None:
        """Nothing is left of rows that were rewritten."""

    def drop(self, upto: int, is_dropped: Callable[[Row], bool], first_decision: int) -> None:
        """Remove some of the rows up to this one for good; events from `first_decision` on are all there.

        Only blocks are looked through that end before `upto`, so a few hundred rows may stay.
        """
        count = bisect_right(self._lasts, upto)
        rows = list[Row]()
        for index in range(count):
            for row in self._block(index):
                if not is_dropped(row):
                    rows.append(row)
                elif row.key is not None:
                    del self._keys[row.problem, row.key]
        size = self._ends[count - 1] if count else 0
        blocks, lasts = self._blocks[count:], self._lasts[count:]
        ends = [end - size + len(rows) for end in self._ends[count:]]
        parts = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
        self._blocks = [*map(_compress, parts), *blocks]
        self._lasts = [*(part[-1].seq for part in parts), *lasts]
        self._ends = [*(min(i + BLOCK, len(rows)) for i in range(0, len(rows), BLOCK)), *ends]
        self._hashes = array("q", map(_hash, rows)) + self._hashes[size:]
        self.first_decision = first_decision

    def backup(self, path: object, pause: Pause) -> None:  # noqa: ARG002
        """Raise StoreError: there is no file to copy."""
        raise StoreError("a bandit in memory has no file to copy; save(path) writes one")

    def announce(self, url: str | None) -> None:
        """Do nothing: no other process can reach it."""

    def close_connection(self) -> None:
        """Do nothing but say so: the rows stay."""
        self.is_open = False

    def close(self) -> None:
        """Likewise."""
        self.is_open = False

    def leave_to_parent(self) -> None:
        """Do nothing: a forked child has rows of its own."""


def _hash(row: Row) -> int:
    return hash((row.problem, row.decision))


def _compress(rows: Sequence[Row]) -> bytes:
    return zlib.compress(marshal.dumps([tuple(row) for row in rows]), LEVEL)
