"""poLinUCB at home: its paper's synthetic problem, with two of the three maps from before to after.

    python benchmarks/home_polinucb.py [--trials 10] [--out benchmarks/results/home-polinucb.json]

100 numbers are seen before, five after, ten arms with a theta each, 1000 rounds, 10 repetitions as in the
paper (worlds/synthetic.py). The paper has curves of cumulative regret and no table, and does not say how
its W, b, theta and noise are drawn: what can be compared is the order of the curves. By its text that is,
from the best, LinUCB that sees x and z, poLinUCB, LinUCB with phi_hat, LinUCB with x alone, and random arms
(the last two in the order of the text). LinUCB with phi_hat, and the periodic map, are not here.

What radii the authors ran is not said: here are those of the theorem, a tenth of them, which is the row
`polinucb`, and a hundredth. LinUCB has the constant 1.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from unfog.lab.spec import build_problem, load
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.worlds.synthetic import PostServingProblem

SEED = 20_261_116
POWERS = {"linear": 1, "polynomial": 2}
PUBLISHED = ["LinUCB (x and z)", "poLinUCB", "LinUCB (phi_hat)", "LinUCB (x only)", "random"]


def final(problem: PostServingProblem, agent: str, rounds: int, trials: int) -> Array:
    """The regret of all rounds together, (trials,)."""
    told = {"rounds": rounds, "trials": trials, "seed": SEED, "decompose": False}
    return play(problem, [agent], **told).values["regret"][0, :, -1]  # type: ignore[arg-type]


def at_random(problem: PostServingProblem, rounds: int, trials: int) -> Array:
    """What arms drawn at random lose on average, over as many contexts as there are rounds: (trials,)."""
    truth = problem.truth(truth_draws(SEED, range(trials), problem.truth_draws()))
    rng, lost = np.random.default_rng(SEED), np.zeros(trials)
    for t in range(rounds):
        normals = rng.normal(size=(trials, problem.round_normals()))
        best = problem.emit(truth, normals, np.asarray(t)).best
        assert best is not None
        scores = truth.features.at(best.mean).scores(truth.theta)
        lost += scores.max(1) - scores.mean(1)
    return lost


def summary(values: Array) -> dict[str, float]:
    """Mean and standard error over trials."""
    return {
        "mean": round(float(values.mean()), 1),
        "se": round(float(values.std(ddof=1) / np.sqrt(len(values))), 1),
    }


def measured(mapping: str, rounds: int, trials: int) -> dict[str, Any]:
    """Everyone, for one map."""
    problem = build_problem({**load("baseline-polinucb").problem, "mapping": mapping})
    assert isinstance(problem, PostServingProblem)
    name = f"polinucb:before=100:powers={POWERS[mapping]}"
    found = {
        "LinUCB (x and z)": final(replace(problem, foretold=True), "linucb:alpha=1", rounds, trials),
        "poLinUCB": final(problem, f"{name}:alpha=1", rounds, trials),
        "poLinUCB, radii / 10": final(problem, name, rounds, trials),
        "poLinUCB, radii / 100": final(problem, f"{name}:alpha=0.01", rounds, trials),
        "LinUCB (x only)": final(problem, "linucb:alpha=1", rounds, trials),
        "random": at_random(problem, rounds, trials),
        "unfog-delayed": final(problem, "unfog-delayed", rounds, trials),
    }
    return {agent: summary(values) for agent, values in found.items()}


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "home-polinucb.json")
    given = parser.parse_args()
    found: dict[str, Any] = {"rounds": given.rounds, "trials": given.trials, "seed": SEED}
    found["published order, best first"] = PUBLISHED
    for mapping in POWERS:
        found[mapping] = measured(mapping, given.rounds, given.trials)
        print(mapping, json.dumps(found[mapping], indent=1), flush=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
