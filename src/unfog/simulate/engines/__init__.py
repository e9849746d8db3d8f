"""Engines: who plays the rounds of a batch of trials.

One file each, imported when it is used. An engine plays any batch of a job anywhere: which batches, and in
which process, is an executor's business.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from unfog.simulate.engines.room import Term
from unfog.simulate.job import Job, Part, Tick
from unfog.validation import InputError, one_of

NAMES = ("numpy", "numba", "jax", "cuda")
ALIASES = {"chip": "cuda", "pallas": "cuda"}  # what older specs call it
AUTO, AS_TOLD = "auto", "as told"
CANDIDATES = NAMES  # for `auto`


class Engine(Protocol):
    """A way to play rounds. Engines hold no state: they travel to other processes by pickle."""

    name: str
    packages: tuple[str, ...]  # those besides NumPy whose versions decide results
    shares_work: bool  # whether several processes are faster than one; not where one takes the device whole

    @property
    def label(self) -> str:
        """Its name and, where there is a choice, the device it runs on."""
        ...

    def refuse(self, job: Job) -> None:
        """Raise InputError for what it cannot do."""
        ...

    def settle(self, precision: str | None) -> str | None:
        """The precision it computes in, where it is asked for this one or for none."""
        ...

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:
        """How long it is estimated to take."""
        ...

    def batch(self, job: Job, trials: int) -> int:
        """How many trials to play side by side: the same however many workers there are."""
        ...

    def terms(self, job: Job) -> list[Term]:
        """Where the memory of one of its processes goes: engines/room.py."""
        ...

    def bytes(self, job: Job, trials: int) -> int:
        """The peak of one process that plays so many trials side by side."""
        ...

    def device(self) -> int | None:
        """Bytes of the device that a batch lies on; None: it is the machine's own memory."""
        ...

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials."""
        ...


def canonical(name: Any, field: str = "engine") -> str:
    """The name of an engine, or `auto`; any other is refused."""
    return one_of(field, ALIASES.get(name, name) if isinstance(name, str) else name, (*NAMES, AUTO))


def engine(name: str) -> Engine:
    """The engine of this name; what it needs is imported now."""
    found: Engine = import_module(f"{__name__}.{name}").ENGINE
    return found


def choose(jobs: Sequence[Job], trials: int, workers: int, wanted: str) -> tuple[Engine, str]:
    """The one engine that will play all of these jobs, which differ in their problem alone, and why."""
    if wanted == AUTO:
        return _cheapest(jobs, trials, workers)
    found = engine(wanted)
    for job in jobs:
        found.refuse(job)
    return found, AS_TOLD


def _cheapest(jobs: Sequence[Job], trials: int, workers: int) -> tuple[Engine, str]:
    """The engine that is estimated to finish first, of those that can do it."""
    able: list[tuple[float, Engine]] = []
    without: list[tuple[str, InputError | ModuleNotFoundError]] = []
    for name in CANDIDATES:
        try:
            found, _ = choose(jobs, trials, workers, name)
            able.append((sum(found.seconds(job, trials, workers) for job in jobs), found))
        except (InputError, ModuleNotFoundError) as error:
            without.append((name, error))
    if not able:
        errors = [error for _, error in without]
        raise next((e for e in errors if isinstance(e, ModuleNotFoundError)), errors[0])
    told = ", ".join(f"{found.label} about {seconds:.1f} s" for seconds, found in able)
    lacking = "".join(f"; {_why_not(name, error)}" for name, error in without)
    return min(able, key=lambda one: one[0])[1], f"estimated to finish first ({told}){lacking}"


def _why_not(name: str, error: InputError | ModuleNotFoundError) -> str:
    """Why an engine is no candidate, in a few words."""
    if isinstance(error, ModuleNotFoundError):
        return f"not {name} ({error.name} is not installed)"
    return str(error.value) if error.field == "engine" else f"not {name} ({error})"
