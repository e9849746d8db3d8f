"""Times one adapter, in a process of its own: `run.py` starts it, and reads the JSON that it leaves.

A repeat is a fresh player over all rounds; the clock runs over decide, update and the look-up of the reward,
and over nothing else. Memory is the peak of this process: the interpreter, the library, the problem and the
rows in the library's own form.
"""

import argparse
import importlib
import json
import resource
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, cast

from benchmarks.peers.peer import Adapter
from benchmarks.peers.problem import Problem, draw

WARM_UP = 50  # rounds
SEED = 0
CHECK = {"rounds": 1000, "arms": 10, "size": 6}
LAST = 200  # rounds over which the check compares
SURE = 3.0  # standard errors by which uniform play must be beaten


def play(adapter: Adapter, problem: Problem, rounds: int, seed: int) -> tuple[float, list[int]]:
    """Seconds for the rounds, and the arms that were played."""
    player = adapter.make(problem.features[:rounds], seed)
    rewards: list[list[float]] = problem.rewards.tolist()
    arms = []
    start = time.perf_counter()
    for t in range(rounds):
        arm = player.decide(t)
        player.update(t, arm, rewards[t][arm])
        arms.append(arm)
    return time.perf_counter() - start, arms


def microseconds(adapter: Adapter, problem: Problem, repeats: int) -> list[float]:
    """Per step, for each repeat."""
    rounds = len(problem.rewards)
    play(adapter, problem, min(WARM_UP, rounds), SEED)
    return [play(adapter, problem, rounds, seed)[0] / rounds * 1e6 for seed in range(repeats)]


def check(adapter: Adapter) -> dict[str, Any]:
    """Whether the last rewards are better, beyond doubt, than the mean over all arms in the same rounds."""
    problem = draw(**CHECK, seed=SEED)
    _, arms = play(adapter, problem, CHECK["rounds"], SEED)
    rewards = problem.rewards[-LAST:]
    played = rewards[range(LAST), arms[-LAST:]]
    gain = played - rewards.mean(-1)
    learned = bool(gain.mean() > SURE * gain.std(ddof=1) / LAST**0.5)
    return {"learned": learned, "reward": {"last": played.mean(), "uniform": rewards.mean()}}


def peak_mb() -> float:
    """The most memory this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def version_of(adapter: Adapter) -> str:
    """As installed; a package that is on the path alone says it itself."""
    try:
        return version(adapter.DISTRIBUTION)
    except PackageNotFoundError:
        said = getattr(adapter, "VERSION", None)
        if said is None:
            raise
        return str(said)


def measure(adapter: Adapter, options: argparse.Namespace) -> dict[str, Any]:
    """A row of the table, less its name."""
    imported = peak_mb()
    problem = draw(rounds=options.rounds, arms=options.arms, size=options.size, seed=SEED)
    times = microseconds(adapter, problem, options.repeats)
    return {
        "version": version_of(adapter),
        "model": adapter.MODEL,
        "parameters": adapter.PARAMETERS,
        "us_per_step": {"median": median(times), "min": min(times), "max": max(times)},
        "peak_mb": peak_mb(),
        "import_mb": imported,
        **check(adapter),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer")
    for name in ("rounds", "repeats", "size", "arms"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    adapter = cast(
        Adapter, importlib.import_module(f"benchmarks.peers.{options.peer.replace('-', '_')}_peer")
    )
    options.out.write_text(json.dumps(measure(adapter, options)))


if __name__ == "__main__":
    main()
