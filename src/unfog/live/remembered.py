"""What is remembered of the problems of a store.

It is the fold of their events. It is made when it is first asked for, from the newest snapshot that fits and
the events after it, and dropped when a commit fails: then it may hold what the file does not.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from unfog.live import against, snapshot, terms
from unfog.live.against import Held
from unfog.live.clock import Clock
from unfog.live.errors import Reserved, StoreError, Unknown
from unfog.live.log import Log
from unfog.live.made import Made
from unfog.live.replay import Replayed, folded
from unfog.live.ring import Ring
from unfog.live.state import State

SNAPSHOT_EVERY = 10_000  # events


class Remembered:
    """States by the names of problems, and the log they are made of."""

    def __init__(self, log: Log, clock: Callable[[], float] | None) -> None:
        """Nothing yet."""
        self.log = log
        self.lock = threading.RLock()
        self._clock = Clock(clock)
        self._epoch = log.epoch
        self._made: dict[str, Made] = {}
        self._states: dict[str, State] = {}
        self._since: dict[str, int] = {}  # events since the last snapshot
        self._reserved = set[str]()  # problems whose logs are being taken in
        self._rings: dict[str, Ring] = {}
        self._keeping = threading.Lock()  # whoever writes a snapshot has it, and who erases what one may hold

    def names(self) -> list[str]:
        """The problems that there are."""
        return self.log.names()

    def _known(self) -> str:
        return ", ".join(self.log.names()) or "none: the store is empty"

    def now(self, name: str = "") -> float:
        """The store's own time; for a problem it is never before its last event."""
        return max(self._clock.now(), self.log.time_of(name))

    def _body(self, name: str) -> dict[str, Any]:
        row = next(iter(self.log.read(name)), None)
        if row is None or row.kind != "problem":
            raise Unknown("name", repr(name), self._known())
        found: dict[str, Any] = json.loads(row.body)
        return found

    def made(self, name: str) -> Made:
        """What the terms of a problem come to."""
        found = self._made.get(name)
        if found is None:
            with self.lock:
                body = self._body(name)
                terms.refuse_other(body, {})  # code of the caller's own that is not what it was
                found = self._made[name] = Made(terms.Terms.read(body), new=False)
        return found

    @contextmanager
    def reserved(self, name: str) -> Iterator[None]:
        """Nothing else is done with a problem meanwhile, though the lock is free for all others."""
        with self.lock:
            self.refuse_reserved(name)
            self._reserved.add(name)
            self._states.pop(name, None)
            self.log.commit(self.log.last, self.log.epoch)
        try:
            yield
        finally:
            self._reserved.discard(name)

    def refuse_reserved(self, name: str) -> None:
        """Complain of a problem whose log is being taken in."""
        if name in self._reserved:
            raise Reserved(f"the log of {name!r} is being taken in; ask again when that is done")

    def state(self, name: str) -> State:
        """What is remembered of a problem. The caller holds the lock."""
        if self._reserved:
            self.refuse_reserved(name)
        if self.log.epoch != self._epoch:
            self._states.clear()
            self._epoch = self.log.epoch
        found = self._states.get(name)
        if found is None:
            self.log.commit(self.log.last, self.log.epoch)
            found, since = snapshot.restored(self.log, name, self.made(name))
            self._states[name], self._since[name] = found, since
        return found

    def remembers(self, name: str) -> bool:
        """Whether `state` has it without reading the log."""
        return name in self._states and self.log.epoch == self._epoch

    def warmed(self, name: str) -> None:
        """Read what is to be remembered of a problem, so that who asks for it later need not wait."""
        with self.lock:
            self.state(name)

    def ring(self, name: str) -> Ring:
        """The newest decisions of a problem, for who looks at its past. The caller holds the lock."""
        if name not in self._rings:
            self._rings[name] = Ring(self.log, name, self.made(name).terms)
        return self._rings[name]

    def digest(self, name: str) -> str:
        """A hash of all that is remembered of a problem."""
        return snapshot.digest(self.state(name))

    def replay(self, verify: bool = False, problem: str | None = None) -> dict[str, Replayed]:
        """Read the log from its beginning, and hold what is remembered against it; others go on meanwhile.

        With `verify` every decision is made again, too, and must come out as it was logged but for rounding;
        those from before an erasure cannot be.
        """
        chosen = self.names() if problem is None else [problem]
        return {name: against.replayed(self, name, verify) for name in chosen}

    def held(self, name: str) -> Held:
        """What is remembered of a problem now, and up to which row of the log it goes."""
        with self.lock:
            self.log.commit(self.log.last, self.log.epoch)  # it holds rows that are queued, too
            state = self.state(name)
            return Held(state, snapshot.content(state), self.log.last, self.log.epoch)

    def holds(self, name: str, held: Held) -> bool:
        """Whether it is that, with what came since; else it was dropped meanwhile, and made anew."""
        return self._states.get(name) is held.state and self.log.epoch == held.epoch == self._epoch

    def put_right(self, name: str, held: Held, state: State, events: int) -> bool:
        """Remember the state that so many events up to there say, with what came since.

        False where it was dropped meanwhile.
        """
        with self._keeping, self.lock:
            self.log.commit(self.log.last, self.log.epoch)
            if not self.holds(name, held):
                return False
            self.log.discard(name)  # a snapshot may say the same as what was remembered
            self._states[name], more = folded(self.made(name), self.log.read(name, held.upto), state)
            self._since[name] = events + more.events
            return True

    def fresh(self, name: str) -> State:
        """What the log says of a problem, to be changed without changing what is remembered."""
        return folded(self.made(name), self.log.read(name))[0]

    def unsaved(self, name: str) -> int:
        """Events since the last snapshot that somebody who starts anew would have to read."""
        return self._since.get(name, 0)

    def snapshot(self) -> None:
        """Write down what is remembered, so that the next start is quick."""
        with self._keeping:
            for name in list(self._states):
                self._keep(name)

    def snapshot_is_due(self) -> bool:
        """Whether there were many events since the last time."""
        return any(since >= SNAPSHOT_EVERY for since in list(self._since.values()))

    def snapshot_if_due(self) -> None:
        """Write down what is remembered of problems with many events since the last time."""
        due = [name for name, since in list(self._since.items()) if since >= SNAPSHOT_EVERY]
        if not due or not self._keeping.acquire(blocking=False):
            return  # somebody is at it
        try:
            for name in due:
                with suppress(StoreError):  # it is a cache: what was asked for is done
                    self._keep(name)
        finally:
            self._keeping.release()

    def prove(self) -> None:
        """Write what is remembered of a problem, due or not: so a disk that failed shows whether it works."""
        for name in self.names()[:1]:
            with self.lock:
                self.state(name)
                self._since[name] = self._since.get(name, 0) + 1
            self._keep(name)

    def _keep(self, name: str) -> None:
        """Others wait only while what is to be written is put together."""
        with self.lock:
            state = self._states.get(name)
            if state is None or self._since.get(name, 0) == 0 or self.log.epoch != self._epoch:
                return
            seq, told = self.log.last, snapshot.content(state)
            self._since[name] = 0
            epoch = self.log.epoch
        blob = snapshot.written(told)
        self.log.commit(seq, epoch)
        self.log.keep(name, seq, snapshot.fingerprint(self.made(name)), blob)
