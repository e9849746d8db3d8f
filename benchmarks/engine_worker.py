"""One measurement of an engine, in a process of its own and on one core: `compare.py` starts it.

    python -m benchmarks.engine_worker jax --agent alg1 --trials 1000 --rounds 500

Prints a JSON object. The first run compiles, with an empty cache, and is reported apart; the later ones are
what a user with a warm cache sees. The engine "plain" is the loop of `plain.py`, one trial after another.
Memory is the peak of this process: the interpreter, the libraries and all runs.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import argparse
import json
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from statistics import median
from typing import Any

import unfog
from benchmarks.plain import run_trial
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem

ENGINES = ("plain", "numpy", "numba", "jax")
PACKAGES = {"jax": ("jax", "jaxlib"), "numba": ("numba", "llvmlite")}


def pin() -> None:
    """Stay on one core, and let threads made from here on stay there, too."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def work(given: argparse.Namespace) -> Callable[[], object]:
    """What is timed. One problem object serves all runs, so that a program is compiled once."""
    if given.engine == "plain":
        sizes = {"dim": given.dim, "arms": given.arms}
        return lambda: [run_trial(given.rounds, seed, **sizes) for seed in range(given.trials)]
    import_module(f"unfog.simulation.engines.{given.engine}")  # importing JAX is not compiling
    problem = GaussianProblem(dim=given.dim, actions=given.arms)
    return lambda: play(
        problem,
        [given.agent],
        trials=given.trials,
        rounds=given.rounds,
        points=1,
        decompose=given.decompose,
        engine=given.engine,
    )


def timed(run: Callable[[], object], repeats: int) -> tuple[float, list[float]]:
    """Seconds of the first run, and of each later one."""
    seconds = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return seconds[0], seconds[1:]


def peak_mb() -> float:
    """The most memory this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def versions(engine: str) -> dict[str, str]:
    """Of everything that the measurement depends on."""
    wanted = ("numpy", *PACKAGES.get(engine, ()))
    own = {"unfog": unfog.__version__, "python": platform.python_version()}
    return own | {name: version(name) for name in wanted}


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """The settings, and what was measured under them."""
    first, later = timed(work(given), given.repeats)
    usual, total = median(later), given.trials * given.rounds
    speeds = {"median": total / usual, "min": total / max(later), "max": total / min(later)}
    return {
        **vars(given),
        "first_s": first,
        "later_s": later,
        "compile_s": max(0.0, first - usual),
        "rounds_per_s": speeds,
        "peak_mb": peak_mb(),
        "versions": versions(given.engine),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--agent", default="alg1")
    parser.add_argument("--decompose", action="store_true", help="split the regret into its parts as well")
    for name, default in {"trials": 100, "rounds": 1000, "dim": 5, "arms": 40, "repeats": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    if given.engine == "plain" and (given.agent != "alg1" or given.decompose):
        parser.error("the plain loop is alg1 without decomposition")
    pin()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = os.environ["NUMBA_CACHE_DIR"] = cache
        print(json.dumps(measure(given)))


if __name__ == "__main__":
    main()
