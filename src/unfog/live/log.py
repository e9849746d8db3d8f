"""The durable log of a store: rows of problems, in a file or a database, that are only ever appended.

    add      queues rows; it does not touch the disk, so a caller may hold its own lock meanwhile
    commit   returns once a row is durable

There is no writer thread. Whoever commits first writes the whole queue in one transaction, and those who
waited find their rows written. So under load one fsync serves many rows. `Queue` holds the rows that wait for
their commit and the numbers of the committed ones. `Recent` holds the keys of the newest rows, so that a
caller who holds its lock can look one up without the disk.

When a commit fails, the backend is asked what it has: the queue is dropped, the backend is opened again and
read, and `epoch` is raised. Callers must then drop what they built in memory on rows of an earlier epoch. The
queue remembers up to which row each ended epoch was kept, for threads that still wait for a row of it. If the
backend cannot be read, the error says that the fate of the row is not known. If another process has taken the
problem over, `lost` says so, and nothing is written here again.
"""

import contextlib
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakSet

from unfog.live.backend import Backend, Change, Row
from unfog.live.errors import Conflict, Lost, Stale, StoreError
from unfog.validation import InputError

SIZE = 4096  # keys that are remembered
ENDED = 1000  # epochs whose end is remembered
CHUNK = 10_000  # rows read at a time, while others wait
_opened: "WeakSet[Log]" = WeakSet()


