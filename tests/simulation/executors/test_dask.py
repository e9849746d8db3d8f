"""Tasks on Dask: the bits of one process, whatever dies."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import dask
import distributed
import pytest

from tests.simulation.executors import clusters
from unfog.simulation.executors import RETRIES, WorkerDiedError
from unfog.simulation.executors.dask import DEVICE, SETTINGS, Dask
from unfog.validation import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Dask]:
    """Two workers for all tests of this file."""
    settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with dask.config.set(SETTINGS), distributed.LocalCluster(n_workers=2, **settings) as found:
        yield Dask(found.scheduler_address)


def test_the_workers_there_are_counted(cluster: Dask) -> None:
    assert cluster.workers == 2
    assert Dask(cluster.address, 5).workers == 5
    assert Dask(workers=3).workers == 3


@pytest.mark.parametrize("engine", ["numpy", pytest.param("jax", marks=pytest.mark.soak)])
def test_the_bits_are_those_of_one_process(cluster: Dask, engine: str) -> None:
    clusters.assert_same_bits(cluster, engine)


def test_tasks_are_taken_lazily_and_the_engine_travels_once(cluster: Dask, tmp_path: Path) -> None:
    clusters.assert_taken_lazily(cluster, tmp_path)


def test_what_a_killed_worker_had_is_played_again(cluster: Dask, tmp_path: Path) -> None:
    assert clusters.firsts(clusters.stubs(cluster, clusters.Dies(tmp_path))) == list(range(12))
    assert (tmp_path / "died").exists()


def test_refusals_come_with_the_same_words(cluster: Dask) -> None:
    clusters.assert_same_words(cluster)


def test_what_cannot_travel_is_refused_by_name(cluster: Dask) -> None:
    clusters.assert_refused_by_name(cluster, "dask")


@pytest.mark.soak
def test_a_task_that_kills_every_worker_ends_the_run(cluster: Dask, tmp_path: Path) -> None:
    with pytest.raises(
        WorkerDiedError, match=r"^a task has cost Dask 4 workers, perhaps for lack of memory$"
    ):
        list(clusters.stubs(cluster, clusters.Deadly(tmp_path)))
    assert len((tmp_path / "deaths").read_text().split()) == RETRIES + 1


def test_no_scheduler_no_run() -> None:
    with pytest.raises(
        InputError, match=r"^executor: 'tcp://127.0.0.1:9'; allowed: a scheduler of Dask that answers"
    ):
        Dask("tcp://127.0.0.1:9")


@contextmanager
def _scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Scheduler and worker as on machines of their own; the worker has a device."""
    file, quiet = folder / "scheduler.json", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    told = ["--no-dashboard", "--scheduler-file", str(file)]
    cli = [sys.executable, "-m", "distributed.cli"]
    first = [f"{cli[2]}.dask_scheduler", *told, "--port", "0", "--host", "127.0.0.1"]
    second = [f"{cli[2]}.dask_worker", *told, "--nthreads", "1", "--resources", f"{DEVICE}=1"]
    scheduler = subprocess.Popen([*cli[:2], *first], **quiet)  # type: ignore[call-overload]
    clusters.wait_for(file.exists)
    worker = subprocess.Popen([*cli[:2], *second], **quiet)  # type: ignore[call-overload]
    try:
        yield json.loads(file.read_text())["address"], scheduler
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


@pytest.mark.soak
def test_a_dead_scheduler_is_told_of(tmp_path: Path) -> None:
    """Scheduler and worker in a process each, and one device, for which tasks wait in turn."""
    with _scheduler(tmp_path) as (address, scheduler):
        results = clusters.stubs(Dask(address, 2), clusters.Waits(tmp_path, shares_work=False))
        assert next(results)[0][0].trials.start == 0
        scheduler.kill()
        with pytest.raises(WorkerDiedError, match=rf"^the scheduler of Dask at {address} is gone$"):
            list(results)


@pytest.mark.soak
def test_a_killed_run_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    clusters.assert_killed_and_resumed(tmp_path, "dask")


def test_no_more_workers_are_started_than_there_are_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[int]()

    def counted(workers: int) -> NoReturn:
        started.append(workers)
        raise WorkerDiedError("for this test")

    executor = Dask(workers=5000)
    monkeypatch.setattr("unfog.simulation.executors.dask._local", counted)
    with pytest.raises(WorkerDiedError, match="for this test"):
        list(clusters.stubs(executor, clusters.Stub(tmp_path), number=3))
    assert started == [3]
    assert not list(clusters.stubs(executor, clusters.Stub(tmp_path), number=0))
