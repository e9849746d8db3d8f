"""The durable log of a store: rows of problems, in a file or a database, that are only ever appended.

    add      queues rows; it does not touch the disk, so a caller may hold its own lock meanwhile
    commit   returns once a row is durable

There is no writer thread. The first thread to commit writes the whole queue in one transaction, and threads
that waited find their rows written. So under load one fsync serves many rows. `Queue` holds the rows that
wait for their commit and the numbers of the committed ones. `Recent` holds the keys of the newest rows, so
that a caller who holds its lock can look one up without the disk.

When a commit fails, the backend may or may not have written the rows. So the queue is dropped, the backend is
opened again and read, and `epoch` is raised. Callers must then drop what they built in memory on rows of an
earlier epoch. The queue remembers the last durable row of each epoch that ended, for threads that still wait
for a row of it. If the backend cannot be read, the error says that the fate of the row is not known. If
another process has taken over the problem, `lost` says so, and nothing is written here again.
"""

import contextlib
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakSet

from unfog.live.backend import Backend, Change, Row
from unfog.live.errors import ConflictError, KeyForgottenError, OwnershipLostError, StoreError
from unfog.validation import InputError

SIZE = 4096  # keys in memory
ENDED = 1000  # epochs whose end is remembered
CHUNK = 10_000  # rows read at a time, while others wait
_open_logs: "WeakSet[EventLog]" = WeakSet()


