"""SampLinUCB at home: constant profiles of arms, of which noisy samples are seen.

    python benchmarks/home_samplinucb.py [--trials 100] [--out benchmarks/results/home-samplinucb.json]

The problem is baseline-samplinucb of the catalog, with its three deliveries: samples of all arms, of each
with probability 0.1, and of the arm that is played alone. Lamprier, Gisselbrecht and Gallinari,
*Profile-Based Bandit with Unknown Profiles*, show curves on artificial data; their numbers, and some of
their settings, are not known to us, so nothing is compared with what was published. What must hold is
checked instead: the more samples are delivered, the less it loses, and less than those who take each sample
for the profile.

Regret is against one who knows the profiles (`regret_true_context`). OFUL that is shown the profiles
themselves is what SampLinUCB could be at best; it plays the same profiles and rewards without noise.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))


from unfog.lab.spec import build_problem, load
from unfog.maths.arrays import Array
from unfog.maths.statistics import estimate
from unfog.simulation import play
from unfog.worlds.problem import Problem

SEED = 20_261_116
HOME = load("baseline-samplinucb")
TIMES = (0.01, 0.03, 0.1, 0.3, 1.0)  # of what is published to be added to a score
DELIVERIES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "all arms": (
        {},
        (*[f"samplinucb:alpha={a}" for a in TIMES], "oful", "linucb", "unfog"),
    ),
    "each with probability 0.1": (
        {"missing": 0.9},
        (*[f"samplinucb:alpha={a}" for a in TIMES], "oful", "linucb", "unfog", "gaps"),
    ),
    "the played arm": ({}, tuple(f"samplinucb:chosen=true:alpha={a}" for a in TIMES)),
    "profiles known": ({"noise_cov": 1e-12}, ("oful", "linucb", "unfog")),
}


def final(problem: Problem, agent: str, trials: int) -> Array:
    """What is lost in all rounds together, (trials,)."""
    told: dict[str, Any] = {"rounds": HOME.run.rounds, "trials": trials, "seed": SEED, "points": 1}
    return play(problem, [agent], **told).values["regret_true_context"][0, :, -1]


def summary(regret: Array) -> dict[str, float]:
    """Mean and standard error over trials."""
    found = estimate(regret)
    return {"mean": round(found.mean, 2), "se": round(found.se, 2)}


def main() -> None:
    """Play every delivery, and write what was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/home-samplinucb.json"))
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for delivery, (changes, agents) in DELIVERIES.items():
        problem = build_problem({**HOME.problem, **changes})
        found[delivery] = {}
        for agent in agents:
            found[delivery][agent] = summary(final(problem, agent, given.trials))
            print(delivery, agent, found[delivery][agent], flush=True)
    about = {"rounds": HOME.run.rounds, "trials": given.trials, "seed": SEED, "loss": "regret_true_context"}
    written = {**about, "published": "curves alone; settings not known for certain", "regret": found}
    given.out.write_text(json.dumps(written, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
