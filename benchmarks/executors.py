"""What executors cost: throughput against worker processes, the first result, memory with very many tasks.

python benchmarks/executors.py             # half an hour; into benchmarks/results/executors.json
python benchmarks/executors.py --quick     # a smoke test; into benchmarks/out/executors-quick.json

The engine is a stub that does a given amount of NumPy's arithmetic: what differs is the way there and back.
(Loops in Python alone are faster or slower by an eighth from one process to the next.) Every measurement is a
process of its own. Executors take turns, since machines are faster and slower by the minute: the best of
several turns counts, and the middle one is there too.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.peers.run import ROOT, machine
from unfog.simulation import plan
from unfog.simulation.executors import make_executor
from unfog.simulation.job import Job, Part, Piece, Task, Tick
from unfog.worlds.synthetic import GaussianProblem

NAMES = ("processes", "dask", "ray")
WORKERS = 2


@dataclass(frozen=True)
class Stub:
    """An engine that only takes time: so many steps of arithmetic a piece."""

    steps: int
    shares_work: bool = True

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        values = np.linspace(0.0, 1.0, 1000)
        for _ in range(self.steps):
            np.cos(values, out=values)
        tick(len(job.agents) * job.rounds * len(trials))
        return {"regret": np.full((len(job.agents), len(trials), 8), float(values[0]))}


def steps_of(seconds: float) -> int:
    """How many steps of the stub take so long: the fastest of some tries."""
    job, tries, some = jobs()[0], 5, 20_000
    best = float("inf")
    for _ in range(tries):
        started = time.perf_counter()
        Stub(some).run(job, range(1), lambda _: None)
        best = min(best, time.perf_counter() - started)
    return int(some * seconds / best)


def jobs() -> tuple[Job, ...]:
    return plan([GaussianProblem(dim=2, actions=3)], ["alg1"], rounds=5, trials=4, seed=0).jobs


def tasks(number: int) -> Iterator[Task]:
    return ((Piece(0, range(i, i + 1)),) for i in range(number))


def one(on: str, number: int, steps: int) -> dict[str, float]:
    """So many tasks through an executor: seconds to the first result and the last, peak memory."""
    started = time.perf_counter()
    found, first, done = make_executor(on, WORKERS), 0.0, 0
    assert found is not None
    for task, parts in found.run(Stub(steps), jobs(), tasks(number), lambda _: None):  # type: ignore[arg-type]
        assert len(task) == len(parts) == 1
        done += 1
        last = time.perf_counter() - started
        first = first or last
    assert done == number
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return {"first": first, "last": last, "whole": time.perf_counter() - started, "driver_mb": peak}


def measured(on: str, number: int, steps: int) -> dict[str, float]:
    """The same in a process of its own."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--one", on, str(number), str(steps)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | threads, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    print(on, number, {name: round(value, 2) for name, value in found.items()}, flush=True)
    return found


def throughput(number: int, seconds: float, turns: int) -> dict[str, Any]:
    """Tasks a second between the first result and the last, and over all, start and end included."""
    steps = steps_of(seconds)
    found = {on: list[dict[str, float]]() for on in NAMES}
    for turn in range(turns):
        for on in NAMES if turn % 2 else reversed(NAMES):
            found[on].append(measured(on, number, steps))
    rates = {on: [(number - 1) / (run["last"] - run["first"]) for run in found[on]] for on in NAMES}
    steady, middle = ({on: what(rates[on]) for on in NAMES} for what in (max, median))
    whole = {on: max(number / run["whole"] for run in found[on]) for on in NAMES}
    return {
        "tasks": number,
        "seconds_a_task": seconds,
        "turns": found,
        "tasks_a_second": steady,
        "of_processes": {on: steady[on] / steady["processes"] for on in NAMES},
        "of_processes_in_the_middle": {on: middle[on] / middle["processes"] for on in NAMES},
        "tasks_a_second_with_start_and_end": whole,
        "of_processes_with_start_and_end": {on: whole[on] / whole["processes"] for on in NAMES},
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--quick", action="store_true")
    asked.add_argument("--turns", type=int, default=8)
    asked.add_argument("--tasks", type=int, default=16, help="of two seconds")
    asked.add_argument("--many", type=int, default=100_000, help="tasks that take no time")
    asked.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.one:
        on, number, steps = given.one
        print(json.dumps(one(on, int(number), int(steps))))
        return
    quick = given.quick
    found = {
        "machine": machine(),
        "versions": {name: version(name) for name in ("distributed", "ray", "numpy")},
        "workers": WORKERS,
        "load_before": os.getloadavg()[0],
        "first_result": {
            on: min(measured(on, 4, 1)["first"] for _ in range(1 if quick else 3)) for on in NAMES
        },
        "throughput": throughput(*((8, 0.2, 1) if quick else (given.tasks, 2.0, given.turns))),
        "many_tasks": 1000 if quick else given.many,
        "many": {on: measured(on, 1000 if quick else given.many, 1) for on in NAMES},
        "load_after": os.getloadavg()[0],
    }
    where = ROOT / "benchmarks" / ("out/executors-quick.json" if quick else "results/executors.json")
    where.parent.mkdir(exist_ok=True)
    where.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
