"""What `unit=` is worth: regret with a bias for each device against one bias for all, on the same worlds.

    python benchmarks/live_units.py [--trials 200] [--rounds 1000] [--out units.json]

Twenty devices, each with a bias of its own; a decision belongs to any of them. The simulator plays both sides
on the same contexts, errors and rewards: what it plays is what a live problem decides (tests/live/test_lab.py
and tests/live/test_units.py). Differences are paired, with 95 % intervals over trials.
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

import unfog
from unfog.maths.arrays import Array
from unfog.simulation import play

SEED = 20_261_116
UNITS = 20
BIASES = (0.0625, 0.25, 1.0, 4.0)  # variances; that of a context's coordinate is 1
SAID = "| {agent} | {bias_sd:g} | {one:.1f} | {each:.1f} | {saved:.1f} ± {half:.1f} | {better_in:.0%} |"
AGENTS = ("unfog", "alg1", "adaptive")


def world(bias: float, tell: bool) -> unfog.GaussianProblem:
    """Three coordinates, four arms, a noise of half the contexts' variance."""
    told: dict[str, Any] = {"dim": 3, "actions": 4, "features": "per_arm", "prior_cov": 0.5}
    return unfog.GaussianProblem(**told, noise_cov=0.5, bias_cov=bias, units=UNITS, observe_units=tell)


def regrets(agent: str, bias: float, rounds: int, trials: int) -> tuple[Array, Array]:
    """Of one bias for all, and of one for each: (trials,) each."""
    both = (
        play(world(bias, tell), [agent], rounds=rounds, trials=trials, seed=SEED) for tell in (False, True)
    )
    one, each = (found.values["regret"][0, :, -1] for found in both)
    return one, each


def row(agent: str, bias: float, rounds: int, trials: int) -> dict[str, Any]:
    """Means, and the paired difference with its interval."""
    one, each = regrets(agent, bias, rounds, trials)
    saved = one - each
    half = 1.96 * saved.std(ddof=1) / np.sqrt(len(saved))
    means = {"one": float(one.mean()), "each": float(each.mean()), "saved": float(saved.mean())}
    share = float((saved > 0).mean())
    return {"agent": agent, "bias_sd": bias**0.5, **means, "half": float(half), "better_in": share}


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    print(f"{UNITS} devices, {told.rounds} rounds, {told.trials} trials")
    print("| agent | sd of biases | regret, one bias for all | with `unit=` | saved (95 %) | better in |")
    print("|---|---|---|---|---|---|")
    rows = []
    for agent in AGENTS:
        for bias in BIASES:
            rows.append(found := row(agent, bias, told.rounds, told.trials))
            print(SAID.format(**found), flush=True)
    if told.out is not None:
        told.out.write_text(
            json.dumps({"rounds": told.rounds, "trials": told.trials, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
