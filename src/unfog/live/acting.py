"""How every call on a store goes.

Under the lock what has expired is written down, the call changes what is remembered, and its event is queued;
then, without the lock, the commit that holds the event is awaited, and only then is there an answer.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from unfog.live.asking import REQUEST
from unfog.live.counted import Counted, Labels
from unfog.live.errors import Conflict, Stale, StoreError
from unfog.live.log import Log, Row
from unfog.live.remembered import Remembered
from unfog.live.state import State
from unfog.live.turn import Done, Event, Turn
from unfog.validation import InputError

TEXT = json.JSONEncoder(allow_nan=False).encode  # made once: to make one takes as long as to use it


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
            raise StoreError(f"{self._log.place.name}: {said}; to ask again with the same key tells")


class Acting(Remembered):
    """Does what is asked, and writes it down."""

    def __init__(self, log: Log, clock: Callable[[], float] | None) -> None:
        """Nothing was asked yet."""
        super().__init__(log, clock)
        self._together = 0
        self._counted = Counted(log)

    @property
    def written(self) -> Counter[Labels]:
        """Events that this process has written down, by problem, kind and outcome."""
        return self._counted.counts()

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
            # Here, and not later: another thread may begin a batch as soon as the lock is free. And the epoch
            # that the row was built on: the commit of somebody else may fail, and its number be used again.
            epoch, alone = self._epoch if known is None else self.log.epoch, not self._together
        if alone:
            self.log.commit(done.seq, epoch)
            self.snapshot_if_due()
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
        state, now = self.state(turn.problem), self.now(turn.problem)
        state.unwritten = False
        try:
            self.expire(turn.problem, state, now)
            event = turn.work(state, now)
            if event is None:
                body = {**turn.request, "outcome": "known"}
                if turn.key is None:
                    return Done(self._seq_of(turn), turn.decision, body)
                event = Event(turn.decision, body)  # so that the key is not used for something else
                state.apply(turn.kind, turn.decision, body, now)
            row = self._row(turn.problem, turn.kind, event.decision, turn.key, now, event.body)
        except BaseException as error:
            if state.unwritten or not isinstance(error, InputError):
                self._states.pop(turn.problem, None)  # it may be half done: the log says what was
            raise
        return Done(row.seq, event.decision, event.body)

    def _seq_of(self, turn: Turn) -> int:
        """The event that has said it before."""
        rows = self.log.of(turn.problem, turn.decision or "")
        return max((row.seq for row in rows if row.kind == turn.kind), default=self.log.last)

    def up_to_date(self, name: str) -> State:
        """What is remembered of a problem, with all that has expired by now. The caller holds the lock."""
        state = self.state(name)
        self.expire(name, state, self.now(name))
        if not self._together:
            self.log.commit(self.log.last, self.log.epoch)
        return state

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
        said = body.get("outcome") or body.get("what") or "done"
        self._counted.add(row.seq, self._epoch, (name, kind, said))
        return row

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


def _again(turn: Turn, row: Row) -> Done:
    """The answer that a key has had; another request with it is a conflict."""
    body: dict[str, Any] = json.loads(row.body)
    same = row.kind == turn.kind and turn.decision in (None, row.decision)
    asked = {name: body[name] for name in body if name in (*turn.request, *REQUEST)} if same else {}
    if not same or asked != json.loads(json.dumps(dict(turn.request))):
        raise Conflict("key", repr(turn.key), "a new key: this one was used for another request")
    return Done(row.seq, row.decision, body)