class EventLog:
    """The rows of one backend, held by this process alone. All methods may be called from any thread."""

    def __init__(self, backend: Backend) -> None:
        """Open the backend, or create what is not there yet."""
        self.backend = backend
        self.lost: OwnershipLostError | None = None  # set once another process has taken over
        self._queue = Queue(backend.name, backend.only)
        self._commits = threading.Lock()  # held by the thread that uses the connection
        self._closed = False
        self.on_fork: Callable[[], None] = lambda: None  # called in a forked child, which cannot use the log
        self._failures: tuple[type[BaseException], ...] = (*backend.failures, OSError, StoreError)
        try:
            rewriting = self._open()
        except BaseException:
            backend.close()
            raise
        _open_logs.add(self)
        if rewriting:
            self._finish_rewriting()

    @property
    def path(self) -> Path | None:
        """The file; None for a database."""
        return self.backend.path

    @property
    def last(self) -> int:
        """The number of the last row, queued or committed."""
        return self._queue.last

    @property
    def committed(self) -> int:
        """The number of the last durable row."""
        return self._queue.committed

    def time_of(self, problem: str) -> float:
        """The time of a problem's last row, queued or committed; 0.0 for none."""
        return self._queue.time_of(problem)

    @property
    def epoch(self) -> int:
        """Increased when a commit fails: whatever was built in memory on queued rows must then be dropped."""
        return self._queue.epoch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def announce(self, url: str | None) -> None:
        """Publish the address at which other processes can reach this store."""
        self.backend.announce(url)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether a thread uses the backend, so that others have to wait."""
        return self._commits.locked()

    def names(self) -> list[str]:
        """The problems, in the order of their first rows, queued ones included."""
        queued = self._queue.problems()  # first, since a row that is committed in between is then in both
        return list(dict.fromkeys([*self.backend.tails, *queued]))

    def add(self, rows: Sequence[Row], epoch: int | None = None) -> int:
        """Queue rows that follow `last`; the number of the last one is the ticket for `commit`.

        With `epoch` the rows are refused if that epoch has ended since.
        """
        return self._queue.add(rows, epoch)

    def commit(self, ticket: int, epoch: int) -> None:
        """Return once the row with this number, queued in this epoch, is durable."""
        if self._queue.is_done(ticket, epoch):
            return
        with self._commits:
            if epoch == self.epoch and ticket > self.committed:
                self._ensure_open()
                self._flush()
            elif self._queue.is_open(epoch):
                with contextlib.suppress(StoreError):  # the next line raises that the fate is not known
                    self._ensure_open()
            self._queue.settle(ticket, epoch)

    def kept(self, ticket: int, epoch: int) -> bool | None:
        """Whether the row with this number, queued in this epoch, is durable; None: unknown. No disk."""
        return self._queue.kept(ticket, epoch)

    def read(self, problem: str | None = None, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        """Committed rows in order, of one problem or of all; other threads may write meanwhile."""
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
        """The committed row with this key, and the last row that was searched."""
        with self._using("the row of a key") as backend:
            return backend.keyed(problem, key), self.committed

    def recent(self, problem: str, key: str, mark: int) -> Row | None:
        """The row with this key after `mark`, from memory; KeyForgottenError if it is no longer there."""
        return self._queue.recent(problem, key, mark)

    def of(self, problem: str, decision: str) -> list[Row]:
        """All rows of one decision, queued ones included."""
        with self._using("the rows of a decision") as backend:
            rows = backend.decided(problem, decision)
            queued = [row for row in self._queue.rows() if (row.problem, row.decision) == (problem, decision)]
            return rows + queued

    def snapshot(self, problem: str) -> tuple[int, str, bytes] | None:
        """The newest undamaged snapshot: the row up to which it goes, its snapshot_key and its bytes."""
        with self._using(f"the snapshot of {problem!r}") as backend:
            return backend.snapshot(problem)

    def keep(
        self, problem: str, seq: int, snapshot_key: str, blob: bytes, then: Change = lambda: None
    ) -> None:
        """Store a snapshot of the state after row `seq`, and make another change in the same transaction."""

        def change() -> None:
            self.backend.keep(problem, seq, snapshot_key, blob)
            then()

        with self._commits:
            self._change(change)

    def discard(self, problem: str) -> None:
        """Delete the snapshots of a problem."""
        with self._commits:
            self._change(lambda: self.backend.discard(problem))

    def rewrite(self, rows: Sequence[Row]) -> None:
        """Replace keys and bodies of existing rows and append those that follow, in one transaction.

        Then the backend is rebuilt, so that it contains the old bytes nowhere. If only that fails, the error
        says that the rows are rewritten, and the backend is rebuilt when the store is opened again.
        """
        with self._commits:
            self._change(None)  # some of the rows may still be queued
            old = [row for row in rows if row.seq <= self.committed]
            if len(old) < len(rows):
                self._queue.add([row for row in rows if row.seq > self.committed], self.epoch)
            self._change(lambda: self.backend.rewrite(old))
            self._queue.forget()
            with self._wrap_errors("the rows are rewritten, but their old text may still be in the file"):
                self._ensure_open().rebuild()

    def backup(self, path: object) -> None:
        """Copy all rows to a new file, which can be opened as a store; other threads work meanwhile."""
        with self._commits:
            self._change(None)
            self._ensure_open().backup(path, self._pause)

    @contextlib.contextmanager
    def _pause(self) -> Iterator[None]:
        """Let other threads use the connection for a while."""
        self._commits.release()
        try:
            yield
        finally:
            self._commits.acquire()

    def close(self) -> None:
        """Commit what is queued and close the backend. Closing it again does nothing."""
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
        """The backend, for this thread alone; errors say what could not be read."""
        with self._commits, self._wrap_errors(f"{what} could not be read"):
            yield self._ensure_open()

    @contextlib.contextmanager
    def _wrap_errors(self, what: str) -> Iterator[None]:
        """Turn errors of the backend into a StoreError that begins with `what`."""
        try:
            yield
        except self.backend.failures as error:
            raise StoreError(f"{self.backend.label}: {what}: {self.backend.reason(error)}") from error

    def _ensure_open(self) -> Backend:
        """The backend, reopened if a failure closed it. The caller holds the lock."""
        if self._closed or self.lost is not None:
            raise StoreError(f"{self.backend.name} cannot be used: {self._queue.unusable}")
        if not self.backend.is_open:
            # Another process may have written meanwhile.
            self._queue.drop(self._queue.unusable or "the connection was lost")
            self._open()
        return self.backend

    def _change(self, change: Change | None) -> None:
        """Commit the queue and this change in one transaction, or raise."""
        self._ensure_open()
        epoch, ticket = self.epoch, self.last
        is_empty = ticket == self.committed
        self._flush(change)
        if epoch != self.epoch:
            self._queue.settle(ticket, epoch)  # the rows show if the transaction was committed
            if is_empty:
                message = f"it is not known whether it was done: {self._queue.why(epoch)}"
                raise StoreError(f"{self.backend.name}: {message}")

    def _flush(self, change: Change | None = None) -> None:
        """Commit all that is queued in one transaction. Afterwards memory and backend agree in any case."""
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
        """Drop what is queued, and open the backend again to see which rows it has."""
        self._queue.drop(self.backend.reason(error))
        self.backend.close_connection()
        if isinstance(error, OwnershipLostError):
            self._lose(error)
            return
        with contextlib.suppress(StoreError):  # every later use tries again, and raises if it fails
            self._open()

    def _open(self) -> bool:
        """Open the backend and load its last rows; returns whether a rewriting was interrupted."""
        try:
            last, rewriting = self.backend.open()
        except OwnershipLostError as error:
            self._lose(error)
            raise
        self._queue.load({name: tail.time for name, tail in self.backend.tails.items()}, last)
        return rewriting

    def _lose(self, error: OwnershipLostError) -> None:
        """Refuse any further use, since another process has taken over."""
        self.lost = error
        self._queue.lose(str(error), error.kept)

    def _finish_rewriting(self) -> None:
        """Rebuild the backend after an interrupted rewriting; warn if that fails."""
        try:
            with self._using("the file") as backend:
                backend.rebuild()
        except StoreError as error:
            warnings.warn(f"erased text may still be in the file: {error}", stacklevel=3)

    def _leave_to_parent(self) -> None:
        """After a fork, close the log in the child, with new locks that no thread holds; but a child has its
        own copy of rows in memory.
        """
        is_interrupted = self._commits.locked() or self.last > self.committed
        self._commits = threading.Lock()
        self._queue = Queue(self.backend.name, self.backend.only, self.epoch + is_interrupted)
        if self.backend.is_durable:
            self._closed = True
            self._queue.drop(f"it was opened by process {self.backend.pid}, which alone may use it")
            self.backend.leave_to_parent()
        elif not self._closed:
            self._open()
        self.on_fork()


class Queue:
    """The rows that wait for their commit to the backend `name`. No method touches the disk."""

    def __init__(self, name: str, only: str | None = None, epoch: int = 0) -> None:
        """`only`: the only problem whose rows are accepted; None: any."""
        self.name, self._only = name, only
        self.last = self.committed = 0
        self.epoch = epoch
        self._times: dict[str, float] = {}  # of the last row of each problem
        self.unusable = ""  # why nothing can be added
        self._rows: list[Row] = []
        self._recent = Recent()
        # Of each epoch that ended, its last durable row, if known, and why it ended.
        self._ended: dict[int, tuple[int | None, str]] = {}
        self._lock = threading.Lock()

    def problems(self) -> list[str]:
        """The problems of the rows that wait for a commit."""
        with self._lock:
            return [row.problem for row in self._rows]

    def time_of(self, problem: str) -> float:
        """The time of a problem's last row; 0.0 for none."""
        return self._times.get(problem, 0.0)

    def add(self, rows: Sequence[Row], epoch: int | None) -> int:
        """Queue rows that follow the last one; returns the number of the last of them."""
        with self._lock:
            if self.unusable:
                raise StoreError(f"{self.name} cannot be used: {self.unusable}; nothing was changed")
            if epoch is not None and epoch != self.epoch:
                raise StoreError(
                    f"{self.name}: rows before these were not kept; nothing was changed; ask again"
                )
            self._check_problem(rows)
            times = check(rows, self.last, self._times)
            self._recent.check(rows)
            self._rows.extend(rows)
            self._recent.add(rows, self.committed)
            self._times |= times
            self.last = rows[-1].seq
            return self.last

    def _check_problem(self, rows: Sequence[Row]) -> None:
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
        """Note that these rows, the first of the queue, are committed."""
        with self._lock:
            del self._rows[: len(rows)]
            self.committed = rows[-1].seq if rows else self.committed

    def drop(self, why: str) -> None:
        """End the epoch and drop the queue; whether its rows are durable is not known yet."""
        with self._lock:
            self.unusable = why
            self._ended[self.epoch] = (None, why)
            self.epoch += 1  # before `committed` changes, see `is_done`
            self._rows.clear()
            self.last = self.committed
            self._recent.start(self.committed)

    def load(self, times: dict[str, float], last: int) -> None:
        """Load what the backend has; the last durable row of ended epochs is now known."""
        with self._lock:
            self.last, self.committed, self._times = last, last, times
            self._recent.start(last)
            self._end(last)
            self.unusable = ""

    def lose(self, why: str, last: int | None) -> None:
        """Refuse rows from now on; `last` is the last durable row, if known."""
        with self._lock:
            self.unusable = why
            self._end(last)

    def _end(self, last: int | None) -> None:
        for epoch, (known, why) in self._ended.items():
            self._ended[epoch] = (last if known is None else known, why)
        for epoch in list(self._ended)[:-ENDED]:
            del self._ended[epoch]

    def forget(self) -> None:
        """Forget recent rows, since they may have been rewritten."""
        with self._lock:
            self._recent.start(self.committed)

    def is_done(self, ticket: int, epoch: int) -> bool:
        """Whether the row is known to be durable."""
        # In this order: `committed` passes a row of an ended epoch only after `epoch` was raised.
        return ticket <= self.committed and epoch == self.epoch

    def kept(self, ticket: int, epoch: int) -> bool | None:
        """Whether a queued row is durable; None while that is not known."""
        with self._lock:
            if epoch == self.epoch:
                return True if ticket <= self.committed else None
            last, _ = self._ended.get(epoch, (0, ""))
            return None if last is None else ticket <= last

    def is_open(self, epoch: int) -> bool:
        """Whether the last durable row of this ended epoch is not known yet."""
        return epoch in self._ended and self._ended[epoch][0] is None

    def why(self, epoch: int) -> str:
        """Why an epoch ended."""
        return self._ended[epoch][1]

    def settle(self, ticket: int, epoch: int) -> None:
        """Return if the row is durable, else raise what became of it."""
        last, why = self._ended.get(epoch, (0, "its epoch is long over"))
        if epoch == self.epoch:
            last, why = self.committed, "there is no such row"
        if last is None and ticket > self.committed:
            message = f"it is not known whether row {ticket} was kept: {why}"
            raise StoreError(f"{self.name}: {message}; retry with the same idempotency key to find out")
        if last is not None and ticket > last:
            raise StoreError(f"{self.name}: row {ticket} was not kept: {why}; nothing was changed")


