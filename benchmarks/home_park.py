"""Park and Faradonbeh at home: the two figures of their paper, and ours beside them.

    python benchmarks/home_park.py [--matrices 4] [--out benchmarks/results/home-park.json]

N arms with contexts x_i ~ N(0, I) of d numbers each, y_i = A x_i + N(0, I), rewards of variance one. The
paper draws theta and the rows of A and does not say how: here all their entries are N(0, 1). An A is a noise
of covariance (A'A)^-1. Its cases are N = 5, 10, 20, 50 and d = 10, 30, each repeated 50 times; N d is at most
1000 here, so that one of the eight is left out, and there are five trials for each of `matrices` A.

The paper has curves and no table. Figure 1 is |theta_hat - theta| / sqrt(d), between 0 and 0.5 up to round
5000; figure 2 is regret / (d ln t sqrt(ln N)), between 0 and 2 (d = 10) or 3 (d = 30), and constant in time.
`flat` is the latter at the last round over that at a fifth of the way: 1 where regret is logarithmic.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from unfog.agents.baselines import BASELINES
from unfog.lab.spec import build_problem, load
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.simulation.player import played
from unfog.worlds.synthetic import GaussianProblem

SEED = 20_261_116
ROUNDS = 5000
TRIALS = 5  # of every A
CASES = [(5, 10), (10, 10), (20, 10), (50, 10), (5, 30), (10, 30), (20, 30)]
TOP = {10: 2.0, 30: 3.0}  # of figure 2


def problem(arms: int, dim: int, number: int) -> GaussianProblem:
    """The world of one A."""
    matrix = np.random.default_rng([SEED, arms, dim, number]).normal(size=(dim, dim))
    noise = np.asarray(np.linalg.inv(matrix.T @ matrix), float)
    return GaussianProblem(
        dim=arms * dim,
        actions=arms,
        features="own",
        context_cov=1.0,
        noise_cov=np.kron(np.eye(arms), (noise + noise.T) / 2),
        bias_cov=1e-12,
        prior_cov=1.0,
        reward_var=1.0,
    )


def curves(arms: int, dim: int, number: int) -> tuple[Array, Array]:
    """Cumulative regret and |theta_hat - theta| / sqrt(d) after every round, (TRIALS, ROUNDS) each."""
    world, trials = problem(arms, dim, number), range(TRIALS * number, TRIALS * (number + 1))
    theta = world.truth(truth_draws(SEED, trials, world.truth_draws())).theta
    lost, off = [], []
    for _, decision in played(world, BASELINES["park-faradonbeh"].agent, ROUNDS, trials, SEED):
        scores = decision.evidence.design.scores(theta)  # D is known: its scores are the oracle's
        chosen = np.take_along_axis(scores, decision.arm[:, None], 1)[:, 0]
        lost.append(scores.max(1) - chosen)
        off.append(np.linalg.norm(decision.evidence.belief.centre - theta, axis=-1) / np.sqrt(dim))
    return np.cumsum(lost, 0).T, np.stack([np.broadcast_to(one, (TRIALS,)) for one in off], 1)


def summary(values: Array) -> dict[str, float]:
    """Mean and standard error over trials."""
    return {"mean": round(values.mean(), 4), "se": round(values.std(ddof=1) / np.sqrt(len(values)), 4)}


def case(arms: int, dim: int, matrices: int) -> dict[str, Any]:
    """Both figures for one number of arms and one dimension."""
    regret, off = (np.concat(x) for x in zip(*[curves(arms, dim, n) for n in range(matrices)], strict=True))
    marks = [ROUNDS // 5, ROUNDS // 2, ROUNDS]
    scaled = {t: regret[:, t - 1] / (dim * np.log(t) * np.sqrt(np.log(arms))) for t in marks}
    flat = scaled[marks[-1]].mean() / scaled[marks[0]].mean()
    apart = scaled[marks[-1]] - flat * scaled[marks[0]]
    error = apart.std(ddof=1) / np.sqrt(len(apart)) / scaled[marks[0]].mean()
    return {
        "regret / (d ln t sqrt(ln N))": {t: summary(x) for t, x in scaled.items()},
        "flat": {"ratio": round(flat, 4), "se": round(error, 4)},
        "|theta_hat - theta| / sqrt(d)": {t: summary(off[:, t - 1]) for t in marks},
        "published": {"top of figure 2": TOP[dim], "top of figure 1": 0.5},
    }


def beside() -> dict[str, Any]:
    """Everyone of the catalog's spec, where A is I."""
    spec = load("baseline-park")
    world, told = build_problem(spec.problem), dict[str, Any](rounds=spec.run.rounds, trials=spec.run.trials)
    names = spec.run.agents
    found = play(world, names, seed=SEED, decompose=False, **told).values["regret"][:, :, -1]
    return told | {"regret": {name: summary(one) for name, one in zip(names, found, strict=True)}}


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matrices", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "home-park.json")
    given = parser.parse_args()
    found: dict[str, Any] = {"rounds": ROUNDS, "trials": TRIALS * given.matrices, "seed": SEED}
    found["A is I"] = beside()
    print(found["A is I"])
    for arms, dim in CASES:
        found[f"N = {arms}, d = {dim}"] = one = case(arms, dim, given.matrices)
        print(f"N = {arms}, d = {dim}: {one}", flush=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
