"""The command processor of a store: it carries out commands, logs them, and answers once that is durable.

While the processor holds its lock it logs what has expired, checks the command (live/commands.py), changes
the state and queues the event. It then waits, without the lock, for the commit that holds the event, and
answers only after that. Events are counted once they are durable (`EventCounts`), since a commit may fail.
The states of the problems are in live/cache.py; users see `Store` and `Problem`.

The clock gives seconds since 1970 and never goes back, whatever happens to the clock of the machine. The wall
clock is read once, when the store is opened; from then on a clock that cannot be set measures how much time
has passed. If the last event of a problem is later than the wall clock, time stands still for that problem
until the wall clock has caught up: no decision expires early because a clock was set back. Other problems are
not affected: a log from a machine with a fast clock must not make their decisions expire.
"""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from unfog.live import transfer
from unfog.live.arms import Arms
from unfog.live.backend import LAST, Row
from unfog.live.cache import StateCache
from unfog.live.commands import Command, Event, Expire
from unfog.live.config import PreparedProblem, ProblemConfig, channel_needed, check_unchanged
from unfog.live.errors import ConflictError, InternalError, KeyForgottenError, NotFoundError, StoreError
from unfog.live.history import RecentDecisions
from unfog.live.log import EventLog
from unfog.live.requests import REQUEST
from unfog.live.state import State
from unfog.validation import count, display

ENCODE = json.JSONEncoder(allow_nan=False).encode  # created once: creating it takes as long as using it
MOST_WAITING = 1000  # events that are not yet counted
Labels: TypeAlias = tuple[str, str, str]  # problem, kind and outcome


class MonotonicClock:
    """The clock of one store."""

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        """`wall` replaces the machine's clock, for tests and simulations."""
        self._last, self._wall = 0.0, wall
        self._start, self._since = time.time(), passing()

    def now(self) -> float:
        """Seconds since 1970, never less than before."""
        wall = self._start + passing() - self._since if self._wall is None else float(self._wall())
        self._last = max(self._last, wall)
        return self._last


