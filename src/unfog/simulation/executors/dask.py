"""Tasks on Dask: worker processes of this machine, or whatever workers an existing scheduler has.

Engine and jobs are the result of a task of their own, on which all others depend: workers fetch it once, from
each other, and if all that hold it die, it is computed again. Dask itself repeats the tasks of a dead worker,
and gives up on a task after `allowed-failures` workers.
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
LOOK_SECONDS = 1.0  # between checks that there are workers
LONELY = 60.0  # seconds without workers before giving up: dead ones are restarted by then
DESERTED = f"Dask has had no worker for {LONELY:.0f} seconds"
DEVICE = "GPU"  # the resource of workers with a GPU of their own: --resources "GPU=1"
SETTINGS = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.profile.enabled": False,  # it samples frames every 10 ms and stalls JAX's compiler
    "distributed.admin.tick.interval": "1s",  # event loops check themselves: every 20 ms would cost 5%
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.allowed-failures": RETRIES,
    "distributed.admin.large-graph-warning-threshold": "1GB",  # the parcel may be large: it is sent once
    "distributed.comm.timeouts.connect": PATIENCE,
}


class Dask:
    """The executor. With the address of a scheduler (tcp://host:port) there, else in processes here.

    >>> from unfog.simulation.executors.dask import Dask
    >>> Dask(workers=8)  # play(..., executor=Dask(workers=8)); nothing is started before that
    Dask(None, 8)
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """`workers` is how many to start here, or to use on the cluster; by default all."""
        self.address = address
        number = None if workers is None else count("workers", workers, most=MOST_WORKERS)
        if address is None:
            self.workers = number or cores()
            return
        with _connect(address) as client:
            self.workers = number or sum(client.nthreads().values())
        if not self.workers:
            allowed = f"a scheduler with workers: start some with `dask worker {address}`"
            raise InputError("executor", repr(address), allowed)

    def __repr__(self) -> str:
        return f"Dask({self.address!r}, {self.workers})"

    @property
    def here(self) -> int:
        """All workers, or this process alone if they are on a cluster."""
        return self.workers if self.address is None else 1

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with its curves, as they finish."""
        payload = parcel(engine, jobs, "dask", distributed.protocol.pickle.dumps)
        workers, coming = enough(tasks, self.workers)
        if not workers:
            return
        with _local(workers) if self.address is None else _connect(self.address) as client:
            cluster = _Cluster(client, payload, needs_device=not engine.shares_work)
            room = IN_FLIGHT * min(self.workers, cluster.devices or self.workers)
            yield from collected(cluster, coming, room, tick)


class _Cluster:
    """A cluster that has the parcel."""

    def __init__(self, client: Any, payload: Parcel, *, needs_device: bool) -> None:
        """`needs_device`: whether the engine goes to workers with a GPU of their own, if there are any."""
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        devices = sum(worker["resources"].get(DEVICE, 0) for worker in workers)
        self.client, self.devices = client, int(devices) if needs_device else 0
        self.name = f"unfog-{uuid4().hex}"
        with _translate_errors(client), dask.config.set(SETTINGS):
            self.payload = client.submit(_identity, payload, key=f"{self.name}-parcel")
            _replicate(client, self.payload)
        self.number = 0

    def submit(self, task: Task) -> Any:
        """Submit a task under a unique key, since equal tasks of two runs must not be shared."""
        self.number += 1
        needs = {DEVICE: 1} if self.devices else None
        key = (self.name, self.number)
        return self.client.submit(served, self.payload, task, key=key, pure=False, resources=needs)

    def finished(self, handles: Sequence[Any]) -> Sequence[tuple[Any, Served]]:
        """Wait for one that is done; raise if the scheduler is gone, or no worker has been there for long."""
        alone_since = time.monotonic()
        while True:
            with _translate_errors(self.client):
                finished = self._wait_for_first(handles)
                if finished:
                    return finished
                if self.client.nthreads():
                    alone_since = time.monotonic()
            if time.monotonic() - alone_since > LONELY:
                raise WorkerDiedError(DESERTED)

    def _wait_for_first(self, handles: Sequence[Any]) -> list[tuple[Any, Served]]:
        """One that is done; [] if none is for a while, or its result was lost with its worker."""
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


def _identity(payload: Parcel) -> Parcel:
    return payload


def _replicate(client: Any, payload: Any) -> None:
    """Copy the parcel to every worker: Dask prefers to send tasks to those that have it."""
    try:
        distributed.wait(payload, LONELY)
        client.replicate([payload])
    except TimeoutError:
        raise WorkerDiedError(DESERTED) from None
    except ValueError:
        pass  # workers came or went meanwhile; new ones fetch it themselves


@contextmanager
def _translate_errors(client: Any) -> Iterator[None]:
    """Turn Dask's errors for lost workers and schedulers into WorkerDiedError."""
    try:
        yield
    except distributed.KilledWorker:
        died = f"a task has cost Dask {RETRIES + 1} workers, perhaps for lack of memory"
        raise WorkerDiedError(died) from None
    except (CancelledError, distributed.client.FutureCancelledError, distributed.comm.CommClosedError):
        raise WorkerDiedError(f"the scheduler of Dask at {client.scheduler.address} is gone") from None


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """A cluster of processes with a thread each, which ignore interrupts and end with this process."""
    with dask.config.set(SETTINGS), deaf_children(), _silence_logs():
        cluster = _start_cluster(workers)
    with _silence_logs(), cluster, distributed.Client(cluster) as client:
        yield client


def _start_cluster(workers: int) -> Any:
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # None would take a port, too, and always the same
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        )
    except RuntimeError:
        cause = "killed at once, or started by a script that is not under `if __name__ == '__main__':`"
        raise WorkerDiedError(f"no worker process of Dask could start: {cause}") from None


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Connect to an existing scheduler."""
    refuse_silence(address, "a scheduler of Dask")
    with _silence_logs():
        try:
            client = distributed.Client(address, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise InputError(
                "executor", repr(address), f"a scheduler of Dask that answers ({error})"
            ) from None
        with client:
            yield client


@contextmanager
def _silence_logs() -> Iterator[None]:
    """Silence the cluster's logs: errors are raised instead."""
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
