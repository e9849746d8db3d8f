"""What the learners of the logistic bandit cost: the paper's run, each learner, and constant cost over time.

    python benchmarks/logistic.py

prints the seconds of the paper's experiment (5 agents x 10 trials x 1000 rounds, Langevin Monte Carlo), then
for every learner the time of a trial's round as the rounds behind it grow. Ratios within a run count.
"""

import time
from importlib.metadata import version

import numpy as np

from unfog.simulation import play
from unfog.simulation.engines.numpy import BLOCK_ROUNDS
from unfog.simulation.executors.local import cores
from unfog.worlds.synthetic import LogisticProblem

LEARNERS = {"lmc": 1024, "pg": 512, "laplace": 1024, "adf": 100_096}  # the rounds each is timed over
TRIALS = 20
AGENTS = ("alg1", "alg2", "naive", "oracle", "kk")


def paper() -> float:
    """Seconds of the published experiment on all cores."""
    started = time.perf_counter()
    play(LogisticProblem(), AGENTS, rounds=1000, trials=10, workers=cores())
    return time.perf_counter() - started


def over_time(learner: str, rounds: int) -> tuple[float, float]:
    """Microseconds of a trial's round with about 1,000 rounds behind it (or half of all), and with all."""
    stamps = [time.perf_counter()]
    play(
        LogisticProblem(),
        [f"alg1-{learner}"],
        rounds=rounds,
        trials=TRIALS,
        decompose=False,
        points=1,
        tick=lambda _: stamps.append(time.perf_counter()),
    )
    each = np.diff(stamps) / BLOCK_ROUNDS / TRIALS * 1e6
    early = min(1000, rounds // 2) // BLOCK_ROUNDS
    window = max(1, len(each) // 200)  # a block alone is at the mercy of whatever else the machine does
    return float(np.median(each[early : early + window])), float(np.median(each[-window:]))


def main() -> None:
    print(f"unfog {version('unfog')}, numpy {version('numpy')}, {cores()} cores")
    print(f"the paper's run: {paper():.1f} s")
    print(f"a trial's round, {TRIALS} trials side by side, without the split of the regret")
    for learner, rounds in LEARNERS.items():
        early, late = over_time(learner, rounds)
        first = min(1000, rounds // 2)
        print(
            f"  {learner:8} {early:8.1f} us at t = {first:<6} {late:8.1f} us at t = {rounds:<7} "
            f"ratio {late / early:.2f}"
        )


if __name__ == "__main__":
    main()
