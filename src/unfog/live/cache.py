"""The states of the problems of a log, in memory and as snapshots.

The state of a problem is the fold of its events. It is built when it is first needed, from the newest
snapshot that fits and the events after it. It is dropped when it may contain something that the log does not:
when a commit failed, or when something failed in the middle of a change.

A caller of a method must hold the lock of the store, unless the docstring says that the method takes it.
`saving` is taken after the lock of the store, never before it: a caller may hold that lock already.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from unfog.live import snapshot
from unfog.live.config import PreparedProblem
from unfog.live.errors import ImportInProgressError, StoreError
from unfog.live.log import EventLog
from unfog.live.snapshot import StateCopy, apply_rows
from unfog.live.state import State

SNAPSHOT_EVERY = 10_000  # events


class StateCache:
    """The states of one log."""

    def __init__(
        self, log: EventLog, lock: threading.RLock, config_of: Callable[[str], PreparedProblem]
    ) -> None:
        """Start without states; `config_of` returns the configuration of a problem."""
        self.epoch = log.epoch  # of the log, in which the states were built
        self.saving = threading.Lock()  # held while a snapshot is written, and while a unit is erased
        self._log, self._lock, self._config_of = log, lock, config_of
        self._states: dict[str, State] = {}
        self._since: dict[str, int] = {}  # events since the last snapshot
        self._reserved = set[str]()  # problems whose logs are being imported

    def renew_locks(self, lock: threading.RLock) -> None:
        """Replace the lock of the store and our own, which no thread holds then."""
        self._lock, self.saving = lock, threading.Lock()

    def get(self, name: str) -> State:
        """The state of a problem."""
        self.check_not_reserved(name)
        if self._log.epoch != self.epoch:
            self.clear()
            self.epoch = self._log.epoch
        state = self._states.get(name)
        if state is None:
            self._log.commit(self._log.last, self._log.epoch)
            state, self._since[name] = snapshot.restore_state(self._log, name, self._config_of(name))
            self._states[name] = state
        return state

    def load(self, name: str) -> None:
        """Build the state of a problem now, so that later callers need not wait. Takes the lock."""
        with self._lock:
            self.get(name)

    def is_loaded(self, name: str) -> bool:
        """Whether `get` returns without reading the log. Any thread may call this."""
        return name in self._states and self._log.epoch == self.epoch

    def drop(self, name: str) -> None:
        """Rebuild the state when it is next needed."""
        self._states.pop(name, None)

    def clear(self) -> None:
        """Drop all states."""
        self._states.clear()

    def count(self, name: str) -> None:
        """Note that one more event was logged."""
        self._since[name] = self._since.get(name, 0) + 1

    def unsaved(self, name: str) -> int:
        """How many events a process that starts now would have to read. Any thread may call this."""
        return self._since.get(name, 0)

    @contextmanager
    def reserved(self, name: str) -> Iterator[None]:
        """Refuse any other use of a problem meanwhile. Takes the lock briefly; inside, it is free."""
        with self._lock:
            self.check_not_reserved(name)
            self._log.commit(self._log.last, self._log.epoch)
            self._reserved.add(name)
            self.drop(name)
        try:
            yield
        finally:
            self._reserved.discard(name)

    def check_not_reserved(self, name: str) -> None:
        """Raise ImportInProgressError if the log of this problem is being imported."""
        if name in self._reserved:
            raise ImportInProgressError(f"the log of {name!r} is being imported; retry when that is done")

    def held(self, name: str) -> StateCopy:
        """A copy of a state, and the last row of the log that is in it. Takes the lock."""
        with self._lock:
            self._log.commit(self._log.last, self._log.epoch)  # the state includes queued rows
            state = self.get(name)
            return StateCopy(state, snapshot.content(state), self._log.last, self._log.epoch)

    def holds(self, name: str, held: StateCopy) -> bool:
        """Whether the state is still the same object, not rebuilt meanwhile. Any thread may call this."""
        return self._states.get(name) is held.state and self._log.epoch == held.epoch == self.epoch

    def replace(self, name: str, held: StateCopy, state: State, events: int) -> bool:
        """Replace the state that `held` is a copy of by one built from the first `events` events, and apply
        the events since then. False if that state is no longer the current one. Takes the lock.
        """
        with self._lock, self.saving:
            self._log.commit(self._log.last, self._log.epoch)
            if not self.holds(name, held):
                return False
            self._log.discard(name)  # a snapshot may have the same error
            self._states[name], replay = apply_rows(
                self._config_of(name), self._log.read(name, held.upto), state
            )
            self._since[name] = events + replay.events
            return True

    def save(self) -> None:
        """Write snapshots of all problems that have changed. Takes the lock briefly."""
        for name in list(self._states):
            self._save(name)

    def is_due(self) -> bool:
        """Whether a problem had many events since its last snapshot. Any thread may call this."""
        return any(since >= SNAPSHOT_EVERY for since in list(self._since.values()))

    def save_if_due(self) -> None:
        """Write snapshots of problems that had many events since the last one. Takes the lock briefly.

        Not of rows in memory, which no other process will read.
        """
        if not self._log.backend.is_durable:
            return
        for name in [name for name, since in list(self._since.items()) if since >= SNAPSHOT_EVERY]:
            with suppress(StoreError):  # a snapshot is only a cache: the caller's own work is done
                self._save(name, wait=False)

    def probe(self) -> None:
        """Write one snapshot, due or not, to find out if the disk works again. Takes the lock."""
        for name in self._log.names()[:1]:
            with self._lock:
                self.get(name)
                self.count(name)
            self._save(name)

    def _save(self, name: str, *, wait: bool = True) -> None:
        """Write a snapshot of a problem; the lock is held only while the content is copied. Without `wait`,
        do nothing while another thread writes one.
        """
        with self._lock:
            state = self._states.get(name)
            if state is None or self._since.get(name, 0) == 0:
                return
            if not self.saving.acquire(blocking=wait):
                return
            try:
                # The epoch in which the state was built, not that of the log once the content is copied: if a
                # commit fails meanwhile, the state contains rows that are not in the log.
                seq, epoch = self._log.last, self.epoch
                content = None
                if self._log.epoch == epoch:
                    content, self._since[name] = snapshot.content(state), 0
            except BaseException:
                self.saving.release()
                raise
        try:
            if content is not None:
                blob = snapshot.written(content)
                self._log.commit(seq, epoch)
                self._log.keep(name, seq, snapshot.snapshot_key(self._config_of(name)), blob)
        finally:
            self.saving.release()
