"""What stopping when standard errors are small enough does to intervals: how often they still hold.

    python benchmarks/until.py    # a minute; benchmarks/results/until.json, for docs/reference/spec.md

A large run is taken for the whole population: the truth is its ratios. Samples are drawn from it, and each
is looked at as `unfog run --target-se` looks at trials (pieces of 100), until the standard error of every
ratio is small enough. Beside it, samples of the same sizes drawn anew, whose size was told and not found.
Once more where `alg1` loses ten times as much in one trial of fifty: a sample that happens to have few of
them looks precise, is stopped early, and has too small a ratio.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import unfog
from benchmarks.wording import RESULTS
from unfog.lab.stopping import checkpoints
from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import quotient
from unfog.simulation.job import SOON

ROUNDS, TRIALS, SEED = 50, 6000, 0
SAMPLES, MOST = 4000, 4000
AGENTS = ("alg1", "alg2", "naive", "oracle", "kk")
AGAINST = "oracle"
ASKED = {"plain": (0.025, 0.015, 0.008), "rare": (0.06, 0.04, 0.03)}
RARE, TIMES = 0.02, 10.0  # the share of trials that go wrong, and how much more is lost in them


def population() -> Array:
    """Regrets (trials, agents) after the last round."""
    data = unfog.run("fig1-gaussian", rounds=ROUNDS, trials=TRIALS, seed=SEED, agents=AGENTS)
    return data["regret"].isel(round=-1).values.T


def with_rare(people: Array, rng: np.random.Generator) -> Array:
    """The same, but the first agent goes wrong in a few trials."""
    wrong = rng.random(len(people)) < RARE
    return np.column_stack([np.where(wrong, TIMES, 1.0) * people[:, 0], people[:, 1:]])


def ratios(sample: Array) -> tuple[Array, Array]:
    """All ratios of a sample (trials, agents) to the reference, and their standard errors."""
    at = AGENTS.index(AGAINST)
    found = [quotient(sample[:, i], sample[:, at]) for i in range(len(AGENTS)) if i != at]
    return np.array([one.value for one in found]), np.array([one.se for one in found])


def stopped(sample: Array, asked: float) -> int:
    """Where it ends."""
    looks = checkpoints(len(sample), SOON)
    return next((n for n in looks if ratios(sample[:n])[1].max() <= asked), looks[-1])


def held(sample: Array, truth: Array) -> tuple[Array, Array]:
    """Which 95 % intervals hold, and by how many standard errors ratios are off."""
    value, se = ratios(sample)
    return np.abs(value - truth) <= stdtrit(len(sample) - 1, 0.975) * se, (value - truth) / se


def measured(people: Array, asked: float, rng: np.random.Generator) -> dict[str, Any]:
    """Coverage and bias, of sizes found and of the same sizes told."""
    truth, sizes, found, told = ratios(people)[0], list[int](), [], []

    def drawn(size: int) -> Ints:
        return rng.integers(0, len(people), size)

    for _ in range(SAMPLES):
        sample = people[drawn(MOST)]
        sizes.append(stopped(sample, asked))
        found.append(held(sample[: sizes[-1]], truth))
        told.append(held(people[drawn(sizes[-1])], truth))
    return {
        "asked": asked,
        "trials": [int(n) for n in np.quantile(sizes, [0.05, 0.5, 0.95])],
        **{name: _said(rows) for name, rows in (("found", found), ("told", told))},
    }


def _said(rows: list[tuple[Array, Array]]) -> dict[str, list[float]]:
    """Of each ratio: the share of intervals that hold, and the mean deviation in standard errors."""
    return {
        "held": np.mean([row[0] for row in rows], 0).round(4).tolist(),
        "off": np.mean([row[1] for row in rows], 0).round(3).tolist(),
    }


def main() -> None:
    people, rng = population(), np.random.default_rng(SEED)
    kinds = {"plain": people, "rare": with_rare(people, rng)}
    rows = {kind: [measured(kinds[kind], asked, rng) for asked in ASKED[kind]] for kind in kinds}
    facts = {"rounds": ROUNDS, "trials": TRIALS, "samples": SAMPLES, **rows}
    (RESULTS / "until.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
