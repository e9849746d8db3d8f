"""The default on problems nobody chose: 200 drawn at random, told right, beside `alg1` and `naive`.

    python benchmarks/random_problems.py --out random.json [--number 200] [--workers 2] [--wrong]

With `--wrong` agents are told wrong, and it is `adaptive` that plays: the variances of the noise and of theta
are off by a factor of ten at most, and one problem in three each has a bias that walks, and noise with heavy
tails or coordinates that get lost.

Dimensions 1 to 8, 2 to 200 arms, every feature map, horizons 50 to 20,000, correlated covariances, means that
are not zero. The worst ratios are printed with the problems that give them. A ratio is held against 1.1 by
its standard error, three times. A problem that is in the file already is kept.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

from benchmarks.default import ratio
from unfog.features.quadrature import quadrature
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem

SEED = 161_803
BASELINES = "alg1", "naive"
LIMIT, ERRORS = 1.1, 3.0
WORK = 1.5e6  # trial-rounds of a problem, each as long as its arms and features make it
LONGEST = 3000  # rounds, where agents are told wrong
MAPS = "quadratic", "product", "per_arm", "matrix", "bent"


def bent(action: Array, context: Array) -> Array:
    """A map that is no polynomial: tanh and products."""
    xp = context.__array_namespace__()
    return xp.concat(xp.broadcast_arrays(xp.tanh(action + context), action * context), axis=-1)


def described(number: int) -> dict[str, Any]:
    """The fields of a problem, its horizon and the number of trials: all from its number."""
    rng = np.random.default_rng((SEED, number))
    name = MAPS[number % len(MAPS)]
    dim = int(rng.integers(1, 4 if name == "bent" else 9))
    arms = int(np.exp(rng.uniform(np.log(2), np.log(60 if name == "bent" else 200.99))))
    rounds = int(np.exp(rng.uniform(np.log(50), np.log(20_000))))
    fields: dict[str, Any] = {
        "dim": dim,
        "context_mean": (0.7 * rng.standard_normal(dim)).tolist(),
        **{f"{what}_cov": covariance(rng, dim) for what in ("context", "noise", "bias")},
        "prior_mean": float(0.1 * rng.standard_normal()),
        "prior_cov": float(np.exp(rng.uniform(np.log(0.003), np.log(1.0)))),
        "reward_var": float(np.exp(rng.uniform(np.log(0.05), np.log(5.0)))),
        "action_law": str(rng.choice(["normal", "uniform"])),
        "features": name,
        "actions": arms if name != "matrix" else matrices(rng, arms, dim),
    }
    weight = arms * dim * (8 if name == "bent" else 1) + 40 * dim
    trials = int(np.clip(100 * WORK / rounds / weight, 24, 400))
    return {"fields": fields, "rounds": rounds, "trials": trials}


def told_wrong(told: dict[str, Any], number: int) -> dict[str, Any]:
    """The same problem, of which agents are told wrong; fewer trials, and rounds."""
    rng, fields = np.random.default_rng((SEED, number, 1)), dict(told["fields"])
    size, spread = 10 ** rng.uniform(-1, 1, 2)
    fields["assumed_noise_cov"] = fields["noise_cov"]
    fields["noise_cov"] = (size * np.asarray(fields["noise_cov"])).tolist()
    fields["theta_scale"] = float(np.sqrt(spread))
    if rng.uniform() < 1 / 3:
        step = 10 ** rng.uniform(-4, -1.3)
        fields["drift_cov"] = (step * np.asarray(fields["bias_cov"])).tolist()
        fields["drift_rounds"] = LONGEST
    trouble = rng.uniform()
    if trouble < 1 / 6 and fields["features"] != "bent":
        fields["tails"] = int(rng.integers(3, 11))
    elif trouble < 1 / 3:
        fields["missing"] = float(rng.uniform(0.1, 0.6))
    trials, rounds = max(24, told["trials"] // 8), min(told["rounds"], LONGEST)
    return told | {"fields": fields, "trials": trials, "rounds": rounds}


def covariance(rng: np.random.Generator, dim: int) -> list[list[float]]:
    """Correlated, its size from 0.05 to 5."""
    root = rng.standard_normal((dim, dim + 1))
    size = np.exp(rng.uniform(np.log(0.05), np.log(5.0)))
    found: list[list[float]] = (size * (root @ root.T / (dim + 1) + 0.1 * np.eye(dim))).tolist()
    return found


def matrices(rng: np.random.Generator, arms: int, dim: int) -> list[Any]:
    """G(a) of every arm, with as many rows as there are coordinates."""
    found: list[Any] = (rng.standard_normal((arms, dim, dim)) / np.sqrt(dim)).tolist()
    return found


def measure(number: int, wrong: bool = False) -> dict[str, Any]:
    """The ratios of one problem."""
    told, began = described(number), time.perf_counter()
    told = told_wrong(told, number) if wrong else told
    fields = dict(told["fields"])
    if fields["features"] == "bent":
        fields["features"] = quadrature(bent, fields["dim"])
    if fields["features"] == "matrix":
        fields["actions"] = np.asarray(fields["actions"])
    shared: Any = {"seed": SEED + number, "decompose": False, "points": 4}
    names = ["adaptive" if wrong else "unfog", *BASELINES]
    played = play(GaussianProblem(**fields), names, rounds=told["rounds"], trials=told["trials"], **shared)
    ours, *others = played.values["regret"][:, :, -1]
    if told["fields"]["features"] == "matrix":
        told["fields"]["actions"] = f"{len(fields['actions'])} drawn matrices"
    ratios = {name: ratio(ours, other) for name, other in zip(BASELINES, others, strict=True)}
    return {"number": number, **told, "seconds": time.perf_counter() - began, "ratios": ratios}


def over(row: dict[str, Any], baseline: str) -> bool:
    """Whether a ratio is above the limit by more than its error."""
    found = row["ratios"][baseline]
    return bool(found["ratio"] - ERRORS * found["se"] > LIMIT)


def worst(rows: list[dict[str, Any]], baseline: str) -> dict[str, Any]:
    """The problem whose ratio is the largest."""
    return max(rows, key=lambda row: float(row["ratios"][baseline]["ratio"]))


def said(rows: list[dict[str, Any]]) -> list[str]:
    """What there is to say, a line a baseline and a line a problem."""
    lines = []
    for baseline in BASELINES:
        ratios = np.asarray([row["ratios"][baseline]["ratio"] for row in rows])
        low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
        beyond = [row["number"] for row in rows if over(row, baseline)]
        last = worst(rows, baseline)
        found, fields = last["ratios"][baseline], last["fields"]
        told = f"{fields['features']}, d {fields['dim']}, T {last['rounds']}, {last['trials']} trials"
        lines.append(f"against {baseline}: median {middle:.2f}, 10 to 90 % {low:.2f} to {high:.2f}")
        lines.append(f"  worst {found['ratio']:.3f} ± {found['se']:.3f}: problem {last['number']} ({told})")
        lines.append(f"  above {LIMIT} by more than {ERRORS:g} standard errors: {beyond or 'none'}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--wrong", action="store_true", help="agents are told wrong")
    given = parser.parse_args()
    rows = json.loads(given.out.read_text("utf-8")) if given.out.exists() else []
    left = sorted(set(range(given.number)) - {row["number"] for row in rows})
    with ProcessPoolExecutor(given.workers) as pool:
        for row in pool.map(partial(measure, wrong=given.wrong), left):
            rows.append(row)
            given.out.write_text(
                json.dumps(sorted(rows, key=lambda r: r["number"]), indent=1) + "\n", "utf-8"
            )
            found = ", ".join(f"{k} {v['ratio']:.2f} ± {v['se']:.2f}" for k, v in row["ratios"].items())
            print(f"{row['number']}: T {row['rounds']}, {row['seconds']:.1f} s, {found}", flush=True)
    print(*said(rows), sep="\n")


if __name__ == "__main__":
    main()
