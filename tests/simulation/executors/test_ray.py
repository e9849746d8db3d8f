"""Tasks on Ray: the bits of one process, whatever dies."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
import ray

from tests.simulation.executors import clusters
from unfog.simulation.executors import RETRIES, WorkerDiedError
from unfog.simulation.executors.ray import SMALL, Ray, _joined
from unfog.validation import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Ray]:
    """Two workers for all tests of this file but the last."""
    with _joined("local", 2):
        yield Ray()


def test_the_workers_there_are_counted(cluster: Ray) -> None:
    assert cluster.workers == 2
    assert Ray(workers=5).workers == 5


@pytest.mark.parametrize("engine", ["numpy", pytest.param("jax", marks=pytest.mark.soak)])
def test_the_bits_are_those_of_one_process(cluster: Ray, engine: str) -> None:
    clusters.assert_same_bits(cluster, engine)


@pytest.mark.parametrize("small", [SMALL, 0], ids=["small", "large"])
def test_tasks_are_taken_lazily_and_the_engine_travels_once(
    cluster: Ray, small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unfog.simulation.executors.ray.SMALL", small)
    clusters.assert_taken_lazily(cluster, tmp_path)


def test_what_a_killed_worker_had_is_played_again(cluster: Ray, tmp_path: Path) -> None:
    assert clusters.firsts(clusters.stubs(cluster, clusters.Dies(tmp_path))) == list(range(12))
    assert (tmp_path / "died").exists()


@pytest.mark.soak
def test_a_task_that_kills_every_worker_ends_the_run(cluster: Ray, tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match=r"^a task has cost Ray 4 workers, perhaps for lack of memory$"):
        list(clusters.stubs(cluster, clusters.Deadly(tmp_path)))
    assert len((tmp_path / "deaths").read_text().split()) == RETRIES + 1


def test_refusals_come_with_the_same_words(cluster: Ray) -> None:
    clusters.assert_same_words(cluster)


def test_what_cannot_travel_is_refused_by_name(cluster: Ray) -> None:
    clusters.assert_refused_by_name(cluster, "ray")


@pytest.mark.soak
def test_a_dead_cluster_is_told_of(cluster: Ray, tmp_path: Path) -> None:
    """The last that the cluster of this file sees."""
    results = clusters.stubs(cluster, clusters.Waits(tmp_path))
    assert next(results)[0][0].trials.start <= 3
    [raylet] = [one for one in psutil.Process().children() if one.name() == "raylet"]
    raylet.kill()
    with pytest.raises(WorkerDiedError, match=r"^the cluster of Ray .*is gone"):
        list(results)
    ray.shutdown()


@pytest.mark.soak
def test_no_cluster_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ray.shutdown()  # one that this process has joined already would be used
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(InputError, match=r"^executor: '127.0.0.1:9'; allowed: a cluster of Ray that answers"):
        Ray()


@pytest.mark.soak
def test_a_killed_run_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    clusters.assert_killed_and_resumed(tmp_path, "ray")


@pytest.mark.soak
def test_a_dead_helper_of_rays_is_told_of_in_one_line(tmp_path: Path) -> None:
    """Ray's own node ends with it: the run does too, in our words alone, and goes on when told again."""
    process = clusters.start(tmp_path, "ray")
    clusters.wait_for(partial(clusters.more, tmp_path, set()))
    everyone = psutil.Process(process.pid).children(recursive=True)
    [helper] = [one for one in everyone if "ray::DashboardAgent" in " ".join(one.cmdline())]
    helper.kill()
    _, err = process.communicate(timeout=clusters.PATIENCE)
    assert process.returncode == 1
    assert err.startswith("unfog: the cluster of Ray "), err
    assert err.endswith("; the same command goes on where it stopped\n"), err
    assert err.count("\n") == 1, err
    clusters.finish(tmp_path, "serial", "out")


def test_no_more_workers_are_started_than_there_are_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[int]()

    def counted(address: str, workers: int) -> NoReturn:
        started.append(workers)
        raise WorkerDiedError("for this test")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    executor = Ray(workers=5000)
    monkeypatch.setattr("unfog.simulation.executors.ray._joined", counted)
    with pytest.raises(WorkerDiedError, match="for this test"):
        list(clusters.stubs(executor, clusters.Stub(tmp_path), number=3))
    assert started == [3]
    assert not list(clusters.stubs(executor, clusters.Stub(tmp_path), number=0))
