"""How well the default does where it must: paired regret ratios, their errors and tails, on one seed.

    python benchmarks/default.py --out default.json [--cases "lock-in; narrow"] [--engine jax] [--trials 2000]

The settings of the default were chosen on other problems and other seeds (docs/notebook/default.md). A case
that is in the file already is kept, unless it is named. `--engine jax` wants a GPU for the long cases.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.worlds.problem import Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SEED = 20_261_115
FORMER = "hetero-ucb"  # the default's learner and chooser before: a constant level


class Case(NamedTuple):
    """A problem, who plays it, and which ratios are of interest: (agent, to whom, target for the mean)."""

    problem: Callable[[], Problem]
    rounds: int
    ratios: tuple[tuple[str, str, float | None], ...]

    @property
    def agents(self) -> list[str]:
        """All that are named."""
        return list(dict.fromkeys(name for a, b, _ in self.ratios for name in (a, b)))


def movielens(contexts: str) -> Problem:
    """Scikit-learn is needed for this one alone."""
    from unfog.lab.datasets.movielens import MovieLens

    return MovieLens(ratings="movielens", contexts=contexts)


CORRELATED: dict[str, Any] = {
    "dim": 3,
    "context_mean": [0.8, -0.5, 0.3],
    "context_cov": [[1.0, 0.5, 0.0], [0.5, 1.5, -0.3], [0.0, -0.3, 0.6]],
    "noise_cov": [[1.4, -0.6, 0.2], [-0.6, 0.7, 0.0], [0.2, 0.0, 0.5]],
    "bias_cov": [[1.8, 0.4, 0.0], [0.4, 0.6, 0.2], [0.0, 0.2, 1.2]],
    "prior_cov": 0.02,
}
FLAT: dict[str, Any] = {"prior_cov": [0.1] * 5 + [1e-6] * 10, "reward_var": 1.0}
LOGISTIC: dict[str, Any] = {"noise_cov": 2.0, "bias_cov": 2.5, "prior_cov": 1.0}
NARROW: dict[str, Any] = {"context_cov": 0.01, "noise_cov": 0.01, "bias_cov": 0.01}


def against(agent: str, paper: str, target: float | None = None) -> tuple[tuple[str, str, float | None], ...]:
    """To the constant level on the same trials, which may cost 4 % at most, and to the paper's algorithm."""
    former = f"{agent}-{FORMER}"
    return (agent, former, 1.04), (agent, paper, target), (former, paper, None)


def binary() -> tuple[tuple[str, str, float | None], ...]:
    """Likewise where the learner is that of rewards of 0 or 1; the paper's, Langevin's, takes hours here."""
    return (("unfog", "unfog-ucb", 1.04),)


CASES = {
    "lock-in": Case(lambda: GaussianProblem(actions=10, **FLAT), 20_000, against("unfog", "alg1", 0.95)[1:2]),
    "narrow": Case(lambda: GaussianProblem(**NARROW), 20_000, against("unfog", "alg1", 1.0)[1:2]),
    "fig1-gaussian, long": Case(GaussianProblem, 20_000, against("unfog", "alg1", 0.68)[1:2]),
    "theta three times as large": Case(
        lambda: GaussianProblem(theta_scale=3.0), 1000, against("unfog", "alg1", 1.0)[1:]
    ),
    "gaussian": Case(GaussianProblem, 1000, against("unfog", "alg1")),
    "delayed": Case(GaussianProblem, 1000, against("unfog-delayed", "alg2")),
    "correlated": Case(lambda: GaussianProblem(**CORRELATED), 1000, against("unfog", "alg1")),
    "logistic": Case(lambda: LogisticProblem(**LOGISTIC), 1000, binary()),
    "movielens": Case(lambda: movielens("gaussian"), 1000, against("unfog", "alg1")),
    "movielens, users": Case(lambda: movielens("users"), 1000, against("unfog", "alg1")),
    "a reward of 1e6 in 1000": Case(
        lambda: GaussianProblem(reward_outliers=0.001), 1000, against("unfog", "alg1")[1:]
    ),
}


def summary(regret: Array) -> dict[str, float]:
    """Of one agent's final regrets (trials,)."""
    q50, q99 = np.quantile(regret, [0.5, 0.99])
    se = regret.std(ddof=1) / np.sqrt(len(regret))
    return {"mean": regret.mean(), "se": se, "q50": q50, "q99": q99, "max": regret.max()}


def ratio(one: Array, other: Array) -> dict[str, float]:
    """Of two means over the same trials, with its standard error (the delta method), and of the tails."""
    found = one.mean() / other.mean()
    error = (one - found * other).std(ddof=1) / np.sqrt(len(one)) / other.mean()
    return {"ratio": found, "se": error, "q99": np.quantile(one, 0.99) / np.quantile(other, 0.99)}


def measure(case: Case, trials: int, engine: str, seed: int) -> dict[str, Any]:
    """Play a case and say how it went."""
    settings: Any = {"engine": engine, "precision": "float64"} if engine != "numpy" else {}
    problem, began = case.problem(), time.perf_counter()
    shared: Any = {"rounds": case.rounds, "trials": trials, "seed": seed, "decompose": False, "points": 4}
    played = play(problem, case.agents, **shared, **settings).values["regret"][:, :, -1]
    regret = dict(zip(case.agents, played, strict=True))
    return {
        "rounds": case.rounds,
        "trials": trials,
        "seed": seed,
        "engine": engine,
        "seconds": round(time.perf_counter() - began, 1),
        "agents": {name: summary(values) for name, values in regret.items()},
        "ratios": [
            {"agent": a, "to": b, "target": target, **ratio(regret[a], regret[b])}
            for a, b, target in case.ratios
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", default="", help="some of: " + "; ".join(CASES))
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--engine", default="numpy")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    kept = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
    named = (
        [name.strip() for name in given.cases.split(";")]
        if given.cases
        else [n for n in CASES if n not in kept]
    )
    for name in named:
        kept[name] = measure(CASES[name], given.trials, given.engine, given.seed)
        for row in kept[name]["ratios"]:
            ratio_of = f"{row['agent']} / {row['to']} {row['ratio']:.3f} ± {row['se']:.3f}"
            print(f"{name}: {ratio_of} (target {row['target']}), q99 {row['q99']:.2f}", flush=True)
        given.out.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
