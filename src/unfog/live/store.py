"""A store: the logs of many problems in a file, or of one problem in a database. The log is the truth.

What is asked of a problem is a command (live/commands.py). While the store holds the lock it logs what has
expired, checks the command, changes the state and queues the event. It then waits, without the lock, for the
commit that holds the event, and answers only after that. Events are counted once they are durable
(`Counted`), since a commit may fail. What is remembered of problems is in live/cache.py.

The clock gives seconds since 1970 and never goes back, whatever happens to the clock of the machine. The wall
clock is read once, when the store is opened; from then on a clock that nobody can set says how much time has
passed. If the last event of a problem is later than the wall clock, time stands still for that problem until
the wall clock has caught up: no decision expires early because a clock was set back. Other problems are not
affected: a log from a machine with a fast clock must not make their decisions expire.
"""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias, Unpack

from unfog import validation
from unfog.live import config, erasure, snapshot, transfer
from unfog.live.arms import Arms
from unfog.live.backend import Row
from unfog.live.cache import StateCache
from unfog.live.commands import Command, Event
from unfog.live.config import GivenTerms, Made, channel_needed, with_terms
from unfog.live.errors import Conflict, InternalError, Stale, StoreError, Unknown
from unfog.live.history import Ring
from unfog.live.log import Log
from unfog.live.problem import Problem
from unfog.live.requests import REQUEST
from unfog.live.snapshot import Replayed
from unfog.live.sqlite_file import LAST
from unfog.live.state import State
from unfog.validation import count, shown

TEXT = json.JSONEncoder(allow_nan=False).encode  # made once: to make one takes as long as to use it
Labels: TypeAlias = tuple[str, str, str]  # problem, kind and outcome


class Clock:
    """The clock of one store."""

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        """`wall` may be given, for tests and simulations."""
        self._last, self._wall = 0.0, wall
        self._start, self._since = time.time(), passing()

    def now(self) -> float:
        """Seconds since 1970, never less than before."""
        wall = self._start + passing() - self._since if self._wall is None else float(self._wall())
        self._last = max(self._last, wall)
        return self._last


