"""Tasks on Dask: worker processes of this machine, or whatever workers an existing scheduler has.

Engine and jobs are the result of a task of their own, which all others depend on: workers fetch it once, from
each other, and should all that hold it die, it is made again. Dask plays again by itself what a dead worker
had, and gives up on a task that has outlived `allowed-failures` workers.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dask
import distributed

from unfog.simulation.engines import Engine
from unfog.simulation.executors import IN_FLIGHT, MOST_WORKERS, RETRIES, WorkerDiedError, enough
from unfog.simulation.executors.cluster import Parcel, Served, collected, parcel, refuse_silence, served
from unfog.simulation.executors.local import cores, deaf_children
from unfog.simulation.job import Job, Part, Task, Tick
from unfog.validation import InputError, count

PATIENCE = 10.0  # seconds to find a scheduler, and to close a cluster
LOOK_SECONDS = 1.0  # between looks at whether there are workers
LONELY = 60.0  # seconds without any: those that died are started again, in time
DESERTED = f"Dask has had no worker for {LONELY:.0f} seconds"
DEVICE = "GPU"  # what workers with a device to themselves are started with: --resources "GPU=1"
SETTINGS = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.profile.enabled": False,  # it looks at all frames every 10 ms: JAX compiles for ever
    "distributed.admin.tick.interval": "1s",  # loops look at themselves: 20 ms cost a twentieth
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.allowed-failures": RETRIES,
    "distributed.admin.large-graph-warning-threshold": "1GB",  # the parcel may be large: it is sent once
    "distributed.comm.timeouts.connect": PATIENCE,
}


class Dask:
    """The executor. With the address of a scheduler (tcp://host:port) there, else in processes here.

    >>> from unfog.simulation.executors.dask import Dask
    >>> Dask(workers=8)  # simulate(..., executor=Dask(workers=8)); nothing is started before that
    Dask(None, 8)
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """`workers` is how many to start here, or to have tasks in flight for there: all unless told."""
        self.address = address
        told = None if workers is None else count("workers", workers, most=MOST_WORKERS)
        if address is None:
            self.workers = told or cores()
            return
        with _connected(address) as client:
            self.workers = told or sum(client.nthreads().values())
        if not self.workers:
            allowed = f"a scheduler with workers: start some with `dask worker {address}`"
            raise InputError("on", repr(address), allowed)

    def __repr__(self) -> str:
        return f"Dask({self.address!r}, {self.workers})"

    @property
    def here(self) -> int:
        """All workers, or this process alone where they are elsewhere."""
        return self.workers if self.address is None else 1

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with its curves, as they finish."""
        sent = parcel(engine, jobs, "dask", distributed.protocol.pickle.dumps)
        workers, coming = enough(tasks, self.workers)
        if not workers:
            return
        with _local(workers) if self.address is None else _connected(self.address) as client:
            place = _Place(client, sent, alone=not engine.shares_work)
            room = IN_FLIGHT * min(self.workers, place.devices or self.workers)
            yield from collected(place, coming, room, tick)


class _Place:
    """A cluster that has the parcel."""

    def __init__(self, client: Any, sent: Parcel, *, alone: bool) -> None:
        """An engine that takes a device whole goes to workers that have one each, where there are any."""
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        devices = sum(worker["resources"].get(DEVICE, 0) for worker in workers)
        self.client, self.devices = client, int(devices) if alone else 0
        self.name = f"unfog-{uuid4().hex}"
        with _seen_as_lost(client), dask.config.set(SETTINGS):
            self.sent = client.submit(_parcel, sent, key=f"{self.name}-parcel")
            _spread(client, self.sent)
        self.number = 0

    def submit(self, task: Task) -> Any:
        """Under a key of its own: equal tasks of two runs are two."""
        self.number += 1
        needs = {DEVICE: 1} if self.devices else None
        key = (self.name, self.number)
        return self.client.submit(served, self.sent, task, key=key, pure=False, resources=needs)

    def finished(self, handles: Sequence[Any]) -> Sequence[tuple[Any, Served]]:
        """One that is done. Without a scheduler all are cancelled, without workers none ever will be."""
        alone_since = time.monotonic()
        while True:
            with _seen_as_lost(self.client):
                found = self._first(handles)
                if found:
                    return found
                if self.client.nthreads():
                    alone_since = time.monotonic()
            if time.monotonic() - alone_since > LONELY:
                raise WorkerDiedError(DESERTED)

    def _first(self, handles: Sequence[Any]) -> list[tuple[Any, Served]]:
        """None where nothing came in a while: what is done may be lost with the worker that held it."""
        try:
            done = list(distributed.wait(handles, LOOK_SECONDS, "FIRST_COMPLETED").done)
        except TimeoutError:
            return []
        for failed in [handle for handle in done if handle.status == "error"]:
            failed.result()
        try:
            return [(done[0], done[0].result(PATIENCE))]
        except TimeoutError:
            return []


def _parcel(sent: Parcel) -> Parcel:
    return sent


def _spread(client: Any, sent: Any) -> None:
    """A copy on every worker: tasks are given to those that have one, and stolen by others when idle."""
    try:
        distributed.wait(sent, LONELY)
        client.replicate([sent])
    except TimeoutError:
        raise WorkerDiedError(DESERTED) from None
    except ValueError:
        pass  # what Dask says when workers come or go meanwhile; the idle will fetch it


@contextmanager
def _seen_as_lost(client: Any) -> Iterator[None]:
    """What Dask says when workers, or the scheduler, are gone, in our words."""
    try:
        yield
    except distributed.KilledWorker:
        died = f"a task has cost Dask {RETRIES + 1} workers, perhaps for lack of memory"
        raise WorkerDiedError(died) from None
    except (CancelledError, distributed.client.FutureCancelledError, distributed.comm.CommClosedError):
        raise WorkerDiedError(f"the scheduler of Dask at {client.scheduler.address} is gone") from None


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """A cluster of processes with a thread each, which leave interrupts to us, and die with us."""
    with dask.config.set(SETTINGS), deaf_children(), _quiet():
        cluster = _cluster(workers)
    with _quiet(), cluster, distributed.Client(cluster) as client:
        yield client


def _cluster(workers: int) -> Any:
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # None would still take a port, and always the same
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        )
    except RuntimeError:
        why = "killed at once, or started by a script that is not under `if __name__ == '__main__':`"
        raise WorkerDiedError(f"no worker process of Dask could start: {why}") from None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A scheduler of somebody else's."""
    refuse_silence(address, "a scheduler of Dask")
    with _quiet():
        try:
            client = distributed.Client(address, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise InputError("on", repr(address), f"a scheduler of Dask that answers ({error})") from None
        with client:
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """What happens to a cluster is told by what comes of it, not by its log."""
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
