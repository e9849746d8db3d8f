"""What the tests of executors on clusters share: engines that die or count, and runs to be killed."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.problems import random_problem
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence
from unfog.agents.choose import Ucb
from unfog.agents.denoise import Robust
from unfog.agents.learn import Conjugate, Hetero
from unfog.maths.arrays import Array
from unfog.simulation import Curves, plan, play
from unfog.simulation.executors import IN_FLIGHT, Executor
from unfog.simulation.executors.local import Serial
from unfog.simulation.job import Job, Part, Piece, Task, Tick
from unfog.validation import InputError

PROBLEM = random_problem(seed=12, dim=2, actions=3)
PATIENCE = 120.0
AGENTS = {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}


def run(executor: Executor, **settings: Any) -> Curves:
    told: dict[str, Any] = {"rounds": 12, "trials": 8, "chunk": 2, "seed": 3, "executor": executor} | settings
    return play(PROBLEM, ["alg1", "naive"], **told)


def assert_same_bits(executor: Executor, engine: str) -> None:
    """As one after the other here, and all rounds are told of."""
    done: list[int] = []
    alone = run(Serial(), engine=engine)
    there = run(executor, engine=engine, tick=done.append)
    assert sum(done) == 2 * 12 * 8
    assert alone.values.keys() == there.values.keys()
    for loss, values in alone.values.items():
        assert np.array_equal(there.values[loss], values), loss


@dataclass(frozen=True)
class Stub:
    """An engine that gives the first trial of a piece; how it gets there differs."""

    folder: Path
    shares_work: bool = True

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        self.before(trials.start)
        tick(len(trials))
        return {"regret": np.full((1, len(trials), 1), float(trials.start))}

    def before(self, trial: int) -> None:
        """Nothing."""


class Dies(Stub):
    """Its worker is killed at the third trial, once."""

    def before(self, trial: int) -> None:
        seen = self.folder / "died"
        if trial == 3 and not seen.exists():
            seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Deadly(Stub):
    """No worker survives the third trial."""

    def before(self, trial: int) -> None:
        if trial == 3:
            with open(self.folder / "deaths", "a") as deaths:
                deaths.write(f"{os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)


class Waits(Stub):
    """Past the first few trials it waits for a file that never comes."""

    def before(self, trial: int) -> None:
        while trial > 3 and not (self.folder / "never").exists():
            time.sleep(0.05)


@dataclass(frozen=True)
class Heavy(Stub):
    """It is told of in a file whenever it is unpacked."""

    def __reduce__(self) -> Any:
        return _unpacked, (self.folder,)


def _unpacked(folder: Path) -> Heavy:
    with open(folder / "unpacked", "a") as seen:
        seen.write(f"{os.getpid()}\n")
    return Heavy(folder)


def stubs(
    executor: Executor, engine: Stub, number: int = 12, tick: Tick = lambda _: None
) -> Iterator[tuple[Task, Sequence[Part]]]:
    jobs = plan([PROBLEM], ["alg1"], rounds=5, trials=4, seed=0).jobs
    tasks: Iterator[Task] = ((Piece(0, range(i, i + 1)),) for i in range(number))
    found: Any = executor.run(engine, jobs, tasks, tick)  # type: ignore[arg-type]
    return iter(found)


def firsts(results: Iterator[tuple[Task, Sequence[Part]]]) -> list[float]:
    """The trials of all tasks, in order, as they came back."""
    found = [(task[0].trials.start, float(part["regret"][0, 0, 0])) for task, (part,) in results]
    assert all(asked == given for asked, given in found)
    return sorted(given for _, given in found)


def assert_taken_lazily(executor: Executor, folder: Path) -> None:
    """No more tasks are taken than may be in flight, and the engine travels once a worker."""
    jobs = plan([PROBLEM], ["alg1"], rounds=5, trials=4, seed=0).jobs
    taken = given = most = 0

    def tasks() -> Iterator[Task]:
        nonlocal taken, most
        for i in range(60):
            taken += 1
            most = max(most, taken - given)
            yield (Piece(0, range(i, i + 1)),)

    engine: Any = Heavy(folder)
    for _ in executor.run(engine, jobs, tasks(), lambda _: None):
        given += 1
    assert given == 60
    assert 2 < most <= IN_FLIGHT * executor.workers
    workers = (folder / "unpacked").read_text().split()
    assert len(workers) == len(set(workers)) <= executor.workers
    assert str(os.getpid()) not in workers


def assert_same_words(executor: Executor) -> None:
    """What an engine refuses elsewhere it refuses as here."""
    lost = Agent("lost", Robust(), Runaway(), Ucb())
    words = []
    for where in (Serial(), executor):
        with pytest.raises(InputError) as refused:
            play(PROBLEM, [lost], rounds=12, trials=6, chunk=3, seed=3, executor=where)
        words.append((str(refused.value), refused.value.field, refused.value.allowed))
    assert words[0][0].startswith("agents: what 'lost' believes of theta is not finite")
    assert words[0] == words[1]


def assert_refused_by_name(executor: Executor, on: str) -> None:
    """A part that no other process can import."""

    @dataclass(frozen=True, kw_only=True)
    class Local(Ucb):
        """Defined in here."""

    stuck = Agent("stuck", Robust(), Hetero(), Local())
    told = rf"^executor: {on}; allowed: serial for 'stuck' that cannot be sent to another process .*Local"
    with pytest.raises(InputError, match=told):
        play(PROBLEM, [stuck], rounds=3, trials=4, chunk=2, executor=executor)


@dataclass(frozen=True, kw_only=True)
class Runaway(Conjugate):
    """A learner whose belief grows without end."""

    def update(self, parameters: Array, state: Any, evidence: Evidence, reward: Array) -> Any:
        return state._replace(mean=1e30 * (state.mean + 1) + 0 * evidence.row())


SPEC = """
[problem]
kind = "gaussian"
dim = 2
actions = 5
[run]
rounds = 100
trials = 3000
seed = 4
agents = ["alg1", "gaps"]
"""
RUN = """
import signal
from unfog.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
main()
"""


def start(folder: Path, on: str, out: str = "out") -> subprocess.Popen[str]:
    """A command of its own, in a session of its own."""
    (folder / "spec.toml").write_text(SPEC)
    command = [sys.executable, "-c", RUN, "run", "spec.toml", "--out", out, "--executor", on]
    command += [] if on == "serial" else ["--workers", "2"]
    streams: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, start_new_session=True, **streams)


def finish(folder: Path, on: str, out: str) -> None:
    """The same command, undisturbed: it says where the result is, and nothing else."""
    process = start(folder, on, out)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, f"kept in {out}\n"), err


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Its processes, but for two idle ones of Ray's, which leave a minute after a kill."""
    found = psutil.Process(process.pid).children(recursive=True)
    return [one for one in found if not AGENTS & set(" ".join(one.cmdline()).split())]


