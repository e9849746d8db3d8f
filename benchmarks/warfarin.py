"""Warfarin dosing with gaps and errors: mistakes of each way to dose, and what denoising saves.

    python benchmarks/warfarin.py                  # 60 orders, 7 scenes, 2 rewards: about ten minutes
    python benchmarks/warfarin.py --orders 10      # a look

Writes benchmarks/results/warfarin.json: of each scene, reward and policy the mean over orders and half the
width of its 95 % interval; and what denoising saves an agent and the published algorithm, paired by order.
Settings were set by hand, none of them on this seed: unfog/paper/warfarin_study.py. What other ones would
change is in docs/notebook/warfarin.md.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from unfog.paper import warfarin, warfarin_study
from unfog.paper.warfarin import Errors
from unfog.paper.warfarin_study import Outcome

SEED = 18
SCENES = {
    "the record's own gaps": (True, Errors()),
    "own gaps, one marker of VKORC1": (False, Errors()),
    "30 % lost": (True, Errors(lost=0.3)),
    "60 % lost": (True, Errors(lost=0.6)),
    "errors": (True, Errors(reported=1.0, miscalled=0.03)),
    "large errors": (True, Errors(reported=3.0, miscalled=0.15)),
    "large errors, 50 % lost": (True, Errors(reported=3.0, miscalled=0.15, lost=0.5)),
}
PAIRS = {
    "naive - denoised": ("naive", "denoised"),
    "pharmacogenetic - pharmacogenetic-denoised": ("pharmacogenetic", "pharmacogenetic-denoised"),
}


def summary(found: Outcome) -> dict[str, list[float]]:
    """Mean and half-width of every number."""
    return {name: list(warfarin_study.interval(values)) for name, values in found._asdict().items()}


def row(scene: str, reward: str, orders: int) -> dict[str, Any]:
    """One scene with one reward."""
    neighbours, errors = SCENES[scene]
    people = warfarin.patients(neighbours=neighbours)
    found = warfarin_study.compare(people, errors, orders=orders, reward=reward, seed=SEED)
    print(f"{scene}, {reward}", file=sys.stderr)
    policies = {name: summary(one) for name, one in found.items()}
    paired = {name: summary(found[one].less(found[other])) for name, (one, other) in PAIRS.items()}
    return {"scene": scene, "reward": reward, "policies": policies, "differences": paired}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/warfarin.json")
    asked = parser.parse_args()
    rows = [row(scene, reward, asked.orders) for reward in warfarin.REWARDS for scene in SCENES]
    found = {"orders": asked.orders, "apart": 1000, "seed": SEED, "rows": rows}
    asked.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
