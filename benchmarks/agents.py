"""What an agent's round costs, as a multiple of Algorithm 1's in the same world, in one run on one core.

    python benchmarks/agents.py [--trials 100] [--rounds 200] [--repeats 5] [--json]

World included, the regret whole. Time is the process's own, agents take turns, and the shortest turn counts,
so that what else the machine does matters little. Agents for a channel out of the ordinary are timed in one.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import time
from collections.abc import Sequence

from unfog.lab.datasets.movielens import MovieLens
from unfog.simulation import play
from unfog.worlds.problem import Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

BASE = "alg1"
LEARNERS = [f"alg1-exact-{name}" for name in ("hetero", "smoothing", "joint")]
CHOOSERS = [f"alg1-exact-{name}" for name in ("ucb", "ids", "ids:samples=50", "greedy", "epsilon", "toptwo")]
DEFAULTS = ["unfog", "unfog-delayed", "unfog-oracle"]
OTHERS = ["coupled"]


def cases() -> dict[str, tuple[Problem, list[str]]]:
    """Worlds by name, and who plays in them besides Algorithm 1."""
    return {
        "gaussian": (GaussianProblem(), [*DEFAULTS, *OTHERS, "alg1-exact", *LEARNERS, *CHOOSERS]),
        "movielens": (
            MovieLens(contexts="gaussian"),
            [*DEFAULTS, *OTHERS, "alg1-exact", *LEARNERS, *CHOOSERS[:2]],
        ),
        "logistic": (LogisticProblem(), [*DEFAULTS, "alg1-adf", "alg1-pg", "alg1-laplace"]),
        "gaussian, coordinates lost": (GaussianProblem(missing=0.3), ["unfog", "gaps"]),
        "gaussian, contexts late": (
            GaussianProblem(revealed=0.3, reveal_delay=20),
            ["unfog", "late", "unknown-noise"],
        ),
        "gaussian, bias walks": (GaussianProblem(drift_cov=0.005), ["unfog", "drift"]),
        "gaussian, heavy tails": (GaussianProblem(tails=3), ["unfog", "robust"]),
    }


def shortest(
    problem: Problem, agents: Sequence[str], rounds: int, trials: int, repeats: int
) -> dict[str, float]:
    """Microseconds of a trial's round, the least of all turns."""
    found = dict.fromkeys(agents, float("inf"))
    for _ in range(repeats):
        for name in agents:
            started = time.process_time()
            play(problem, [name], rounds=rounds, trials=trials, decompose=False, points=1)
            each = (time.process_time() - started) / rounds / trials * 1e6
            found[name] = min(found[name], each)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    given = parser.parse_args()
    kept = {}
    for world, (problem, agents) in cases().items():
        found = shortest(problem, [BASE, *agents], given.rounds, given.trials, given.repeats)
        kept[world] = {name: {"us": each, "times": each / found[BASE]} for name, each in found.items()}
        if not given.json:
            print(f"{world}: {given.trials} trials of {given.rounds} rounds")
            print(f"  {'agent':28}{'us a round':>12}{'times ' + BASE:>14}")
            for name, row in kept[world].items():
                print(f"  {name:28}{row['us']:>12.1f}{row['times']:>14.2f}", flush=True)
    if given.json:
        print(json.dumps({"trials": given.trials, "rounds": given.rounds, "worlds": kept}))


if __name__ == "__main__":
    main()