def passing() -> float:
    """Seconds of a clock that cannot be set and, if there is one, that runs while the machine sleeps."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.monotonic()


class EventCounts:
    """Counts of this process's events by problem, kind and outcome. Any thread may use it.

    Whether events are durable is checked when the counts are read, or when many events wait.
    """

    def __init__(self, log: EventLog) -> None:
        """Start without counts."""
        self._log, self._lock = log, threading.Lock()
        self._waiting: deque[tuple[int, int, Labels]] = deque()  # numbers of rows, and their epochs
        self._counts: Counter[Labels] = Counter()

    def add(self, seq: int, epoch: int, labels: Labels) -> None:
        """Note that a row was queued, to be counted once it is durable."""
        with self._lock:
            self._waiting.append((seq, epoch, labels))
            if len(self._waiting) >= MOST_WAITING:
                self._settle()

    def counts(self) -> Counter[Labels]:
        """The counts of all rows that are durable by now."""
        with self._lock:
            self._settle()
            return self._counts.copy()

    def _settle(self) -> None:
        while self._waiting:
            seq, epoch, labels = self._waiting[0]
            is_durable = self._log.kept(seq, epoch)
            if is_durable is None:
                return
            self._counts[labels] += is_durable
            self._waiting.popleft()


class Batch:
    """Rows that were queued together and wait for one commit."""

    def __init__(self, log: EventLog) -> None:
        """Begin before the first row."""
        self._log, self._ticket, self._epochs = log, 0, (log.epoch, log.epoch)
        self.alone = True  # whether no enclosing batch will settle them
        self.some = False  # whether there is anything to write

    def end(self, *, alone: bool) -> None:
        """Note that the last row was queued."""
        self._ticket, self._epochs, self.alone = self._log.last, (self._epochs[0], self._log.epoch), alone
        self.some = self._ticket > self._log.committed

    def settle(self) -> None:
        """Return once all are durable."""
        first, last = self._epochs
        self._log.commit(self._ticket, last)
        if first != last:
            message = "a commit failed meanwhile, and it is not known what was kept"
            raise StoreError(
                f"{self._log.backend.name}: {message}; retry with the same idempotency key to find out"
            )


class Done(NamedTuple):
    """A command that was carried out: its event, as it stands in the log."""

    seq: int
    decision: str | None
    body: dict[str, Any]
    arms: Arms | None = None  # at that time; None if the answer is an earlier one


class Processor:
    """Carries out commands on the problems of one log. Threads may share it."""

    def __init__(self, log: EventLog, clock: Callable[[], float] | None = None) -> None:
        """`log` must be open; `clock` replaces the machine's."""
        self.log = log
        self.lock = threading.RLock()
        self._configs: dict[str, PreparedProblem] = {}
        self.cache = StateCache(log, self.lock, self.made)
        self._clock = MonotonicClock(clock)
        self._rings: dict[str, RecentDecisions] = {}
        self._batches = 0  # how many batches are being gathered, one within the other
        self._counted = EventCounts(log)
        log.on_fork = self._renew_locks

    def _renew_locks(self) -> None:
        """Replace the locks in a forked child, where threads that held them do not exist."""
        if not self.lock.acquire(blocking=False):  # another thread was changing a state
            self.cache.clear()
        self.lock = threading.RLock()
        self.cache.renew_locks(self.lock)
        self._counted = EventCounts(self.log)

    def close(self) -> None:
        """Write snapshots, and close the log."""
        try:
            self.cache.save()
        finally:
            self.log.close()

    def create(self, name: str, body: dict[str, Any]) -> None:
        """Create a problem from the body of its first event. The caller holds the lock."""
        body = json.loads(json.dumps(body))
        config = PreparedProblem(ProblemConfig.read(body))
        body = json.loads(json.dumps({**body, "channel": channel_needed(body["channel"], config.agent)}))
        config = PreparedProblem(ProblemConfig.read(body))
        row = Row(self.log.last + 1, name, "problem", None, None, self.now(name), json.dumps(body))
        ticket, epoch = self.log.add([row]), self.log.epoch
        self.log.commit(ticket, epoch)
        self._configs[name] = config
        self._counted.add(ticket, epoch, (name, "problem", "done"))

    def body(self, name: str) -> dict[str, Any]:
        """The terms of a problem as they are in the log; NotFoundError if there is no such problem."""
        row = next(iter(self.log.read(name)), None)
        if row is None or row.kind != "problem":
            raise NotFoundError("name", repr(name), self.known_names())
        body: dict[str, Any] = json.loads(row.body)
        return body

    def known_names(self) -> str:
        """The names of all problems, for messages."""
        return ", ".join(self.log.names()) or "none: the store is empty"

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem after event number `since`, as mappings."""
        if name not in self.log.names():
            raise NotFoundError("name", display(name), self.known_names())
        return self._events(name, count("since", since, 0, LAST))

    def _events(self, name: str, since: int) -> Iterator[dict[str, Any]]:
        self.log.commit(self.log.last, self.log.epoch)
        for row in self.log.read(name, since):
            yield {
                "seq": row.seq,
                "problem": row.problem,
                "kind": row.kind,
                "decision": row.decision,
                "key": row.key,
                "time": row.time,
                **json.loads(row.body),
            }

    def append(self, name: str, events: list[dict[str, Any]]) -> None:
        """Write events that were imported; the state is then rebuilt from the log."""
        with self.lock:
            first = self.log.last + 1
            rows = [_build_row(first + i, name, event) for i, event in enumerate(events)]
            epoch = self.log.epoch
            ticket = self.log.add(rows)
            for row in rows:
                self._counted.add(row.seq, epoch, (name, row.kind, "imported"))
            self.cache.drop(name)
        self.log.commit(ticket, epoch)

    def act(self, name: str, command: Command, key: str | None = None) -> Done:
        """Carry out a command, log it, and answer once that is durable. With a key that was used before,
        return the same answer as then.
        """
        while True:
            with suppress(
                KeyForgottenError
            ):  # so many keys came meanwhile that the file must be searched again
                return self._act(name, command, key)

    def _act(self, name: str, command: Command, key: str | None) -> Done:
        earlier, mark = (None, 0) if key is None else self.log.find(name, key)
        with self.lock:
            before = self.log.epoch
            if key is not None and earlier is None:
                earlier = self.log.recent(name, key, mark)
            done = (
                self._carry_out(name, command, key)
                if earlier is None
                else _repeat_answer(command, key, earlier)
            )
            # Read these under the lock: another thread may begin a batch as soon as it is free. The epoch is
            # the one that the row was built on: if another thread's commit fails, its number is used again.
            epoch, alone = self.cache.epoch if earlier is None else before, not self._batches
        if alone:
            self.log.commit(done.seq, epoch)
            self.cache.save_if_due()
        return done

    def _carry_out(self, name: str, command: Command, key: str | None) -> Done:
        """Carry out a command whose key, if it has one, was not used before."""
        state, now = self.cache.get(name), self.now(name)
        self._expire(name, state, now)
        event = command.prepare(state, now, partial(self.log.of, name))  # raises all errors of the caller
        if event is None:
            event = Event(command.target, {**command.request, "outcome": "known"})
            if key is None:
                done = Done(self._find_seq(name, command), *event)
                if self.log.epoch != self.cache.epoch:  # what made it known may not have been kept
                    raise StoreError(f"{self.log.backend.name}: a commit failed meanwhile; ask again")
                return done
            # It is logged, so that the key is not used for something else.
        return self._change(name, state, command, event, key, now)

    def _change(
        self, name: str, state: State, command: Command, event: Event, key: str | None, now: float
    ) -> Done:
        """Change the state and queue the event. A state that was changed only in part, or whose event is not
        in the log, is dropped: it is rebuilt from the last snapshot and the events after it.
        """
        try:
            event = command.apply(state, event, now)
            row = self._log_event(name, command.kind, event, key, now)
        except BaseException as error:
            self.cache.drop(name)
            if isinstance(error, Exception) and not isinstance(error, StoreError | MemoryError):
                raise InternalError(name, command.kind, error) from error
            raise
        return Done(row.seq, *event, state.arms)

    def _find_seq(self, name: str, command: Command) -> int:
        """The number of the event that reported the same before."""
        rows = self.log.of(name, command.target or "")
        return max((row.seq for row in rows if row.kind == command.kind), default=self.log.last)

    def _log_event(self, name: str, kind: str, event: Event, key: str | None, now: float) -> Row:
        row = Row(self.log.last + 1, name, kind, event.decision, key, now, ENCODE(event.body))
        self.log.add([row], self.cache.epoch)
        self.cache.count(name)
        outcome = event.body.get("outcome") or event.body.get("expired") or "done"
        self._counted.add(row.seq, self.cache.epoch, (name, kind, outcome))
        return row

    def known(self, name: str, command: Command, key: str | None) -> Done | None:
        """The answer that its key had before, if any; ConflictError if that was to another request."""
        while key is not None:
            row, mark = self.log.find(name, key)
            with suppress(KeyForgottenError):
                row = row or self.log.recent(name, key, mark)
                return None if row is None else _repeat_answer(command, key, row)
        return None

    def check(self, name: str, command: Command, key: str | None = None) -> None:
        """Raise what `act` would raise for a command that cannot be carried out now; nothing is changed."""
        with self.lock:
            if self.known(name, command, key) is None:
                command.prepare(self.cache.get(name), self.now(name), partial(self.log.of, name))

    def _expire(self, name: str, state: State, now: float) -> None:
        """Log what has expired by now."""
        while due := state.due(now):  # again, since a reward that is final now may wait for a context
            for event in due:
                self._change(name, state, Expire(), Event(*event), None, now)

    def up_to_date(self, name: str) -> State:
        """The state of a problem, after all that has expired by now was logged. The caller holds the lock."""
        state = self.cache.get(name)
        self._expire(name, state, self.now(name))
        if not self._batches:
            self.log.commit(self.log.last, self.log.epoch)
            if self.log.epoch != self.cache.epoch:  # a commit failed: the state has what was not kept
                return self.up_to_date(name)
        return state

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Make the calls of this thread share one commit, at the end; other threads wait meanwhile."""
        with self.gathered() as gathered:
            yield
        if gathered.alone:
            gathered.settle()

    @contextmanager
    def gathered(self) -> Iterator[Batch]:
        """Make calls of this thread without a commit; they are durable once the result is settled."""
        with self.lock:
            gathered = Batch(self.log)
            self._batches += 1
            try:
                yield gathered
            finally:
                self._batches -= 1
                gathered.end(alone=not self._batches)

    @property
    def written(self) -> Counter[Labels]:
        """How many events this process has written, by problem, kind and outcome."""
        return self._counted.counts()

    def now(self, name: str = "") -> float:
        """The store's own time; for a problem never before its last event."""
        return max(self._clock.now(), self.log.time_of(name))

    def made(self, name: str) -> PreparedProblem:
        """The configuration of a problem, from its terms."""
        config = self._configs.get(name)
        if config is None:
            with self.lock:
                body = self.body(name)
                check_unchanged(body, {})  # raises if the caller's own code has changed
                config = self._configs[name] = PreparedProblem(ProblemConfig.read(body), new=False)
        return config

    def recent_decisions(self, name: str) -> RecentDecisions:
        """The newest decisions of a problem, for its history. The caller holds the lock."""
        if name not in self._rings:
            self._rings[name] = RecentDecisions(self.log, name, self.made(name).terms)
        return self._rings[name]


def _repeat_answer(command: Command, key: str | None, row: Row) -> Done:
    """The answer that a key had before; ConflictError if that was to another request."""
    body: dict[str, Any] = json.loads(row.body)
    is_alike = row.kind == command.kind and command.target in (None, row.decision)
    logged = {name: body[name] for name in body if name in (*command.request, *REQUEST)} if is_alike else {}
    if not is_alike or logged != json.loads(json.dumps(dict(command.request))):
        raise ConflictError("key", repr(key), "a new key: this one was used for another request")
    return Done(row.seq, row.decision, body)


def _build_row(seq: int, name: str, event: Mapping[str, Any]) -> Row:
    """The row of an imported event."""
    body = json.dumps(transfer.body_of(event), allow_nan=False)
    return Row(seq, name, event["kind"], event.get("decision"), event.get("key"), event["time"], body)
