"""Places where live problems are: a file, a real PostgreSQL, a service. One in memory would be one line."""

from collections.abc import Callable, Iterator
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
from unfog.live import Problem, Store
from unfog.live.postgres.ownership import Shared
from unfog.serve import Client
from unfog.serve.client import Remote
from unfog.validation import InputError

Live: TypeAlias = Problem | Remote
MEAN, SPREAD = (np.array(CHANNEL[name]) for name in ("context_mean", "context_cov"))
NOISE, BIAS = (np.diag(np.array(CHANNEL[name])) for name in ("noise_cov", "bias_cov"))
SHOWN = [0.5, -1.0]  # a reading
NUMBERS = count()  # so that each problem has a name of its own


@dataclass(frozen=True)
class Place:
    """Where problems are made, on a clock that is moved by hand, and the stores they are in, if any."""

    clock: Hand
    problem: Callable[..., Live]
    store: Callable[[str], Store | Client] | None = None

    def made(self, **terms: Any) -> Live:
        """A new problem: two coordinates, three arms, a channel; unless told otherwise."""
        told: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
        return self.problem(new_name(), **told | terms)

    def store_of(self, name: str) -> Store | Client:
        """The store that has a problem, or will have it."""
        assert self.store is not None
        return self.store(name)


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
    before = live.fingerprint()
    yield
    assert live.fingerprint() == before


@contextmanager
def unchanged(*several: Live) -> Iterator[None]:
    """What is remembered and what is logged stays as it is."""
    before = [(live.fingerprint(), live.events()) for live in several]
    yield
    assert [(live.fingerprint(), live.events()) for live in several] == before


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
