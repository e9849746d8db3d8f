"""A process that is to be run as on another processor (tests/kernels.py): elsewhere.py PATH write|verify."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import unfog

AGENTS = [
    "unfog",
    "unfog-thompson",
    "unfog-ucb",
    "unfog-ids",
    "unfog-toptwo",
    "unfog-greedy",
    "linucb",
    "oful",
]
D, DECISIONS = 5, 40
KINDS = np.random.default_rng(3).normal(size=(3, D)).round(2).tolist()
ARMS: Any = {f"arm {i}": KINDS[i % 3] for i in range(11)}  # three arms, again and again
CHANNEL: dict[str, Any] = {"context_mean": 1.0, "context_cov": 1.5, "noise_cov": 0.5, "bias_cov": 0.3}


def write(path: Path) -> None:
    """Arms with the same vector tie, all the time."""
    with unfog.live.open(path, sync="normal") as store:
        for name in AGENTS:
            rng = np.random.default_rng(5)
            context = [f"x{i}" for i in range(D)]
            told: dict[str, Any] = {"features": "quadratic", "channel": CHANNEL, "seed": 11}
            live = store.problem(name, agent=name, context=context, arms=ARMS, **told)
            for _ in range(DECISIONS):
                made = live.decide(rng.normal(1.0, 1.5, D).tolist())
                live.reward(made.id, float(rng.normal(KINDS[[*ARMS].index(made.arm) % 3][0], 0.3)))


def verify(path: Path) -> None:
    """What a replay finds."""
    with unfog.live.open(path, sync="normal") as store:
        for name, found in store.replay(verify=True).items():
            print(json.dumps([name, found.decisions, found.verified, found.same]))


if __name__ == "__main__":
    {"write": write, "verify": verify}[sys.argv[2]](Path(sys.argv[1]))
