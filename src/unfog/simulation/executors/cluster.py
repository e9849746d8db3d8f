"""What executors on clusters have in common: addresses, engine and jobs as one parcel, tasks a few at a time.

An address is HOST:PORT, and a server must listen there. This is tested before a library of clusters is
imported, since these libraries take long to give up.
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
"""`sys.path`, and the pickled engine and jobs that every task needs; sent to each worker once."""

Served = tuple[list[Part], int]
"""The results of a task, and its agent-rounds."""


def endpoint(address: str) -> tuple[str, int] | None:
    """The host and port of HOST:PORT, with or without a scheme; None for anything else."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port[:9]) <= MOST_PORT:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


def refuse_silence(address: str, whom: str) -> None:
    """Raise if nobody listens at an address; one that is not HOST:PORT is not tested."""
    target = endpoint(address)
    if target is None:
        return
    try:
        socket.create_connection(target, PATIENCE).close()
    except (OSError, UnicodeError) as error:
        raise InputError("executor", repr(address), f"{whom} that answers ({error})") from None


class Cluster(Protocol):
    """A cluster that has the parcel. Handles are futures; results of dropped handles are forgotten."""

    def submit(self, task: Task) -> Any:
        """Submit a task; the handle's result is that of `served`."""
        ...

    def finished(self, handles: Sequence[Any]) -> Sequence[tuple[Any, Served]]:
        """Wait until handles are done; return them with their results.

        Errors of the engine are raised unchanged, and WorkerDiedError if no handle will ever be done.
        """
        ...


def parcel(engine: Engine, jobs: Sequence[Job], executor: str, dumps: Callable[[Any], bytes]) -> Parcel:
    """Pack engine and jobs; raises if something cannot be pickled.

    `dumps` is the cluster's own, which includes what the script defines: no worker runs that script.
    """
    refuse_what_cannot_travel(jobs, "executor", executor, "serial")
    return tuple(sys.path), dumps((engine, tuple(jobs)))


def served(payload: Parcel, task: Task) -> Served:
    """Play a task on a worker."""
    paths, packed = payload
    sys.path += [path for path in paths if path not in sys.path]  # your own agents lie beside the spec
    engine, jobs = unpacked(packed)
    done = list[int]()
    return played(engine, jobs, task, done.append), sum(done)


def collected(
    cluster: Cluster, tasks: Iterable[Task], room: int, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    """Yield each task with its results as it finishes; at most `room` of them are under way."""
    handles, coming = dict[Any, Task](), iter(tasks)
    while True:
        handles |= {cluster.submit(task): task for task in itertools.islice(coming, room - len(handles))}
        if not handles:
            return
        ready = list(cluster.finished(list(handles)))
        while ready:
            handle, (parts, rounds) = ready.pop()
            task = handles.pop(handle)
            del handle
            tick(rounds)
            yield task, parts