def gone(processes: Sequence[psutil.Process]) -> bool:
    """Whether none of them runs any more; one that ended waits for whoever adopted it."""
    return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)


def more(folder: Path, before: set[Path]) -> bool:
    """Whether there are blocks beyond those of before."""
    return bool(set(folder.glob("*.partial/block-*")) - before)


def digest(run: Path) -> str:
    return hashlib.sha256((run / "curves.nc").read_bytes()).hexdigest()


def assert_killed_and_resumed(folder: Path, on: str) -> None:
    """Interrupted, stopped, killed: all processes vanish, and the same command goes on to the same bits.

    A shell interrupts all processes, and some schedulers stop them all.
    """
    words = {130: "interrupted", 143: "stopped"}
    for sign, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)):
        before = set(folder.glob("*.partial/block-*"))
        process = start(folder, on)
        wait_for(partial(more, folder, before))
        others = family(process)
        assert len(others) >= 2
        os.killpg(process.pid, sign) if sign == signal.SIGINT else process.send_signal(sign)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, err
        if code in words:
            assert err == f"unfog: {words[code]}; the same command goes on where it stopped\n", err
        wait_for(partial(gone, others))
    finish(folder, on, "out")
    finish(folder, "serial", "alone")
    assert digest(folder / "out") == digest(folder / "alone")