class Recent:
    """The rows with a key after `floor`, by problem and key."""

    def __init__(self) -> None:
        self.floor = 0
        self._rows: OrderedDict[tuple[str, str], Row] = OrderedDict()

    def start(self, floor: int) -> None:
        """Forget all rows; rows after `floor` will be remembered."""
        self.floor = floor
        self._rows.clear()

    def check(self, rows: Sequence[Row]) -> None:
        """Raise ConflictError for a used key: at the commit it would make rows of other callers fail."""
        keys = [(row.problem, row.key) for row in rows if row.key is not None]
        if len(set(keys)) < len(keys):
            raise ConflictError("key", [key for _, key in keys], "a key for each row")
        for key in keys:
            if key in self._rows:
                raise ConflictError("key", key[1], "a key that no other row of the problem has")

    def add(self, rows: Sequence[Row], committed: int) -> None:
        """Remember rows; the oldest are forgotten, but never one that is not committed."""
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
            raise KeyForgottenError(key)
        row = self._rows.get((problem, key))
        return row if row is not None and row.seq > mark else None


def check(rows: Sequence[Row], last: int, times: Mapping[str, float]) -> dict[str, float]:
    """Raise InputError for rows that do not follow the last, or go back in the time of their problem.

    Returns the time of the last row of each of their problems.
    """
    if not rows:
        raise InputError("rows", "none", "at least one row")
    last_times: dict[str, float] = {}
    for row in rows:
        if row.seq != last + 1:
            raise InputError("seq", row.seq, f"{last + 1}, which follows the last row")
        before = last_times.get(row.problem, times.get(row.problem, 0.0))
        if not isfinite(row.time) or row.time < before:
            raise InputError("time", row.time, f"at least {before}, the time of the problem's last row")
        last, last_times[row.problem] = row.seq, row.time
    return last_times


def _leave_all_to_parent() -> None:
    """Close all logs in a forked child."""
    for log in list(_open_logs):
        log._leave_to_parent()


if os.name == "posix":
    os.register_at_fork(after_in_child=_leave_all_to_parent)
