"""Tasks on Ray: worker processes of this machine, or whatever an existing cluster has.

Small engines and jobs are sent with each task. Larger ones are put into Ray's object store once, from where
each worker process takes them at its first task; but if that store dies while it holds something of ours, Ray
ends our process too, without a message. Ray itself repeats the tasks of a dead worker, `RETRIES` times.
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

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # by default it sends usage reports
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the future default; without it, Ray warns
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its C++ code repeats our errors on stderr

import ray

from unfog.simulation.engines import Engine
from unfog.simulation.executors import IN_FLIGHT, MOST_WORKERS, RETRIES, WorkerDiedError, enough
from unfog.simulation.executors.cluster import Parcel, Served, collected, parcel, refuse_silence, served
from unfog.simulation.executors.local import cores, deaf_children
from unfog.simulation.job import Job, Part, Task, Tick
from unfog.validation import InputError, count

LOCAL = "local"
LOOK_SECONDS = 1.0  # between checks that the cluster is still there
STORE = 2**29  # bytes of shared memory for results in transit, a few for each worker; more goes to disk
SMALL = 2**16  # bytes of engine and jobs: the built-in experiments take about 17 kB
SETTINGS = {
    "task_oom_retries": RETRIES,  # infinite by default
    "task_events_report_interval_ms": 0,  # nobody reads them
}
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}


class Ray:
    """The executor. With an address ("auto", host:port, ray://host:port) there, else in processes here.

    Without an address, that of the environment's RAY_ADDRESS counts; a Ray that this process has joined
    already is used as it is.

    >>> from unfog.simulation.executors.ray import Ray
    >>> Ray("local", workers=8)  # play(..., executor=Ray(workers=8)); nothing is started before that
    Ray('local', 8)
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """`workers` is how many to start here, or to use on the cluster; by default all."""
        self.address = address or os.environ.get("RAY_ADDRESS") or LOCAL
        number = None if workers is None else count("workers", workers, most=MOST_WORKERS)
        if self.address == LOCAL and not ray.is_initialized():
            self.workers = number or cores()
            return
        with _joined(self.address, 1):
            self.workers = number or max(1, int(ray.cluster_resources().get("CPU", 0)))

    def __repr__(self) -> str:
        return f"Ray({self.address!r}, {self.workers})"

    @property
    def here(self) -> int:
        """All workers, or this process alone if they are on a cluster."""
        return self.workers if self.address == LOCAL else 1

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with its curves, as they finish."""
        payload = parcel(engine, jobs, "ray", ray.cloudpickle.dumps)
        workers, coming = enough(tasks, self.workers)
        if not workers:
            return
        with _joined(self.address, workers):
            cluster = _Cluster(payload, needs_device=not engine.shares_work)
            room = IN_FLIGHT * min(self.workers, cluster.devices or self.workers)
            yield from collected(cluster, coming, room, tick)


class _Cluster:
    """A cluster that has the parcel."""

    def __init__(self, payload: Parcel, *, needs_device: bool) -> None:
        """`needs_device`: whether each task gets a GPU of its own, if there are any."""
        self.devices = int(ray.cluster_resources().get("GPU", 0)) if needs_device else 0
        value = payload if len(payload[1]) < SMALL else ray.put(payload)
        self.payload = [value]  # in a list, or Ray would fetch it for every task
        self.serve = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=1 if self.devices else 0)(_serve)

    def submit(self, task: Task) -> Any:
        """A reference to the result."""
        with _translate_errors():
            return self.serve.remote(self.payload, task)

    def finished(self, handles: Sequence[Any]) -> Sequence[tuple[Any, Served]]:
        """Wait for handles that are done; raise if the cluster is gone."""
        while True:
            _check_alive()
            with _translate_errors():
                done, _ = ray.wait(list(handles), num_returns=1, timeout=LOOK_SECONDS)
                if done:
                    return [(handle, ray.get(handle)) for handle in done]


def _serve(payload: list[Any], task: Task) -> Served:
    [value] = payload
    return served(value if isinstance(value, tuple) else _fetch(value), task)


@lru_cache(maxsize=1)
def _fetch(reference: Any) -> Parcel:
    """Fetch the parcel, once in each process."""
    value: Parcel = ray.get(reference)
    return value


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn Ray's errors for lost workers and clusters into WorkerDiedError; raise those of the engine."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        died = f"a task has cost Ray {RETRIES + 1} workers, perhaps for lack of memory"
        raise WorkerDiedError(died) from None
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise WorkerDiedError(f"the cluster of Ray is gone ({type(error).__name__})") from None


def _check_alive() -> None:
    """Raise if Ray's processes are dead: Ray would wait for a minute and then end this process."""
    node = ray._private.worker._global_node
    if node is not None and node.dead_processes():
        raise WorkerDiedError("the cluster of Ray on this machine is gone")


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Silence stderr, where Ray's C++ code announces how much it will log."""
    sys.stderr.flush()
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


@contextmanager
def _keep_handler() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces by one that ends this process at once."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _joined(address: str, workers: int) -> Iterator[None]:
    """Use the Ray that this process has joined already, or join one for the duration of the block."""
    if ray.is_initialized():
        yield
        return
    options = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE}
    refuse_silence(address, "a cluster of Ray")
    try:
        with deaf_children(), _silence_stderr(), _keep_handler(), warnings.catch_warnings():
            # JAX warns of forks, but Ray's forked processes execute another program at once.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(address, **QUIET, **(options | {"_system_config": SETTINGS} if address == LOCAL else {}))
    except Exception as error:  # Ray raises all kinds of exceptions
        words = (str(error).splitlines() or [""])[0]
        if address == LOCAL:
            raise WorkerDiedError(f"Ray could not start on this machine ({words})") from error
        raise InputError("executor", repr(address), f"a cluster of Ray that answers ({words})") from error
    try:
        yield
    finally:
        ray.shutdown()
