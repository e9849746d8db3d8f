"""A store: one file with the logs of many problems, and what they say, in memory.

The log is the truth. What is remembered of a problem is the fold of its events; it is made when it is first
asked for, from the newest snapshot that fits and the events after it, and dropped when a commit fails: then
it may hold what the file does not.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unfog.inputs import InputError
from unfog.live import erase, names, snapshot, terms, transfer
from unfog.live.clock import Clock
from unfog.live.errors import Conflict, Stale, Unknown
from unfog.live.log import Log, Row
from unfog.live.made import Made, needed
from unfog.live.problem import Problem
from unfog.live.replay import Replayed, folded, verified
from unfog.live.state import State
from unfog.live.turn import Done, Event, Turn

SNAPSHOT_EVERY = 10_000  # events
TEXT = json.JSONEncoder(allow_nan=False).encode  # made once: to make one takes as long as to use it


class Store:
    """Open it with `unfog.live.open`. Threads may share it; other processes are kept out."""

    def __init__(
        self, path: str | Path, sync: str = "full", clock: Callable[[], float] | None = None
    ) -> None:
        """Open the file, or create it."""
        self.log = Log(path, sync)
        self.lock = threading.RLock()
        self._clock = Clock(self.log.time, clock)
        self._epoch = self.log.epoch
        self._made: dict[str, Made] = {}
        self._states: dict[str, State] = {}
        self._since: dict[str, int] = {}  # events since the last snapshot
        self._together = 0

    @property
    def path(self) -> Path:
        """The file."""
        return self.log.path

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def problem(self, name: str, **given: Any) -> Problem:
        """The problem of this name; made, where there is none yet and its terms are given.

        With terms of a problem that is there, each must be as it was: live/terms.py has them all.
        """
        names.name("name", name)
        with self.lock:
            if name not in self.log.names():
                if not given:
                    raise Unknown("name", repr(name), f"{self._known()}; or the terms of a new problem")
                self._make(name, terms.written(given))
            else:
                terms.refuse_other(self._body(name), given)
            made = self.made(name)
        return Problem(self, name, made.terms, made.note)

    def names(self) -> list[str]:
        """The problems that there are."""
        return self.log.names()

    def _known(self) -> str:
        return ", ".join(self.log.names()) or "none: the store is empty"

    def _make(self, name: str, body: dict[str, Any]) -> None:
        body = json.loads(json.dumps(body))
        made = Made(terms.Terms.read(body))
        body = json.loads(json.dumps({**body, "channel": needed(body["channel"], made.agent)}))
        made = Made(terms.Terms.read(body))
        row = Row(self.log.last + 1, name, "problem", None, None, self.now(), json.dumps(body))
        self.log.commit(self.log.add([row]), self.log.epoch)
        self._made[name] = made

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
                found = self._made[name] = Made(terms.Terms.read(self._body(name)))
        return found

    def now(self) -> float:
        """The store's own time."""
        return self._clock.now()

    def state(self, name: str) -> State:
        """What is remembered of a problem. The caller holds the lock."""
        if self.log.epoch != self._epoch:
            self._states.clear()
            self._epoch = self.log.epoch
        found = self._states.get(name)
        if found is None:
            self.log.commit(self.log.last, self.log.epoch)
            found, since = snapshot.restored(self.log, name, self.made(name))
            self._states[name], self._since[name] = found, since
        return found

    def act(self, turn: Turn) -> Done:
        """Do it, write it down, and answer once that is durable; as before, where the key was used before."""
        while True:
            with suppress(Stale):  # so many keys came meanwhile that the file must be asked once more
                return self._acted(turn)

    def _acted(self, turn: Turn) -> Done:
        known, mark = (None, 0) if turn.key is None else self.log.find(turn.problem, turn.key)
        with self.lock:
            if turn.key is not None and known is None:
                known = self.log.recent(turn.problem, turn.key, mark)
            done = self._first(turn) if known is None else _again(turn, known)
            # Here, and not later: another thread may begin a batch as soon as the lock is free.
            epoch, alone = self.log.epoch, not self._together
        if alone:
            self.log.commit(done.seq, epoch)
            self._snapshot_if_due(turn.problem)
        return done

    def known(self, turn: Turn) -> Done | None:
        """The answer that its key has had, if any; a conflict where that was asked for something else."""
        while turn.key is not None:
            row, mark = self.log.find(turn.problem, turn.key)
            with suppress(Stale):
                row = row or self.log.recent(turn.problem, turn.key, mark)
                return None if row is None else _again(turn, row)
        return None

    def _first(self, turn: Turn) -> Done:
        """Nothing was asked with this key before, or there is none."""
        state, now = self.state(turn.problem), self.now()
        state.unwritten = False
        try:
            self.expire(turn.problem, state, now)
            event = turn.work(state, now)
            if event is None:
                body = {**turn.request, "outcome": "known"}
                if turn.key is None:
                    return Done(self.log.last, turn.decision, body)
                event = Event(turn.decision, body)  # so that the key is not used for something else
                state.apply(turn.kind, turn.decision, body, now)
            row = self._row(turn.problem, turn.kind, event.decision, turn.key, now, event.body)
        except BaseException as error:
            if state.unwritten or not isinstance(error, InputError):
                self._states.pop(turn.problem, None)  # it may be half done: the log says what was
            raise
        return Done(row.seq, event.decision, event.body)

    def expire(self, name: str, state: State, now: float) -> None:
        """Write down what has expired by now. The caller holds the lock."""
        while due := state.due(now):  # again: a reward that the wait has made final may await a context
            for decision, body in due:
                state.apply("expire", decision, body, now)
                self._row(name, "expire", decision, None, now, body)
                state.unwritten = False

    def _row(
        self, name: str, kind: str, decision: str | None, key: str | None, now: float, body: dict[str, Any]
    ) -> Row:
        row = Row(self.log.last + 1, name, kind, decision, key, now, TEXT(body))
        self.log.add([row], self._epoch)
        self._since[name] = self._since.get(name, 0) + 1
        return row

    @contextmanager
    def together(self) -> Iterator[None]:
        """Calls of this thread with one commit for all, at the end; other threads wait meanwhile."""
        with self.lock:
            self._together += 1
            try:
                yield
            finally:
                self._together -= 1
                ticket, epoch, alone = self.log.last, self.log.epoch, not self._together
        if alone:
            self.log.commit(ticket, epoch)

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        """The events of a problem, as mappings."""
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

    def digest(self, name: str) -> str:
        """A hash of all that is remembered of a problem."""
        return snapshot.digest(self.state(name))

    def replay(self, verify: bool = False, problem: str | None = None) -> dict[str, Replayed]:
        """Read the log from its beginning, and hold what is remembered against it.

        With `verify` every decision is made again, too, and must come out as it was logged; those from before
        an erasure cannot be.
        """
        with self.lock:
            chosen = self.names() if problem is None else [problem]
            return {name: self._replayed(name, verify) for name in chosen}

    def _replayed(self, name: str, verify: bool) -> Replayed:
        self.log.commit(self.log.last, self.log.epoch)  # what is remembered holds rows that are queued, too
        before = self.digest(name)
        if verify:
            erasures = [row.seq for row in self.log.read(name) if row.kind == "erase"]
            state, found = verified(self.made(name), self.log.read(name), max(erasures, default=0))
        else:
            state, found = folded(self.made(name), self.log.read(name))
        found = found._replace(same=snapshot.digest(state) == before)
        self._states[name] = state
        return found

    def fresh(self, name: str) -> State:
        """What the log says of a problem, to be changed without changing what is remembered."""
        return folded(self.made(name), self.log.read(name))[0]

    def append(self, name: str, events: list[dict[str, Any]]) -> None:
        """Write events that were applied elsewhere; what is remembered is made anew from the log."""
        with self.lock:
            first = self.log.last + 1
            rows = [_row(first + i, name, one) for i, one in enumerate(events)]
            epoch = self.log.epoch
            ticket = self.log.add(rows)
            self._clock.reach(self.log.time)
            self._states.pop(name, None)
        self.log.commit(ticket, epoch)

    def export(self, name: str) -> Iterator[str]:
        """The log of a problem as NDJSON, line by line."""
        return transfer.as_lines(self.events(name))

    def take_in(self, lines: Iterable[str], name: str | None = None) -> int:
        """The log of a problem that was exported, under its own name or another: how many events were new."""
        with self.lock:
            return transfer.taken_in(self, transfer.read_lines(lines), name)

    def erase(self, *, unit: str) -> dict[str, int]:
        """Erase a unit's contexts, and what was learnt from them; how many decisions of each problem.

        The file is written anew, so that the old bytes are gone: live/erase.py. Copies and exports are not
        the store's to erase.
        """
        with self.lock:
            self.log.commit(self.log.last, self.log.epoch)
            self._states.clear()
            try:
                return erase.erased(self, unit)
            finally:
                self._states.clear()

    def snapshot(self) -> None:
        """Write down what is remembered, so that the next start is quick."""
        for name in list(self._states):
            self._keep(name)

    def _snapshot_if_due(self, name: str) -> None:
        if self._since.get(name, 0) >= SNAPSHOT_EVERY:
            self._keep(name)

    def _keep(self, name: str) -> None:
        with self.lock:
            state = self._states.get(name)
            if state is None or self._since.get(name, 0) == 0 or self.log.epoch != self._epoch:
                return
            seq, blob = self.log.last, snapshot.written(state)
            self._since[name] = 0
            epoch = self.log.epoch
        self.log.commit(seq, epoch)
        self.log.keep(name, seq, snapshot.fingerprint(self.made(name)), blob)

    def close(self) -> None:
        """Write what is left, and give the file back."""
        self.snapshot()
        self.log.close()


def _row(seq: int, name: str, event: Mapping[str, Any]) -> Row:
    """An event as it is written."""
    body = json.dumps(transfer.body_of(event), allow_nan=False)
    return Row(seq, name, event["kind"], event.get("decision"), event.get("key"), event["time"], body)


def _again(turn: Turn, row: Row) -> Done:
    """The answer that a key has had; another request with it is a conflict."""
    body: dict[str, Any] = json.loads(row.body)
    same = row.kind == turn.kind and turn.decision in (None, row.decision)
    asked = {name: body[name] for name in body if name in (*turn.request, *OPTIONAL)} if same else {}
    if not same or asked != json.loads(json.dumps(dict(turn.request))):
        raise Conflict("key", repr(turn.key), "a new key: this one was used for another request")
    return Done(row.seq, row.decision, body)


OPTIONAL = ("unit", "arms", "at", "noise", "forced", "given")