def passing() -> float:
    """Seconds that pass also while the machine sleeps, where there is such a clock."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.monotonic()


class Counted:
    """Events of this process by problem, kind and outcome. Any thread may use it."""

    def __init__(self, log: Log) -> None:
        """Nothing yet."""
        self._log, self._lock = log, threading.Lock()
        self._waiting: deque[tuple[int, int, Labels]] = deque()  # numbers of rows, and their epochs
        self._counts: Counter[Labels] = Counter()

    def add(self, seq: int, epoch: int, labels: Labels) -> None:
        """A row was queued."""
        with self._lock:
            self._waiting.append((seq, epoch, labels))
            self._settle()

    def counts(self) -> Counter[Labels]:
        """The counts of all rows that are durable by now."""
        with self._lock:
            self._settle()
            return self._counts.copy()

    def _settle(self) -> None:
        while self._waiting:
            seq, epoch, labels = self._waiting[0]
            kept = self._log.kept(seq, epoch)
            if kept is None:
                return
            self._counts[labels] += kept
            self._waiting.popleft()


class Gathered:
    """Rows that were queued together, and await one commit."""

    def __init__(self, log: Log) -> None:
        """Before the first of them."""
        self._log, self._ticket, self._epochs = log, 0, (log.epoch, log.epoch)
        self.alone = True  # whether nobody else will settle them
        self.some = False  # whether there is anything to be written

    def end(self, *, alone: bool) -> None:
        """After the last."""
        self._ticket, self._epochs, self.alone = self._log.last, (self._epochs[0], self._log.epoch), alone
        self.some = self._ticket > self._log.committed

    def settle(self) -> None:
        """Return once all are durable."""
        first, last = self._epochs
        self._log.commit(self._ticket, last)
        if first != last:
            said = "a commit failed meanwhile, and it is not known what was kept"
            raise StoreError(f"{self._log.backend.name}: {said}; to ask again with the same key tells")


class Done(NamedTuple):
    """A command that was carried out: its event, as it stands in the log."""

    seq: int
    decision: str | None
    body: dict[str, Any]
    arms: Arms | None = None  # there were then; None where the answer is an earlier one


class Store:
    """Open it with `unfog.live.open`. Threads may share it; other processes are kept out.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> [one["kind"] for one in store.events("walks")]
    ['problem']
    >>> store.close()
    """

    def __init__(self, log: Log, clock: Callable[[], float] | None = None) -> None:
        """`log` must be open; `clock` replaces the machine's."""
        self.log = log
        self.lock = threading.RLock()
        self._made: dict[str, Made] = {}
        self.cache = StateCache(log, self.lock, self.made)
        self._clock = Clock(clock)
        self._rings: dict[str, Ring] = {}
        self._together = 0  # batches that are being gathered, one within the other
        self._counted = Counted(log)

    @property
    def path(self) -> Path:
        """The file; a store in a database has none."""
        if self.log.path is None:
            raise StoreError(f"{self.log.backend.label} is no file")
        return self.log.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Write what is left, and give the file back."""
        try:
            self.cache.save()
        finally:
            self.log.close()

    def names(self) -> list[str]:
        """The problems that there are."""
        return self.log.names()

    @with_terms
    def problem(self, name: str, **terms: Unpack[GivenTerms]) -> Problem:
        """The problem of this name; made, where there is none yet and its terms are given.

        `context` names the coordinates and `arms` what can be done, with vectors where `features` need them
        ("per_arm", the default, "product", "quadratic", "matrix", or one's own module:name); with `arm_size`
        arms come with each decision. `rewards` are "gaussian", of the variance `reward_var` and within
        `reward_range` if told, or "bernoulli". `prior_mean`
        and `prior_cov` are the prior of theta, the reward coefficients. `channel` says how contexts are
        measured: `found.channel` of `unfog.calibrate`, or a mapping; None: nothing is known of noise. Unless
        `standardise` is off contexts are taken in deviations from their mean. In a share `floor` of decisions
        any arm is taken. `wait` and `reveal_within` are how long a reward and a true context may take, such
        as "30m"; without a reward the `default_reward` is learnt; `learn` is "at_once" or "after_wait", and
        several rewards of one decision `combine` to their last, first, sum, mean, max or min.

        If the problem exists, any term that you pass must match what it was made with.
        """
        name = validation.check_name("name", name)
        with self.lock:
            if name not in self.log.names():
                self.cache.refuse_reserved(name)
                if not terms:
                    raise Unknown("name", repr(name), f"{self._known()}; or the terms of a new problem")
                self._make(name, config.written(terms))
            else:
                config.refuse_other(self._body(name), terms)
        return self.handle(name)

    def handle(self, name: str) -> Problem:
        """The problem of this name, which must be there."""
        made = self.made(name)
        return Problem(self, name, made.terms, made.note)

    def _make(self, name: str, body: dict[str, Any]) -> None:
        body = json.loads(json.dumps(body))
        made = Made(config.Terms.read(body))
        body = json.loads(json.dumps({**body, "channel": channel_needed(body["channel"], made.agent)}))
        made = Made(config.Terms.read(body))
        row = Row(self.log.last + 1, name, "problem", None, None, self.now(name), json.dumps(body))
        ticket, epoch = self.log.add([row]), self.log.epoch
        self.log.commit(ticket, epoch)
        self._made[name] = made
        self._counted.add(ticket, epoch, (name, "problem", "done"))

    def _body(self, name: str) -> dict[str, Any]:
        row = next(iter(self.log.read(name)), None)
        if row is None or row.kind != "problem":
            raise Unknown("name", repr(name), self._known())
        found: dict[str, Any] = json.loads(row.body)
        return found

    def _known(self) -> str:
        return ", ".join(self.log.names()) or "none: the store is empty"

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem after that of the number `since`, as mappings."""
        if name not in self.log.names():
            raise Unknown("name", shown(name), self._known())
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

    def export(self, name: str) -> Iterator[str]:
        """The log of a problem as NDJSON, line by line."""
        return transfer.as_lines(self.events(name))

    def take_in(self, lines: Iterable[str], name: str | None = None, *, modules: Iterable[str] = ()) -> int:
        """The log of a problem that was exported, under its own name or another: how many events were new.

        A log may name features and agents of one's own, `module:name`. To take it in imports these modules,
        which runs them: so that is refused unless they are among `modules`.
        """
        allowed = validation.as_list("modules", modules, "a list of names of modules")
        return transfer.taken_in(self, transfer.read_lines(lines), name, allowed)

    def append(self, name: str, events: list[dict[str, Any]]) -> None:
        """Write events that were applied elsewhere; what is remembered is made anew from the log."""
        with self.lock:
            first = self.log.last + 1
            rows = [_as_row(first + i, name, one) for i, one in enumerate(events)]
            epoch = self.log.epoch
            ticket = self.log.add(rows)
            for row in rows:
                self._counted.add(row.seq, epoch, (name, row.kind, "taken in"))
            self.cache.drop(name)
        self.log.commit(ticket, epoch)

    def erase(self, *, unit: str, problem: str | None = None) -> dict[str, int]:
        """Erase a unit's contexts, and what was learnt from them, in all problems or in one: how many
        decisions of each.

        The file is written anew, so that the old bytes are gone. Copies and exports are not
        the store's to erase.
        """
        with self.cache.saving, self.lock:  # a snapshot that is on its way must not come after
            self.log.commit(self.log.last, self.log.epoch)
            self.cache.clear()
            try:
                return erasure.erase_unit(self, unit, problem)
            finally:
                self.cache.clear()

    def backup(self, path: str | Path) -> None:
        """Copy the store to a file that is not there yet; others go on deciding meanwhile."""
        self.log.backup(path)

    def replay(self, verify: bool = False, problem: str | None = None) -> dict[str, Replayed]:
        """Read the log from its beginning, and hold what is remembered against it; others go on meanwhile.

        With `verify` every decision is made again, too, and must come out as it was logged but for rounding;
        those from before an erasure cannot be.
        """
        chosen = self.names() if problem is None else [problem]
        return {name: snapshot.replayed(self, name, verify) for name in chosen}

    def act(self, name: str, command: Command, key: str | None = None) -> Done:
        """Carry a command out, log it, and answer once that is durable; with a key that was used before, give
        the same answer as then.
        """
        while True:
            with suppress(Stale):  # so many keys came meanwhile that the file must be asked once more
                return self._act(name, command, key)

    def _act(self, name: str, command: Command, key: str | None) -> Done:
        known, mark = (None, 0) if key is None else self.log.find(name, key)
        with self.lock:
            if key is not None and known is None:
                known = self.log.recent(name, key, mark)
            done = self._carry_out(name, command, key) if known is None else _same(command, key, known)
            # Here, and not later: another thread may begin a batch as soon as the lock is free. And the epoch
            # that the row was built on: the commit of somebody else may fail, and its number be used again.
            epoch, alone = self.cache.epoch if known is None else self.log.epoch, not self._together
        if alone:
            self.log.commit(done.seq, epoch)
            self.cache.save_if_due()
        return done

    def _carry_out(self, name: str, command: Command, key: str | None) -> Done:
        """Nothing was asked with this key before, or there is none."""
        state, now = self.cache.get(name), self.now(name)
        self._expire(name, state, now)
        event = command.prepare(state, now, partial(self.log.of, name))  # whatever is refused is refused here
        if event is None:
            event = Event(command.target, {**command.request, "outcome": "known"})
            if key is None:
                return Done(self._seq_of(name, command), *event)
            # It is logged, so that the key is not used for something else.
        with self._changing(name, command.kind):
            event = command.apply(state, event, now)
            row = self._log_event(name, command.kind, event, key, now)
        return Done(row.seq, *event, state.arms)

    @contextmanager
    def _changing(self, name: str, kind: str) -> Iterator[None]:
        """Drop a state that was changed in part, or whose event is not in the log: it is made again from the
        last snapshot and the events after it.
        """
        try:
            yield
        except BaseException as error:
            self.cache.drop(name)
            if isinstance(error, Exception) and not isinstance(error, StoreError | MemoryError):
                raise InternalError(name, kind, error) from error
            raise

    def _seq_of(self, name: str, command: Command) -> int:
        """The event that has said it before."""
        rows = self.log.of(name, command.target or "")
        return max((row.seq for row in rows if row.kind == command.kind), default=self.log.last)

    def _log_event(self, name: str, kind: str, event: Event, key: str | None, now: float) -> Row:
        row = Row(self.log.last + 1, name, kind, event.decision, key, now, TEXT(event.body))
        self.log.add([row], self.cache.epoch)
        self.cache.count(name)
        outcome = event.body.get("outcome") or event.body.get("what") or "done"
        self._counted.add(row.seq, self.cache.epoch, (name, kind, outcome))
        return row

    def known(self, name: str, command: Command, key: str | None) -> Done | None:
        """The answer that its key has had, if any; a conflict where that was asked for something else."""
        while key is not None:
            row, mark = self.log.find(name, key)
            with suppress(Stale):
                row = row or self.log.recent(name, key, mark)
                return None if row is None else _same(command, key, row)
        return None

    def check(self, name: str, command: Command, key: str | None = None) -> None:
        """Raise what `act` would raise for a command that cannot be carried out now; nothing is changed."""
        with self.lock:
            if self.known(name, command, key) is None:
                command.prepare(self.cache.get(name), self.now(name), partial(self.log.of, name))

    def _expire(self, name: str, state: State, now: float) -> None:
        """Log what has expired by now."""
        while due := state.due(now):  # again: a reward that the wait has made final may await a context
            for event in due:
                with self._changing(name, "expire"):
                    state.apply("expire", *event, now)
                    self._log_event(name, "expire", Event(*event), None, now)

    def up_to_date(self, name: str) -> State:
        """What is remembered of a problem, with all that has expired by now. The caller holds the lock."""
        state = self.cache.get(name)
        self._expire(name, state, self.now(name))
        if not self._together:
            self.log.commit(self.log.last, self.log.epoch)
        return state

    @contextmanager
    def together(self) -> Iterator[None]:
        """Calls of this thread with one commit for all, at the end; other threads wait meanwhile."""
        with self.gathered() as gathered:
            yield
        if gathered.alone:
            gathered.settle()

    @contextmanager
    def gathered(self) -> Iterator[Gathered]:
        """Calls of this thread without a commit; once what it gives is settled they are durable."""
        with self.lock:
            gathered = Gathered(self.log)
            self._together += 1
            try:
                yield gathered
            finally:
                self._together -= 1
                gathered.end(alone=not self._together)

    @property
    def written(self) -> Counter[Labels]:
        """Events that this process has written down, by problem, kind and outcome."""
        return self._counted.counts()

    def now(self, name: str = "") -> float:
        """The store's own time; for a problem it is never before its last event."""
        return max(self._clock.now(), self.log.time_of(name))

    def made(self, name: str) -> Made:
        """What the terms of a problem come to."""
        found = self._made.get(name)
        if found is None:
            with self.lock:
                body = self._body(name)
                config.refuse_other(body, {})  # code of the caller's own that is not what it was
                found = self._made[name] = Made(config.Terms.read(body), new=False)
        return found

    def ring(self, name: str) -> Ring:
        """The newest decisions of a problem, for who looks at its past. The caller holds the lock."""
        if name not in self._rings:
            self._rings[name] = Ring(self.log, name, self.made(name).terms)
        return self._rings[name]


def _same(command: Command, key: str | None, row: Row) -> Done:
    """The answer that a key has had; another request with it is a conflict."""
    body: dict[str, Any] = json.loads(row.body)
    same = row.kind == command.kind and command.target in (None, row.decision)
    asked = {name: body[name] for name in body if name in (*command.request, *REQUEST)} if same else {}
    if not same or asked != json.loads(json.dumps(dict(command.request))):
        raise Conflict("key", repr(key), "a new key: this one was used for another request")
    return Done(row.seq, row.decision, body)


def _as_row(seq: int, name: str, event: Mapping[str, Any]) -> Row:
    """An event as it is written."""
    body = json.dumps(transfer.body_of(event), allow_nan=False)
    return Row(seq, name, event["kind"], event.get("decision"), event.get("key"), event["time"], body)
