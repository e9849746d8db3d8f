"""Executors: in which process, or on which machine, an engine plays its batches.

`Executor` is the contract. The executors are modules beside this one, imported when they are asked for.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from unfog.simulation.engines import Engine
from unfog.simulation.job import Job, Part, Task, Tick
from unfog.validation import InputError, count, display, nearest

NAMES = ("serial", "processes", "dask", "ray")
CLUSTERS = {"dask": "a scheduler of Dask", "ray": "a cluster of Ray"}
ALLOWED = "serial, processes, dask, dask://HOST:PORT, ray or ray://HOST:PORT"
IN_FLIGHT = 2  # tasks sent to each worker at a time, so that the next one is there when it needs it
MOST_WORKERS = 10_000  # of a cluster; this machine starts no more than there are tasks
RETRIES = 3  # times a task is played again whose worker died; then the task itself is to blame


class WorkerDiedError(RuntimeError):
    """A worker process is gone: killed, or out of memory. Finished work is kept.

    If no worker has ever started, the calling script most likely lacks `if __name__ == "__main__":`; that
    raises an InputError instead.

    >>> from unfog.simulation.executors import WorkerDiedError
    >>> print(WorkerDiedError())
    a worker process died, possibly for lack of memory
    """

    def __init__(self, what: str = "a worker process died, possibly for lack of memory") -> None:
        """`what` is the message; a caller who knows the exit code may say more."""
        super().__init__(what)


class Executor(Protocol):
    """A way to have an engine play tasks. Any engine can be combined with any executor.

    Tasks are taken from their iterator a few at a time for each worker, and results are yielded at once, so
    that there can be any number of them.

    >>> from unfog.simulation.executors import Executor
    >>> from unfog.simulation.executors.local import Processes
    >>> one: Executor = Processes(2)
    >>> one.workers, one.here
    (2, 2)
    """

    @property
    def workers(self) -> int:
        """How many tasks are played at a time."""
        ...

    @property
    def here(self) -> int:
        """How many processes of this machine play them, and so use its memory."""
        ...

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Yield each task with the results of its pieces as it finishes."""
        ...


def enough(tasks: Iterable[Task], workers: int) -> tuple[int, Iterator[Task]]:
    """How many of these workers have a task; and the tasks, complete."""
    coming = iter(tasks)
    first = list(itertools.islice(coming, workers))
    return len(first), itertools.chain(first, coming)


def played(engine: Engine, jobs: Sequence[Job], task: Task, tick: Tick) -> list[Part]:
    """Play the pieces of a task, wherever the worker is."""
    return [engine.run(jobs[piece.setting], piece.trials, tick) for piece in task]


def make_executor(name: str | None, workers: int | None = None) -> Executor | None:
    """The executor of this name, with so many workers; None leaves the choice to the plan.

    `dask` and `ray` start worker processes on this machine, all cores unless told. With an address they go to
    the cluster there, for as many workers as it has unless told; `ray` goes where RAY_ADDRESS says.
    """
    if name is None:
        return None
    from unfog.simulation.executors.cluster import MOST_PORT, endpoint
    from unfog.simulation.executors.local import Processes, Serial, cores

    kind, _, address = name.partition("://") if isinstance(name, str) else ("", "", "")
    workers = None if workers is None else count("workers", workers, most=MOST_WORKERS)
    if name == "serial":
        if workers is not None and workers > 1:
            raise InputError("workers", workers, "1 on 'serial', which is this process alone")
        return Serial()
    if name == "processes":
        return Processes(workers or cores())
    if kind not in ("dask", "ray") or (name != kind and not address):
        raise InputError("executor", display(name), ALLOWED, nearest(kind, NAMES))
    if address and endpoint(address) is None:
        raise InputError("executor", repr(name), f"{kind}://HOST:PORT, PORT a number from 1 to {MOST_PORT}")
    return _make_remote(kind, address, workers)


def _make_remote(name: str, address: str, workers: int | None) -> Executor:
    """An executor on Dask or Ray; the address is tested before their libraries are imported."""
    if address:
        from unfog.simulation.executors.cluster import refuse_silence

        refuse_silence(f"{name}://{address}", CLUSTERS[name])
    if name == "ray":
        from unfog.simulation.executors.ray import Ray

        return Ray(f"ray://{address}" if address else None, workers)
    from unfog.simulation.executors.dask import Dask

    try:
        return Dask(f"tcp://{address}" if address else None, workers)
    except InputError as error:
        if error.field != "executor":
            raise
        raise InputError("executor", repr(f"dask://{address}"), error.allowed) from None
