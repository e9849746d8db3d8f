"""Tasks on Ray: worker processes of this machine, or whatever an existing cluster has.

Engine and jobs go along with each task where they are small. Larger ones are put into Ray's object store
once, from where each worker process takes them at its first task; but should that store die while something
of ours lies in it, Ray ends our process too, without a word. Ray plays again by itself what a dead worker
had, `RETRIES` times.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns that this will be so
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its C++ writes to our stderr what we say ourselves

import ray

from unfog.simulation.engines import Engine
from unfog.simulation.executors import IN_FLIGHT, MOST_WORKERS, RETRIES, WorkerDiedError, enough
from unfog.simulation.executors.cluster import Parcel, Served, collected, parcel, refuse_silence, served
from unfog.simulation.executors.local import cores, deaf_children
from unfog.simulation.job import Job, Part, Task, Tick
from unfog.validation import InputError, count

LOCAL = "local"
LOOK_SECONDS = 1.0  # between looks at whether the cluster is still there
STORE = 2**29  # bytes of shared memory for results on their way: a few for each worker; more goes to disk
SMALL = 2**16  # bytes of engine and jobs: the built-in experiments take about 17 kB
SETTINGS = {
    "task_oom_retries": RETRIES,  # for ever otherwise
    "task_events_report_interval_ms": 0,  # nobody looks at them
}
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}


class Ray:
    """The executor. With an address ("auto", host:port, ray://host:port) there, else in processes here.

    Without an address, that of the environment's RAY_ADDRESS counts; a Ray that this process has joined
    already is used as it is.

    >>> from unfog.simulation.executors.ray import Ray
    >>> Ray("local", workers=8)  # simulate(..., executor=Ray(workers=8)); nothing is started before that
    Ray('local', 8)
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """`workers` is how many to start here, or to have tasks in flight for there: all unless told."""
        self.address = address or os.environ.get("RAY_ADDRESS") or LOCAL
        told = None if workers is None else count("workers", workers, most=MOST_WORKERS)
        if self.address == LOCAL and not ray.is_initialized():
            self.workers = told or cores()
            return
        with _joined(self.address, 1):
            self.workers = told or max(1, int(ray.cluster_resources().get("CPU", 0)))

    def __repr__(self) -> str:
        return f"Ray({self.address!r}, {self.workers})"

    @property
    def here(self) -> int:
        """All workers, or this process alone where they are elsewhere."""
        return self.workers if self.address == LOCAL else 1

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with its curves, as they finish."""
        sent = parcel(engine, jobs, "ray", ray.cloudpickle.dumps)
        workers, coming = enough(tasks, self.workers)
        if not workers:
            return
        with _joined(self.address, workers):
            place = _Place(sent, alone=not engine.shares_work)
            room = IN_FLIGHT * min(self.workers, place.devices or self.workers)
            yield from collected(place, coming, room, tick)


class _Place:
    """A cluster that has the parcel."""

    def __init__(self, sent: Parcel, *, alone: bool) -> None:
        """An engine that takes a device whole is given one a task, where there are any."""
        self.devices = int(ray.cluster_resources().get("GPU", 0)) if alone else 0
        there = sent if len(sent[1]) < SMALL else ray.put(sent)
        self.sent = [there]  # in a list, or Ray would fetch it for every task
        self.serve = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=1 if self.devices else 0)(_serve)

    def submit(self, task: Task) -> Any:
        """A reference to what will be there."""
        with _seen_as_lost():
            return self.serve.remote(self.sent, task)

    def finished(self, handles: Sequence[Any]) -> Sequence[tuple[Any, Served]]:
        """The handles that are done; now and then a look at whether any ever will be."""
        while True:
            _refuse_the_dead()
            with _seen_as_lost():
                done, _ = ray.wait(list(handles), num_returns=1, timeout=LOOK_SECONDS)
                if done:
                    return [(handle, ray.get(handle)) for handle in done]


def _serve(sent: list[Any], task: Task) -> Served:
    [there] = sent
    return served(there if isinstance(there, tuple) else _taken(there), task)


@lru_cache(maxsize=1)
def _taken(reference: Any) -> Parcel:
    """The parcel, once a process."""
    found: Parcel = ray.get(reference)
    return found


@contextmanager
def _seen_as_lost() -> Iterator[None]:
    """What Ray says when workers, or all of it, are gone, in our words; errors of the engine as they were."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        died = f"a task has cost Ray {RETRIES + 1} workers, perhaps for lack of memory"
        raise WorkerDiedError(died) from None
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise WorkerDiedError(f"the cluster of Ray is gone ({type(error).__name__})") from None


def _refuse_the_dead() -> None:
    """Ray itself would wait for its own processes for a minute, and then end ours."""
    node = ray._private.worker._global_node
    if node is not None and node.dead_processes():
        raise WorkerDiedError("the cluster of Ray on this machine is gone")


@contextmanager
def _unheard() -> Iterator[None]:
    """Nothing is written to stderr: Ray's C++ announces there how much it will log."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


@contextmanager
def _own_handler() -> Iterator[None]:
    """Ray makes SIGTERM end this process at once, whatever was to happen then."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _joined(address: str, workers: int) -> Iterator[None]:
    """A Ray to work on: the one this process is in, or one for as long as this lasts."""
    if ray.is_initialized():
        yield
        return
    here = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE}
    refuse_silence(address, "a cluster of Ray")
    try:
        with deaf_children(), _unheard(), _own_handler(), warnings.catch_warnings():
            # What Ray forks becomes another program at once: JAX, whose warning this is, has no part in it.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(address, **QUIET, **(here | {"_system_config": SETTINGS} if address == LOCAL else {}))
    except Exception as error:  # Ray's own, of no further kind
        words = (str(error).splitlines() or [""])[0]
        if address == LOCAL:
            raise WorkerDiedError(f"Ray could not start on this machine ({words})") from error
        raise InputError("on", repr(address), f"a cluster of Ray that answers ({words})") from error
    try:
        yield
    finally:
        ray.shutdown()
