"""What is remembered of the problems of a log: their states, in memory and as snapshots.

The state of a problem is the fold of its events. It is made when it is first needed, from the newest snapshot
that fits and the events after it, and dropped where it may hold what the log does not: when a commit failed,
or when something failed in the middle of a change.

A method needs the lock of the store unless it says that it takes it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from unfog.live import snapshot
from unfog.live.config import Made
from unfog.live.errors import Reserved, StoreError
from unfog.live.log import Log
from unfog.live.snapshot import Held, folded
from unfog.live.state import State

SNAPSHOT_EVERY = 10_000  # events


class StateCache:
    """The states of one log."""

    def __init__(self, log: Log, lock: threading.RLock, made: Callable[[str], Made]) -> None:
        """Nothing is read yet; `made` gives what the terms of a problem come to."""
        self.epoch = log.epoch  # of the log, in which the states were made
        self.saving = threading.Lock()  # held while a snapshot is written, and while a unit is erased
        self._log, self._lock, self._made = log, lock, made
        self._states: dict[str, State] = {}
        self._since: dict[str, int] = {}  # events since the last snapshot
        self._reserved = set[str]()  # problems whose logs are being imported

    def get(self, name: str) -> State:
        """The state of a problem."""
        self.refuse_reserved(name)
        if self._log.epoch != self.epoch:
            self.clear()
            self.epoch = self._log.epoch
        state = self._states.get(name)
        if state is None:
            self._log.commit(self._log.last, self._log.epoch)
            state, self._since[name] = snapshot.restored(self._log, name, self._made(name))
            self._states[name] = state
        return state

    def load(self, name: str) -> None:
        """Read a problem now, so that whoever asks for it later need not wait. Takes the lock."""
        with self._lock:
            self.get(name)

    def is_loaded(self, name: str) -> bool:
        """Whether `get` need not read the log. Any thread may ask."""
        return name in self._states and self._log.epoch == self.epoch

    def drop(self, name: str) -> None:
        """Make the state anew when it is next asked for."""
        self._states.pop(name, None)

    def clear(self) -> None:
        """Drop all states."""
        self._states.clear()

    def count(self, name: str) -> None:
        """One more event was logged."""
        self._since[name] = self._since.get(name, 0) + 1

    def unsaved(self, name: str) -> int:
        """How many events a process that starts now would have to read. Any thread may ask."""
        return self._since.get(name, 0)

    @contextmanager
    def reserved(self, name: str) -> Iterator[None]:
        """Refuse everybody else's use of a problem meanwhile; the lock is free. Takes the lock."""
        with self._lock:
            self.refuse_reserved(name)
            self._reserved.add(name)
            self.drop(name)
            self._log.commit(self._log.last, self._log.epoch)
        try:
            yield
        finally:
            self._reserved.discard(name)

    def refuse_reserved(self, name: str) -> None:
        """Raise Reserved if the log of this problem is being imported."""
        if name in self._reserved:
            raise Reserved(f"the log of {name!r} is being taken in; ask again when that is done")

    def held(self, name: str) -> Held:
        """A copy of a state, and up to which row of the log it goes. Takes the lock."""
        with self._lock:
            self._log.commit(self._log.last, self._log.epoch)  # it holds rows that are queued, too
            state = self.get(name)
            return Held(state, snapshot.content(state), self._log.last, self._log.epoch)

    def holds(self, name: str, held: Held) -> bool:
        """Whether the state is still that one, and was not made anew meanwhile. Any thread may ask."""
        return self._states.get(name) is held.state and self._log.epoch == held.epoch == self.epoch

    def replace(self, name: str, held: Held, state: State, events: int) -> bool:
        """Put a state made of the first `events` events in place of the one that was held; False where that
        is not the current one any more. What came since is added. Takes the lock.
        """
        with self.saving, self._lock:
            self._log.commit(self._log.last, self._log.epoch)
            if not self.holds(name, held):
                return False
            self._log.discard(name)  # a snapshot may hold the same fault
            self._states[name], more = folded(self._made(name), self._log.read(name, held.upto), state)
            self._since[name] = events + more.events
            return True

    def save(self) -> None:
        """Write snapshots of all problems that have changed. Takes the lock briefly."""
        with self.saving:
            for name in list(self._states):
                self._save(name)

    def is_due(self) -> bool:
        """Whether a problem had many events since its last snapshot. Any thread may ask."""
        return any(since >= SNAPSHOT_EVERY for since in list(self._since.values()))

    def save_if_due(self) -> None:
        """Write snapshots of problems that had many events since the last one. Takes the lock briefly."""
        due = [name for name, since in list(self._since.items()) if since >= SNAPSHOT_EVERY]
        if not due or not self.saving.acquire(blocking=False):
            return  # another thread is at it
        try:
            for name in due:
                with suppress(StoreError):  # a snapshot is a cache: what was asked for is done
                    self._save(name)
        finally:
            self.saving.release()

    def probe(self) -> None:
        """Write one snapshot, due or not, to find out whether the disk works again. Takes the lock."""
        for name in self._log.names()[:1]:
            with self._lock:
                self.get(name)
                self.count(name)
            self._save(name)

    def _save(self, name: str) -> None:
        """Others wait only while the content is put together."""
        with self._lock:
            state = self._states.get(name)
            if state is None or self._since.get(name, 0) == 0 or self._log.epoch != self.epoch:
                return
            seq, content = self._log.last, snapshot.content(state)
            self._since[name] = 0
            epoch = self._log.epoch
        blob = snapshot.written(content)
        self._log.commit(seq, epoch)
        self._log.keep(name, seq, snapshot.fingerprint(self._made(name)), blob)
