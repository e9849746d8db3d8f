"""`unfog.Bandit`: decisions in memory, with the verbs of a live problem, and neither a file nor a server.

A bandit is a live problem whose log is a list in memory (live/memory.py): its state is the fold of the same
events, so the same seed and the same calls give the same arms in memory, in a file and behind a service.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, Self, Unpack

from unfog import validation
from unfog.live import config, erasure, saved, snapshot, transfer
from unfog.live.backend import LAST, Row
from unfog.live.commands import Command
from unfog.live.config import ProblemOptions, show_options
from unfog.live.errors import StoreError
from unfog.live.history import number_of
from unfog.live.log import EventLog
from unfog.live.memory import MemoryBackend
from unfog.live.problem import Problem
from unfog.live.processor import Done, Processor
from unfog.live.saved import Saved
from unfog.live.snapshot import Replayed
from unfog.validation import check_keywords

LEAST_DROPPED = 100  # decisions, by `keep`, since each time costs a snapshot


class Importing(Protocol):
    """What a log can be copied to: a store, or the client of a service."""

    def import_events(
        self, lines: Iterable[str], name: str | None = None, *, allow_modules: Iterable[str] = ()
    ) -> int:
        """Import an exported log; the number of new events."""


@check_keywords
class Bandit(Problem):
    """Decide in memory: `decide`, `reward`, `reveal`. Threads may share it.

    >>> import unfog
    >>> days = unfog.Category(["mon", "tue", "wed"])
    >>> walks = unfog.Bandit(arms=["send", "wait"], context={"steps": 1200, "hour": 0, "day": days})
    >>> d = walks.decide({"steps": 1648, "hour": None, "day": "mon"}, unit="ann")
    >>> walks.reward(d.id, 320.0).outcome, d.denoised["day"]["mon"]
    ('learnt', 1.0)
    """

    @show_options
    def __init__(
        self,
        *,
        name: str = "bandit",
        keep: int | None = None,
        clock: Callable[[], float] | None = None,
        **terms: Unpack[ProblemOptions],
    ) -> None:
        """State a problem: what each coordinate of the context is, as {"steps": 1200, "hour": 0} (how far one
        reading may be off, as a standard deviation), and the arms. What is None is learnt, or not wanted.
        `keep`: of how many decisions events are kept; `name`: for figures; `clock` replaces the machine's.
        """
        name, body = validation.check_name("name", name), config.written(terms)
        processor = self._begin(MemoryBackend(), keep, clock)
        processor.create(name, body)
        super().__init__(processor, name)

    def _begin(
        self, backend: MemoryBackend, keep: int | None, clock: Callable[[], float] | None
    ) -> Processor:
        self._backend = backend
        self._keep = None if keep is None else validation.count("keep", keep, 1, LAST)
        return Processor(EventLog(backend), clock)

    @classmethod
    def load(cls, path: str | Path, *, clock: Callable[[], float] | None = None) -> Self:
        """Read a file that `save` wrote."""
        content, backend = saved.read(path), MemoryBackend()
        name = content.rows[0].problem
        backend.write(content.rows, lambda: backend.keep(name, *content.snapshot))
        backend.first_decision = content.first_decision
        bandit = cls.__new__(cls)
        processor = bandit._begin(backend, content.keep, clock)
        Problem.__init__(bandit, processor, name)
        processor.cache.load(name)
        return bandit

    @classmethod
    def from_events(
        cls,
        lines: Iterable[str],
        name: str | None = None,
        *,
        allow_modules: Iterable[str] = (),
        keep: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Self:
        """A bandit from the exported log of a problem, such as `store.export("walks")`."""
        bandit = cls.__new__(cls)
        processor = bandit._begin(MemoryBackend(), keep, clock)
        _import_events(processor, lines, name, allow_modules)
        Problem.__init__(bandit, processor, processor.log.names()[0])
        return bandit

    def __repr__(self) -> str:
        """How far it is."""
        with self.processor.lock:
            state = self.processor.cache.get(self.name)
        counts = state.watch.tallies.counts
        arms, agent = len(state.arms.available), self.terms.agent
        done = f"{counts.decisions} decisions, {counts.rewards} rewards"
        return f"<unfog.Bandit: agent {agent!r}, {arms} arms, {done}>"

    def save(self, path: str | Path) -> None:
        """Write the events and the state to a file, name.bandit; one that is there is replaced."""
        cache, log = self.processor.cache, self.processor.log
        with self.processor.lock, cache.saving:
            held = cache.held(self.name)
            blob = snapshot.written(held.content)
            content = held.upto, snapshot.snapshot_key(self._config), blob
            rows = list(log.read(self.name, upto=held.upto))
            saved.write(path, Saved(rows, content, self._backend.first_decision, self._keep))

    def copy_to(self, store: Importing, name: str | None = None) -> None:
        """Copy the log to a store, under its own name or another; what was copied before is skipped."""
        self._check_complete("cannot be copied")
        modules = [path.partition(":")[0] for path in (self.terms.agent, self.terms.features) if ":" in path]
        store.import_events(self.export(), name or self.name, allow_modules=modules)

    def export(self) -> Iterator[str]:
        """The log as NDJSON, line by line."""
        return transfer.as_lines(self.processor.events(self.name))

    def import_events(self, lines: Iterable[str], *, allow_modules: Iterable[str] = ()) -> int:
        """Import the rest of a log that begins as this one does; the number of new events."""
        self._check_complete("cannot import events")
        return _import_events(self.processor, lines, self.name, allow_modules)

    def erase(self, *, unit: str) -> int:
        """Erase a unit's contexts, and what was learnt from them; the number of its decisions."""
        self._check_complete("cannot erase")
        return erasure.erase_unit(self.processor, unit, self.name)[self.name]

    def replay(self, verify: bool = False) -> Replayed:
        """Compare the state with its events; with `verify`, every decision is made again, too."""
        self._check_complete("cannot be replayed")
        return snapshot.replay(self.processor, self.name, verify)

    def batch(self) -> AbstractContextManager[None]:
        """Let no other thread come between the calls of this one."""
        return self.processor.batch()

    def _act(self, command: Command, key: str | None) -> Done:
        done = super()._act(command, key)
        if self._keep is not None:
            self._drop_oldest(self._keep)
        return done

    def _drop_oldest(self, keep: int) -> None:
        """Drop the events of closed decisions before the newest `keep`, if it is worth a snapshot."""
        processor, log, backend = self.processor, self.processor.log, self._backend
        with processor.lock:
            state = processor.cache.get(self.name)
            first, least = state.number - keep, max(LEAST_DROPPED, (keep + len(state.open)) // 4)
            if first < backend.first_decision + least or snapshot.has_own_shadows(state.runners):
                return
            with processor.cache.saving:
                held, still_open = processor.cache.held(self.name), set(state.open)
                upto = log.of(self.name, state.id_of(first))[0].seq - 1

                def is_dropped(row: Row) -> bool:
                    decision = row.decision
                    return decision is not None and decision not in still_open and number_of(decision) < first

                version, blob = snapshot.snapshot_key(self._config), snapshot.written(held.content)
                log.keep(self.name, held.upto, version, blob, lambda: backend.drop(upto, is_dropped, first))

    def _check_complete(self, what: str) -> None:
        """Raise StoreError if events were dropped."""
        first = self._backend.first_decision
        if first:
            lacks = f"events of its first {first} decisions were dropped, by keep={self._keep}"
            raise StoreError(f"this bandit {what}: {lacks}")


def _import_events(
    processor: Processor, lines: Iterable[str], name: str | None, allow_modules: Iterable[str]
) -> int:
    allowed = validation.as_list("allow_modules", allow_modules, "a list of names of modules")
    return transfer.import_events(processor, transfer.read_lines(lines), name, allowed)
