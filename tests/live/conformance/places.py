"""Places where live problems are: memory, a file, a real PostgreSQL, a service."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import unfog
from tests.live.ground import ARMS, CHANNEL, COORDINATES, Hand
from tests.serve.running import running
from tests.services import database
from unfog.live import NotFoundError, Problem, Store
from unfog.live.postgres.ownership import Shared
from unfog.live.snapshot import Replayed
from unfog.serve import Client
from unfog.serve.client import RemoteProblem
from unfog.validation import InputError

Live: TypeAlias = Problem | RemoteProblem
MEAN, SPREAD = (np.array(CHANNEL[name]) for name in ("context_mean", "context_cov"))
NOISE, BIAS = (np.diag(np.array(CHANNEL[name])) for name in ("noise_cov", "bias_cov"))
SHOWN = [0.5, -1.0]  # a reading
NUMBERS = count()  # so that each problem has a name of its own


@dataclass(frozen=True)
class Place:
    """Where problems are made, on a clock that is moved by hand, and the stores they are in, if any."""

    clock: Hand
    problem: Callable[..., Live]
    store: Callable[[str], "Store | Client | Bandits"]
    has_names: bool = True  # whether a problem can be asked for again, by its name

    def made(self, **terms: Any) -> Live:
        """A new problem: two coordinates, three arms, a channel; unless told otherwise."""
        told: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
        return self.problem(new_name(), **told | terms)

    def store_of(self, name: str) -> "Store | Client | Bandits":
        """The store that has a problem, or will have it."""
        return self.store(name)


class Bandits:
    """Bandits by name: what a store does for each of its problems, done by the bandit itself."""

    def __init__(self, clock: Hand) -> None:
        self.clock = clock
        self.bandits: dict[str, unfog.Bandit] = {}

    def problem(self, name: str, **terms: Any) -> unfog.Bandit:
        if name not in self.bandits:
            self.bandits[name] = unfog.Bandit(name=name, clock=self.clock, **terms)
        return self.bandits[name]

    def names(self) -> list[str]:
        return list(self.bandits)

    def events(self, name: str, since: int = 0) -> Iterator[dict[str, Any]]:
        return iter(self.bandits[name].events(since))

    def export(self, name: str) -> Iterator[str]:
        return self.bandits[name].export()

    def import_events(self, lines: Iterable[str], name: str) -> int:
        if name in self.bandits:
            return self.bandits[name].import_events(lines)
        self.bandits[name] = unfog.Bandit.from_events(lines, name, clock=self.clock)
        return len(self.bandits[name].events())

    def erase(self, *, unit: str, problem: str | None = None) -> dict[str, int]:
        chosen = [problem] if problem else [name for name in self.bandits if self._has(name, unit)]
        if not chosen:
            raise NotFoundError("unit", repr(unit), "a unit of some bandit")
        return {name: self.bandits[name].erase(unit=unit) for name in chosen}

    def _has(self, name: str, unit: str) -> bool:
        return any(event.get("unit") == unit for event in self.bandits[name].events())

    def replay(self, verify: bool = False, problem: str | None = None) -> Mapping[str, Replayed]:
        chosen = self.names() if problem is None else [problem]
        return {name: self.bandits[name].replay(verify) for name in chosen}


@contextmanager
def in_memory(folder: Path) -> Iterator[Place]:
    clock = Hand()
    bandits = Bandits(clock)
    yield Place(clock, bandits.problem, lambda _: bandits, has_names=False)


@contextmanager
def in_a_file(folder: Path) -> Iterator[Place]:
    clock = Hand()
    with unfog.live.open(folder / "walks.unfog", sync="normal", clock=clock) as store:
        yield Place(clock, store.problem, lambda _: store)


@contextmanager
def in_a_database(folder: Path) -> Iterator[Place]:
    clock = Hand()
    with database() as dsn, Shared(dsn, clock=clock) as shared:
        yield Place(clock, lambda name, **terms: shared.place(name).problem(name, **terms), shared.place)


@contextmanager
def behind_a_service(folder: Path) -> Iterator[Place]:
    clock = Hand()
    with running(folder / "served.unfog", clock=clock) as found, Client(found.url) as client:
        yield Place(clock, client.problem, lambda _: client)


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "memory": in_memory,
    "file": in_a_file,
    "database": in_a_database,
    "service": behind_a_service,
}


Check: TypeAlias = Callable[[Place], None]


def new_name() -> str:
    return f"walks {next(NUMBERS)}"


def kinds(live: Live) -> list[str]:
    return [event["kind"] for event in live.events()]


@contextmanager
def nothing_learnt(live: Live) -> Iterator[None]:
    """What is remembered stays as it is; that somebody asked may be logged."""
    before = live.state_hash()
    yield
    assert live.state_hash() == before


@contextmanager
def unchanged(*several: Live) -> Iterator[None]:
    """What is remembered and what is logged stays as it is."""
    before = [(live.state_hash(), live.events()) for live in several]
    yield
    assert [(live.state_hash(), live.events()) for live in several] == before


def refused(live: Live, call: Callable[[], object], said: str, kind: type[InputError] = InputError) -> None:
    """With these words, which begin with the field, and nothing is changed."""
    with unchanged(live), pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == said
    assert caught.value.field == said.partition(": ")[0]
    assert type(caught.value) is kind


def believed(reading: list[float | None]) -> tuple[list[float], list[float]]:
    """Mean and deviations of a context given its reading, the first of its unit, by brute force."""
    seen = [i for i, x in enumerate(reading) if x is not None]
    told = np.array([x for x in reading if x is not None])
    gain = SPREAD[:, seen] @ np.linalg.inv((SPREAD + NOISE + BIAS)[np.ix_(seen, seen)])
    cov = SPREAD - gain @ SPREAD[seen]
    return (MEAN + gain @ (told - MEAN[seen])).tolist(), np.sqrt(np.diag(cov)).tolist()
