"""What executors on clusters have in common: addresses, engine and jobs as one parcel, tasks a few at a time.

An address is HOST:PORT, and somebody must listen there. It is tried at once, before a library of clusters is
imported: those try for long.
"""

import itertools
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from unfog.simulation.engines import Engine
from unfog.simulation.executors import played
from unfog.simulation.executors.local import refuse_what_cannot_travel, unpacked
from unfog.simulation.job import Job, Part, Task, Tick
from unfog.validation import InputError

PATIENCE = 10.0  # seconds for a machine to answer
MOST_PORT = 2**16 - 1

Parcel = tuple[tuple[str, ...], bytes]
"""Where modules were looked for, and what every task needs: engine and jobs, sent once a worker."""

Served = tuple[list[Part], int]
"""What a worker gives for a task, and the agent-rounds of it."""


def endpoint(address: str) -> tuple[str, int] | None:
    """The host and the port of HOST:PORT, whatever comes before ://; None where it is no such thing."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port[:9]) <= MOST_PORT:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


def refuse_silence(address: str, whom: str) -> None:
    """Complain of an address where nobody listens; of one that is no HOST:PORT nothing is known."""
    found = endpoint(address)
    if found is None:
        return
    try:
        socket.create_connection(found, PATIENCE).close()
    except (OSError, UnicodeError) as error:
        raise InputError("on", repr(address), f"{whom} that answers ({error})") from None


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
