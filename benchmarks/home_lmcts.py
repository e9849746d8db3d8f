"""LMC-TS at home: its authors' simulations, with its baselines and ours beside it.

    python benchmarks/home_lmcts.py [--out benchmarks/results/home-lmcts.json] [--trials 20] [--only NAME]

The paper (Xu, Zheng, Mazumdar, Azizzadenesheli and Anandkumar, Langevin Monte Carlo for Contextual Bandits)
has curves and no table. What there is to compare with: `lmcts:hold=20` is the authors' code, step for step
(given its noise and its start, and in double precision, every theta of 60 rounds was found equal to 1e-15,
for both kinds of rewards);
`AUTHORS` has regret of the authors' code itself, on problems drawn by their generator. Agents that are in the
file already are kept.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from unfog.lab.spec import build_problem, load
from unfog.simulation import play

HOMES = "baseline-lmcts", "baseline-lmcts-logistic"
MARKS = 200, 500, 1000
# The authors' code as it is, T = 1000. Of 20 runs that were meant two were made: one takes minutes, as every
# step goes through all past rounds.
AUTHORS = {
    "baseline-lmcts": {
        "lmcts": {"200": [24.754, 38.975], "500": [34.598, 56.179], "1000": [45.480, 71.568]},
        "note": "K = 50, d = 20, sigma = 0.5, 1 / beta = 1e-7 d ln T, T = 1000, torch seeds 0 and 1",
    }
}


def measured(home: str, agent: str, trials: int | None) -> dict[str, Any]:
    """Regret of one agent at the marks, with its standard error, and seconds a round."""
    spec = load(home)
    run, start = spec.run, time.perf_counter()
    trials = trials or run.trials
    problem = build_problem(spec.problem)
    found = play(problem, [agent], rounds=run.rounds, trials=trials, seed=run.seed, engine="numpy")
    at = found.values["regret"][0][:, [mark - 1 for mark in MARKS]]  # every round is stored
    errors = at.std(0, ddof=1) / np.sqrt(trials)
    return {
        "regret": dict(zip(map(str, MARKS), np.round(at.mean(0), 3).tolist(), strict=True)),
        "error": dict(zip(map(str, MARKS), np.round(errors, 3).tolist(), strict=True)),
        "seconds": round(time.perf_counter() - start, 1),
        "trials": trials,
        "seed": run.seed,
    }


def main() -> None:
    """Every agent of both homes, one after the other; what is known is written at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "home-lmcts.json")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--only")
    told = parser.parse_args()
    results = json.loads(told.out.read_text("utf-8")) if told.out.exists() else {}
    results["authors"] = AUTHORS
    for home in HOMES:
        for agent in load(home).run.agents:
            table = results.setdefault(home, {})
            if agent in table or told.only not in (None, home, agent):
                continue
            table[agent] = measured(home, agent, told.trials)
            print(home, agent, table[agent], flush=True)
            told.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
