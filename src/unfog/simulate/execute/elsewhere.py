"""What executors on clusters have in common: engine and jobs as one parcel, tasks a few at a time."""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from unfog.simulate.engines import Engine
from unfog.simulate.execute import played
from unfog.simulate.execute.crew import unpacked
from unfog.simulate.execute.processes import refuse_what_cannot_travel
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.tasks import Task

Parcel = tuple[tuple[str, ...], bytes]
"""Where modules were looked for, and what every task needs: engine and jobs, sent once a worker."""

Served = tuple[list[Part], int]
"""What a worker gives for a task, and the agent-rounds of it."""


class Place(Protocol):
    """A cluster that holds the parcel. Handles are its promises of a result; dropped, they are forgotten."""

    def submit(self, task: Task) -> Any:
        """A handle of what will be `served`."""
        ...

    def finished(self, handles: Sequence[Any]) -> Sequence[tuple[Any, Served]]:
        """Some that are done with what was served, as soon as there are any.

        Errors of the engine are raised as they were there; WorkerDiedError when none will ever be done.
        """
        ...


def parcel(engine: Engine, jobs: Sequence[Job], on: str, dumps: Callable[[Any], bytes]) -> Parcel:
    """What is sent ahead; what cannot travel is refused by name.

    `dumps` is the cluster's own, which sends what a script itself defines: no worker runs that script.
    """
    refuse_what_cannot_travel(jobs, "on", on, "serial")
    return tuple(sys.path), dumps((engine, tuple(jobs)))


def served(sent: Parcel, task: Task) -> Served:
    """What a worker does."""
    paths, packed = sent
    sys.path += [path for path in paths if path not in sys.path]  # agents of one's own lie beside the spec
    engine, jobs = unpacked(packed)
    done = list[int]()
    return played(engine, jobs, task, done.append), sum(done)


def collected(
    place: Place, tasks: Iterable[Task], room: int, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    """Each task with its curves, as they finish; never more than `room` of them are under way."""
    waiting, coming = dict[Any, Task](), iter(tasks)
    while True:
        waiting |= {place.submit(task): task for task in itertools.islice(coming, room - len(waiting))}
        if not waiting:
            return
        ready = list(place.finished(list(waiting)))
        while ready:
            handle, (parts, rounds) = ready.pop()
            task = waiting.pop(handle)
            del handle
            tick(rounds)
            yield task, parts