class Log:
    """The rows of one backend, held by this process alone. All methods may be called from any thread."""

    def __init__(self, backend: Backend) -> None:
        """Open the backend, or create what is not there yet."""
        self.backend = backend
        self.lost: Lost | None = None  # who has it now
        self._queue = Queue(backend.name, backend.only)
        self._commits = threading.Lock()  # whoever uses the connection has it
        self._closed = False
        self._failures: tuple[type[BaseException], ...] = (*backend.failures, OSError, StoreError)
        try:
            rewriting = self._open()
        except BaseException:
            backend.close()
            raise
        _opened.add(self)
        if rewriting:
            self._finish_rewriting()

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        return self.backend.path

    @property
    def last(self) -> int:
        """The highest number handed out, queued or committed."""
        return self._queue.last

    @property
    def committed(self) -> int:
        """The highest number that is durable."""
        return self._queue.committed

    def time_of(self, problem: str) -> float:
        """The time of a problem's last row, queued or committed; 0.0 for none."""
        return self._queue.time_of(problem)

    @property
    def epoch(self) -> int:
        """Raised when a commit failed: everything in memory that was built on queued rows must be dropped."""
        return self._queue.epoch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def announce(self, url: str | None) -> None:
        """Tell those who are refused where this store can be reached."""
        self.backend.announce(url)

    @property
    def closed(self) -> bool:
        """Whether it was given back."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether somebody uses the backend, so that whoever wants to has to wait."""
        return self._commits.locked()

    def names(self) -> list[str]:
        """The problems, in the order of their first rows, queued ones included."""
        queued = self._queue.problems()  # first: what is committed in between is in both
        return list(dict.fromkeys([*self.backend.tails, *queued]))

    def add(self, rows: Sequence[Row], epoch: int | None = None) -> int:
        """Queue rows that follow `last`; the last one's number is the ticket for `commit`.

        With `epoch` the rows are refused if what they were built on has been dropped since.
        """
        return self._queue.add(rows, epoch)

    def commit(self, ticket: int, epoch: int) -> None:
        """Return once the row with this number, queued in this epoch, is durable."""
        if self._queue.is_done(ticket, epoch):
            return
        with self._commits:
            if epoch == self.epoch and ticket > self.committed:
                self._ready()
                self._flush()
            elif self._queue.is_open(epoch):
                with contextlib.suppress(StoreError):  # said in the next line: it is not known
                    self._ready()
            self._queue.settle(ticket, epoch)

    def kept(self, ticket: int, epoch: int) -> bool | None:
        """Whether the row with this number, queued in this epoch, is durable; None: not known. No disk."""
        return self._queue.kept(ticket, epoch)

    def read(self, problem: str | None = None, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        """Committed rows in order, of one problem or of all; others may write while this goes on."""
        with self._using("the rows"):
            upto = self.committed if upto is None else min(upto, self.committed)
        return self._stream(problem, after, upto)

    def _stream(self, problem: str | None, after: int, upto: int) -> Iterator[Row]:
        while after < upto:
            with self._using(f"rows after {after}") as backend:
                rows = backend.read(problem, after, upto, CHUNK)
            if not rows:
                return
            yield from rows
            after = rows[-1].seq

    def find(self, problem: str, key: str) -> tuple[Row | None, int]:
        """The committed row with this key, and up to which row this was looked for."""
        with self._using("the row of a key") as backend:
            return backend.keyed(problem, key), self.committed

    def recent(self, problem: str, key: str, mark: int) -> Row | None:
        """The row with this key after `mark`, queued or committed; Stale where that is forgotten. No disk."""
        return self._queue.recent(problem, key, mark)

    def of(self, problem: str, decision: str) -> list[Row]:
        """All rows of one decision, queued ones included."""
        with self._using("the rows of a decision") as backend:
            rows = backend.decided(problem, decision)
            queued = [row for row in self._queue.rows() if (row.problem, row.decision) == (problem, decision)]
            return rows + queued

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest that was kept and is whole: its row, its fingerprint and itself."""
        with self._using(f"the snapshot of {problem!r}") as backend:
            return backend.snapshot(problem)

    def keep(self, problem: str, seq: int, fingerprint: str, blob: bytes) -> None:
        """Keep a snapshot of what the rows up to `seq` say; the two newest are kept."""
        with self._commits:
            self._change(lambda: self.backend.keep(problem, seq, fingerprint, blob))

    def discard(self, problem: str) -> None:
        """Throw the snapshots of a problem away."""
        with self._commits:
            self._change(lambda: self.backend.discard(problem))

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace keys and bodies of rows that are there and append those that follow, in one transaction.

        Then the backend is rebuilt, so that the old bytes are nowhere in it. Where that fails the rows are
        rewritten, the error says so, and it is done when the store is opened again.
        """
        with self._commits:
            self._change(None)  # some of the rows may still be queued
            old = [row for row in rows if row.seq <= self.committed]
            if len(old) < len(rows):
                self._queue.add([row for row in rows if row.seq > self.committed], self.epoch)
            self._change(lambda: self.backend.rewrite(old))
            self._queue.forget()
            with self._saying("the rows are rewritten, but their old text may still be in the file"):
                self._ready().rebuild()

    def backup(self, path: object) -> None:
        """Copy all rows to a new file, which can be opened as a store; others work meanwhile."""
        with self._commits:
            self._change(None)
            self._ready().backup(path, self._pause)

    @contextlib.contextmanager
    def _pause(self) -> Iterator[None]:
        """Leave the connection to others for a while."""
        self._commits.release()
        try:
            yield
        finally:
            self._commits.acquire()

    def close(self) -> None:
        """Commit what is queued and give the backend back. To close it again does nothing."""
        with self._commits:
            if self._closed:
                return
            ticket, epoch = self.last, self.epoch
            try:
                if self.backend.is_open and ticket > self.committed:
                    self._flush()
                self._queue.settle(ticket, epoch)
            finally:
                self._closed = True
                self._queue.drop("it is closed; open it again")
                self.backend.close()

    @contextlib.contextmanager
    def _using(self, what: str) -> Iterator[Backend]:
        """The backend, alone; an error says what of it could not be read."""
        with self._commits, self._saying(f"{what} could not be read"):
            yield self._ready()

    @contextlib.contextmanager
    def _saying(self, what: str) -> Iterator[None]:
        try:
            yield
        except self.backend.failures as error:
            raise StoreError(f"{self.backend.label}: {what}: {self.backend.reason(error)}") from error

    def _ready(self) -> Backend:
        """The backend, opened again where a failure closed it. The caller holds the lock."""
        if self._closed or self.lost is not None:
            raise StoreError(f"{self.backend.name} cannot be used: {self._queue.unusable}")
        if not self.backend.is_open:
            # Another process may have written meanwhile.
            self._queue.drop(self._queue.unusable or "the connection was lost")
            self._open()
        return self.backend

    def _change(self, change: Change | None) -> None:
        """The queue and this change in one transaction, or an error."""
        self._ready()
        epoch, ticket = self.epoch, self.last
        alone = ticket == self.committed
        self._flush(change)
        if epoch != self.epoch:
            self._queue.settle(ticket, epoch)  # the rows show whether the transaction is there
            if alone:
                said = f"it is not known whether it was done: {self._queue.why(epoch)}"
                raise StoreError(f"{self.backend.name}: {said}")

    def _flush(self, change: Change | None = None) -> None:
        """One transaction for all that is queued. Whatever happens, afterwards memory and backend agree."""
        try:
            rows = self._queue.rows()
            self.backend.write(rows, change)
            self._queue.done(rows)
        except self._failures as error:
            self._fail(error)
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        """Drop what is queued and see what the backend says."""
        self._queue.drop(self.backend.reason(error))
        self.backend.close_connection()
        if isinstance(error, Lost):
            self._lose(error)
            return
        with contextlib.suppress(StoreError):  # then every use tries again, and says why it cannot
            self._open()

    def _open(self) -> bool:
        """Open the backend and take from it what is there; whether a rewriting was cut short."""
        try:
            last, rewriting = self.backend.open()
        except Lost as error:
            self._lose(error)
            raise
        self._queue.load({name: tail.time for name, tail in self.backend.tails.items()}, last)
        return rewriting

    def _lose(self, error: Lost) -> None:
        """Never to be used again."""
        self.lost = error
        self._queue.lose(str(error), error.kept)

    def _finish_rewriting(self) -> None:
        """Rebuild the backend where that is still to come; if it cannot be, that is said, not hidden."""
        try:
            with self._using("the file") as backend:
                backend.rebuild()
        except StoreError as error:
            warnings.warn(f"erased text may still be in the file: {error}", stacklevel=3)

    def _leave_to_parent(self) -> None:
        """After a fork, be closed in the child, with locks that no thread holds."""
        self._closed = True
        self._commits = threading.Lock()
        self._queue = Queue(self.backend.name, self.backend.only)
        self._queue.drop(f"it was opened by process {self.backend.pid}, which alone may use it")
        self.backend.leave_to_parent()


class Queue:
    """Rows on their way to the backend called `name`. No method touches the disk."""

    def __init__(self, name: str, only: str | None = None) -> None:
        """`only`: the problem whose rows alone are taken."""
        self.name, self._only = name, only
        self.last = self.committed = self.epoch = 0
        self._times: dict[str, float] = {}  # of the last row of each problem
        self.unusable = ""  # why nothing can be added
        self._rows: list[Row] = []
        self._recent = Recent()
        self._ended: dict[int, tuple[int | None, str]] = {}  # up to which row an epoch was kept, and why
        self._lock = threading.Lock()

    def problems(self) -> list[str]:
        """The problems of the rows that wait for a commit."""
        with self._lock:
            return [row.problem for row in self._rows]

    def time_of(self, problem: str) -> float:
        """The time of a problem's last row; 0.0 for none."""
        return self._times.get(problem, 0.0)

    def add(self, rows: Sequence[Row], epoch: int | None) -> int:
        """Queue rows that follow the last one; the number of the last of them."""
        with self._lock:
            if self.unusable:
                raise StoreError(f"{self.name} cannot be used: {self.unusable}; nothing was changed")
            if epoch is not None and epoch != self.epoch:
                raise StoreError(
                    f"{self.name}: rows before these were not kept; nothing was changed; ask again"
                )
            self._refuse_others(rows)
            times = check(rows, self.last, self._times)
            self._recent.check(rows)
            self._rows.extend(rows)
            self._recent.add(rows, self.committed)
            self._times |= times
            self.last = rows[-1].seq
            return self.last

    def _refuse_others(self, rows: Sequence[Row]) -> None:
        for row in rows if self._only is not None else ():
            if row.problem != self._only:
                raise InputError("problem", repr(row.problem), f"{self._only!r}, which alone is kept here")

    def recent(self, problem: str, key: str, mark: int) -> Row | None:
        """The row with this key after `mark`."""
        with self._lock:
            return self._recent.find(problem, key, mark)

    def rows(self) -> list[Row]:
        """The rows that wait for a commit."""
        with self._lock:
            return list(self._rows)

    def done(self, rows: Sequence[Row]) -> None:
        """These, the first that waited, are committed."""
        with self._lock:
            del self._rows[: len(rows)]
            self.committed = rows[-1].seq if rows else self.committed

    def drop(self, why: str) -> None:
        """End the epoch: the rows that wait were not kept, as far as is known."""
        with self._lock:
            self.unusable = why
            self._ended[self.epoch] = (None, why)
            self.epoch += 1  # before `committed` changes, see `is_done`
            self._rows.clear()
            self.last = self.committed
            self._recent.start(self.committed)

    def load(self, times: dict[str, float], last: int) -> None:
        """Take what the backend says; epochs whose end was not known have it now."""
        with self._lock:
            self.last, self.committed, self._times = last, last, times
            self._recent.start(last)
            self._end(last)
            self.unusable = ""

    def lose(self, why: str, kept: int | None) -> None:
        """Never take a row again; the last that was kept is known, or not."""
        with self._lock:
            self.unusable = why
            self._end(kept)

    def _end(self, last: int | None) -> None:
        for epoch, (kept, why) in self._ended.items():
            self._ended[epoch] = (last if kept is None else kept, why)
        for epoch in list(self._ended)[:-ENDED]:
            del self._ended[epoch]

    def forget(self) -> None:
        """Rows were rewritten: those in memory may not be as they were."""
        with self._lock:
            self._recent.start(self.committed)

    def is_done(self, ticket: int, epoch: int) -> bool:
        """Whether the row is known to be durable."""
        # In this order: `committed` passes a row of an ended epoch only after `epoch` was raised.
        return ticket <= self.committed and epoch == self.epoch

    def kept(self, ticket: int, epoch: int) -> bool | None:
        """Whether a row that was queued is durable, or lost; None while that is not known."""
        with self._lock:
            if epoch == self.epoch:
                return True if ticket <= self.committed else None
            last, _ = self._ended.get(epoch, (0, ""))
            return None if last is None else ticket <= last

    def is_open(self, epoch: int) -> bool:
        """Whether the end of this epoch is not known yet."""
        return epoch in self._ended and self._ended[epoch][0] is None

    def why(self, epoch: int) -> str:
        """What ended an epoch."""
        return self._ended[epoch][1]

    def settle(self, ticket: int, epoch: int) -> None:
        """Return where the row is kept, else say what became of it."""
        kept, why = self._ended.get(epoch, (0, "its epoch is long over"))
        if epoch == self.epoch:
            kept, why = self.committed, "there is no such row"
        if kept is None and ticket > self.committed:
            said = f"it is not known whether row {ticket} was kept: {why}"
            raise StoreError(f"{self.name}: {said}; to ask again with the same key tells")
        if kept is not None and ticket > kept:
            raise StoreError(f"{self.name}: row {ticket} was not kept: {why}; nothing was changed")


class Recent:
    """The rows with a key after `floor`, by problem and key."""

    def __init__(self) -> None:
        self.floor = 0
        self._rows: OrderedDict[tuple[str, str], Row] = OrderedDict()

    def start(self, floor: int) -> None:
        """Remember nothing, from here on."""
        self.floor = floor
        self._rows.clear()

    def check(self, rows: Sequence[Row]) -> None:
        """Refuse a key that is taken: at the commit it would take the rows of others down with it."""
        keys = [(row.problem, row.key) for row in rows if row.key is not None]
        if len(set(keys)) < len(keys):
            raise Conflict("key", [key for _, key in keys], "a key for each row")
        for key in keys:
            if key in self._rows:
                raise Conflict("key", key[1], "a key that no other row of the problem has")

    def add(self, rows: Sequence[Row], committed: int) -> None:
        """Remember rows; the oldest are forgotten, those not yet committed never."""
        for row in rows:
            if row.key is not None:
                self._rows[row.problem, row.key] = row
        while len(self._rows) > SIZE:
            oldest = next(iter(self._rows.values()))
            if oldest.seq > committed:
                break
            self._rows.popitem(last=False)
            self.floor = oldest.seq

    def find(self, problem: str, key: str, mark: int) -> Row | None:
        """The row with this key among those after `mark`."""
        if mark < self.floor:
            raise Stale(key)
        row = self._rows.get((problem, key))
        return row if row is not None and row.seq > mark else None


def check(rows: Sequence[Row], last: int, times: Mapping[str, float]) -> dict[str, float]:
    """Refuse rows that do not follow the last, or go back in the time of their problem.

    The times of the last row of each of their problems.
    """
    if not rows:
        raise InputError("rows", "none", "at least one row")
    found: dict[str, float] = {}
    for row in rows:
        if row.seq != last + 1:
            raise InputError("seq", row.seq, f"{last + 1}, which follows the last row")
        before = found.get(row.problem, times.get(row.problem, 0.0))
        if not isfinite(row.time) or row.time < before:
            raise InputError("time", row.time, f"at least {before}, the time of the problem's last row")
        last, found[row.problem] = row.seq, row.time
    return found


def _leave_all() -> None:
    for log in list(_opened):
        log._leave_to_parent()


if os.name == "posix":
    os.register_at_fork(after_in_child=_leave_all)
