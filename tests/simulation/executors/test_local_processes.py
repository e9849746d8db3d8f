"""Executors: any engine goes with any of them, and gives the same numbers."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.problems import random_problem
from tests.simulation.executors import clusters
from unfog.agents.agent import Agent
from unfog.agents.base import Chooser, Denoiser, Evidence, View
from unfog.agents.choose import Ucb
from unfog.agents.denoise import Robust
from unfog.agents.learn import Conjugate, Hetero
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.quadrature import quadrature
from unfog.lab.storage import RunLockedError
from unfog.maths.arrays import Array, Ints
from unfog.simulation import Curves, plan, play
from unfog.simulation.executors import RETRIES, WorkerDiedError
from unfog.simulation.executors.local import Processes, Serial
from unfog.simulation.job import Job, Part, Piece, Tick
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

PROBLEM = random_problem(seed=12, dim=2, actions=3)
MINE = Agent("mine", Robust(), Hetero(), Ucb())


@dataclass(frozen=True, kw_only=True)
class Halfway(Denoiser):
    """Between the noisy context and its mean."""

    share: float = 0.5

    name = "halfway"
    note = "for this test"

    def setup(self, known: Knowledge, privilege: Any) -> tuple[Array, Array]:
        return known.context_mean, known.context_cov

    def predict(self, parameters: tuple[Array, Array], state: Any, noisy: Array) -> Context:
        mean, cov = parameters
        return Context(self.share * noisy + (1 - self.share) * mean, cov)


@dataclass(frozen=True, kw_only=True)
class Slow(Conjugate):
    """Believes rewards to be noisier than they are."""

    noisier: float = 3.0

    name = "slow"

    def update(self, parameters: Array, state: Any, evidence: Evidence, reward: Array) -> Any:
        return state.condition(evidence.row(), reward, self.noisier * parameters)


@dataclass(frozen=True, kw_only=True)
class Second(Chooser):
    """The second best arm of one draw."""

    name = "second"
    note = "for this test"

    def normals(self, known: Knowledge) -> int:
        return known.prior_mean.shape[-1]

    def choose(self, view: View, normals: Array) -> Ints:
        scores = view.design.scores(view.belief.sample(normals))
        xp = scores.__array_namespace__()
        second: Ints = xp.argsort(scores, axis=-1)[..., -2]
        return second


ALL_MINE = Agent("all-mine", Halfway(share=0.3), Slow(), Second())


def run(agents: Any = (MINE,), **settings: Any) -> Curves:
    return play(PROBLEM, agents, **{"rounds": 12, "trials": 6, "chunk": 3, "seed": 3} | settings)


@pytest.mark.parametrize(("agent", "engine"), [(MINE, "numpy"), (ALL_MINE, "jax")])
@pytest.mark.slow
def test_any_engine_runs_in_processes(agent: Agent, engine: str) -> None:
    done: list[int] = []
    alone = run([agent], engine=engine, executor=Serial())
    shared = run([agent], engine=engine, executor=Processes(2), tick=done.append)
    assert sum(done) == 12 * 6
    assert alone.values.keys() == shared.values.keys()
    for loss, values in alone.values.items():
        assert np.array_equal(shared.values[loss], values), loss


@pytest.mark.slow
def test_agents_of_ones_own_run_with_any_number_of_workers_and_on_both_engines() -> None:
    right = run([ALL_MINE]).values
    assert right["regret"][0, :, -1].min() > 0.1
    found = run([ALL_MINE], workers=2, chunk=1).values
    assert all(np.array_equal(found[loss], values) for loss, values in right.items())
    compiled = run([ALL_MINE], engine="jax", draws="numpy").values
    for loss, values in right.items():
        np.testing.assert_allclose(compiled[loss], values, rtol=1e-9, atol=1e-9)


@dataclass(frozen=True, kw_only=True)
class Runaway(Conjugate):
    """A learner whose belief grows without end."""

    def update(self, parameters: Array, state: Any, evidence: Evidence, reward: Array) -> Any:
        return state._replace(mean=1e30 * (state.mean + 1) + 0 * evidence.row())


@pytest.mark.slow
def test_a_worker_refuses_with_the_same_words() -> None:
    lost = replace(MINE, name="lost", learner=Runaway())
    words = []
    for workers in (1, 2):
        with pytest.raises(InputError) as refused:
            run([lost], workers=workers)
        words.append((str(refused.value), refused.value.field, refused.value.allowed))
    assert words[0][0].startswith("agents: what 'lost' believes of theta is not finite")
    assert words[0] == words[1]


def test_a_refusal_travels_whatever_it_refuses() -> None:
    for kind in (InputError, RunLockedError):
        made = kind("field", lambda: 0, "another")
        again = pickle.loads(pickle.dumps(made))  # noqa: S301
        assert (type(again), str(again)) == (kind, str(made))


@pytest.mark.parametrize(
    ("engine", "workers", "executor"),
    [("numpy", 1, Serial()), ("numpy", 2, Processes(2)), ("jax", 1, Serial()), ("jax", 2, Serial())],
)
def test_workers_are_for_engines_that_gain_by_them(engine: str, workers: int, executor: Any) -> None:
    work = plan([PROBLEM], ["alg1"], rounds=5, trials=4, seed=0, engine=engine, workers=workers)
    assert work.executor == executor


def test_what_cannot_travel_is_refused_by_name() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Local(Ucb):
        """A part that no other process can import."""

    stuck = replace(MINE, name="stuck", chooser=Local())
    with pytest.raises(InputError, match=r"^workers: 2; allowed: 1 for 'stuck' that cannot be sent .*Local"):
        run([stuck], workers=2)
    assert run([stuck]).agents == ["stuck"]
    assert run([stuck], workers=2, chunk=6).agents == ["stuck"]  # one batch stays here
    problem = GaussianProblem(dim=1, actions=3, features=quadrature(lambda a, c: a * c, 1))
    with pytest.raises(InputError, match=r"^workers: 2; allowed: 1 for a problem that cannot be sent"):
        play(problem, [MINE], rounds=3, trials=4, chunk=2, workers=2)


class DiesLate(clusters.Stub):
    """Its worker is killed at the third trial, once, when the rounds of it are told of already."""

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        part, seen = super().run(job, trials, tick), self.folder / "died"
        if trials.start == 3 and not seen.exists():
            seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return part


@pytest.mark.slow
@pytest.mark.parametrize("kind", [clusters.Dies, DiesLate])
def test_what_a_killed_worker_had_is_played_again(kind: type[clusters.Stub], tmp_path: Path) -> None:
    """Each task comes back once, and no round is told of twice."""
    told = list[int]()
    found = clusters.stubs(Processes(2), kind(tmp_path), tick=told.append)
    assert clusters.firsts(found) == list(range(12))
    assert (tmp_path / "died").exists()
    assert (sum(told), min(told)) == (12, 0)


@pytest.mark.slow
def test_tasks_and_answers_larger_than_a_pipe_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Were they to, the workers would be killed in the end, and with them the run."""
    tasks = [tuple(Piece(0, range(i, i + 1)) for i in range(12_000))] * 4
    assert len(pickle.dumps(tasks[0])) > 250_000  # the pipes of Linux take 213 kB
    late = threading.Timer(60, lambda: [child.kill() for child in psutil.Process().children()])
    late.start()
    try:
        jobs = plan([PROBLEM], [MINE], rounds=1, trials=2, seed=0).jobs
        found = list(Processes(2).run(clusters.Stub(tmp_path), jobs, tasks, lambda _: None))  # type: ignore[arg-type]
    finally:
        late.cancel()
    assert [len(parts) for _, parts in found] == [12_000] * 4
    assert all(part["regret"][0, 0, 0] == i for _, parts in found for i, part in enumerate(parts))


