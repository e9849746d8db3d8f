"""Rounds a second of every agent on one core, against the plain loop, in one run.

python benchmarks/rounds.py [--trials 100] [--rounds 1000] [--repeats 3] [--engine numba]
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unfog.agents.catalogue import playable
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.plain import run_trial


def speeds(work: Callable[[], object], rounds: int, repeats: int) -> list[float]:
    """Rounds a second of each repeat, in order of size."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        found.append(rounds / (time.perf_counter() - started))
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", default="numpy")
    given = parser.parse_args()
    problem = GaussianProblem()
    plain = speeds(lambda: run_trial(given.rounds, 0), given.rounds, given.repeats)
    base = plain[len(plain) // 2]
    print(f"NumPy {np.__version__}, Python {platform.python_version()}, one core, {given.trials} trials")
    print(f"{'':24}{'rounds/s (median)':>18}{'min..max':>22}{'times the plain loop':>22}")

    def line(name: str, found: list[float]) -> None:
        median = found[len(found) // 2]
        spread = f"{found[0]:,.0f}..{found[-1]:,.0f}"
        print(f"{name:24}{median:>18,.0f}{spread:>22}{median / base:>22.1f}", flush=True)

    line("plain loop (alg1)", plain)
    for name in playable():
        for decompose in (True, False):

            def work(name: str = name, decompose: bool = decompose) -> None:
                sizes = {"rounds": given.rounds, "trials": given.trials}
                play(problem, [name], **sizes, decompose=decompose, engine=given.engine)

            if given.engine != "numpy":  # compiled, or read from where it is kept
                work()
            found = speeds(work, given.rounds * given.trials, given.repeats)
            line(name + ("" if decompose else ", no split"), found)


if __name__ == "__main__":
    main()