@pytest.mark.slow
def test_a_task_that_kills_every_worker_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(WorkerDiedError, match=r"^a worker process died, possibly for lack of memory$"):
        list(clusters.stubs(Processes(2), clusters.Deadly(tmp_path)))
    assert len((tmp_path / "deaths").read_text().split()) == RETRIES + 1


@pytest.mark.slow
def test_a_worker_killed_while_it_starts_is_replaced(tmp_path: Path) -> None:
    """No worker has started by then, as in a script without a guard; but that one ends by itself."""
    found, killed = clusters.stubs(Processes(2), clusters.Stub(tmp_path)), list[int]()

    def kill_the_first() -> None:
        while not killed:
            for one in psutil.Process().children():
                if "spawn_main" in " ".join(one.cmdline()) and not killed:
                    one.kill()
                    killed.append(one.pid)

    hunter = threading.Thread(target=kill_the_first)
    hunter.start()
    assert clusters.firsts(found) == list(range(12))
    hunter.join()
    assert killed


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from unfog import GaussianProblem\n"
        "from unfog.simulation import play\n"
        "play(GaussianProblem(dim=2), ['alg1'], rounds=5, trials=4, chunk=2, workers=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert "workers: 2; allowed: 1, or call it under `if __name__ == '__main__':`" in done.stderr


@pytest.mark.slow
@pytest.mark.soak
def test_a_command_outlives_a_killed_worker(tmp_path: Path) -> None:
    """It says nothing of it, and ends with the same bits."""
    process = clusters.start(tmp_path, "processes")
    clusters.wait_for(partial(clusters.more, tmp_path, set()))
    [worker, *_] = [one for one in clusters.family(process) if "spawn_main" in " ".join(one.cmdline())]
    worker.kill()
    _, err = process.communicate(timeout=clusters.PATIENCE)
    assert (process.returncode, err) == (0, "kept in out\n")
    clusters.finish(tmp_path, "serial", "alone")
    assert clusters.digest(tmp_path / "out") == clusters.digest(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.parametrize(
    "all_of_them",
    [pytest.param(False, marks=pytest.mark.soak), True],
    ids=["the parent", "all processes"],
)
def test_a_command_that_is_told_to_stop_says_that_it_goes_on(all_of_them: bool, tmp_path: Path) -> None:
    """Batch schedulers do so: one line, no complaint of what a process left behind, and nothing is lost."""
    process = clusters.start(tmp_path, "processes")
    clusters.wait_for(partial(clusters.more, tmp_path, set()))
    others = clusters.family(process)
    os.killpg(process.pid, signal.SIGTERM) if all_of_them else process.terminate()
    _, err = process.communicate(timeout=clusters.PATIENCE)
    assert (process.returncode, err) == (143, "unfog: stopped; the same command goes on where it stopped\n")
    clusters.wait_for(partial(clusters.gone, others))
    clusters.finish(tmp_path, "processes", "out")
    clusters.finish(tmp_path, "serial", "alone")
    assert clusters.digest(tmp_path / "out") == clusters.digest(tmp_path / "alone")
