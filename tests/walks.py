"""A log of messages that are sent by what a phone reads: simulated, its truth known, as a table or a file."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints

ARMS = ("nothing", "walk", "rest")
MEAN, BIAS = np.array([2.0, -1.0]), np.array([0.5, -0.3])
COV, NOISE = np.array([[1.0, 0.3], [0.3, 0.6]]), np.array([[0.8, 0.1], [0.1, 0.5]])
CHANNEL: dict[str, Any] = {
    "context_mean": MEAN.tolist(),
    "context_cov": COV.tolist(),
    "noise_cov": NOISE.tolist(),
    "bias_cov": [[1e-4, 0.0], [0.0, 1e-4]],
    "bias": BIAS.tolist(),
}
COLUMNS: dict[str, Any] = {
    "context": ["steps", "sleep"],
    "arm": "message",
    "reward": "walked",
    "probability": "p",
}


class Walks(NamedTuple):
    """n days, and what the log does not say of them."""

    true: Array  # (n, 2)
    noisy: Array  # (n, 2)
    arm: Ints  # (n,)
    reward: Array  # (n,)
    law: Array  # (n, 3)

    @property
    def probability(self) -> Array:
        return self.law[np.arange(len(self.arm)), self.arm]

    def table(self, known: int = 0) -> dict[str, Any]:
        """As columns; the first days with their true contexts."""
        rows = np.arange(len(self.arm))
        true = np.where((rows < known)[:, None], self.true, np.nan)
        return {
            "steps": self.noisy[:, 0],
            "sleep": self.noisy[:, 1],
            "message": np.array(ARMS)[self.arm],
            "p": self.probability,
            "walked": self.reward,
            "true_steps": true[:, 0],
            "true_sleep": true[:, 1],
        }

    def write(self, path: Path, known: int = 0) -> Path:
        columns = {name: values.tolist() for name, values in self.table(known).items()}
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(columns)
            for row in zip(*columns.values(), strict=True):
                out.writerow(["" if cell != cell else cell for cell in row])
        return path


def earned(context: Array) -> Array:
    """What each message earns on average: (n, 3)."""
    steps, sleep = (context - MEAN).T
    return np.stack([0 * steps, 0.2 + steps - 0.5 * sleep, -0.3 - 0.4 * steps + 1.2 * sleep], axis=1)


def walks(days: int, seed: int = 1) -> Walks:
    """A logger that does what readings say is best, but draws by lot in three of ten cases."""
    dice = np.random.default_rng(seed)
    true = dice.multivariate_normal(MEAN, COV, days)
    noisy = true + dice.multivariate_normal(BIAS, NOISE, days)
    law = np.full((days, 3), 0.1)
    law[np.arange(days), earned(noisy).argmax(axis=1)] += 0.7
    arm = (law.cumsum(axis=1)[:, :-1] < dice.random((days, 1))).sum(axis=1)
    reward = earned(true)[np.arange(days), arm] + 0.7 * dice.standard_normal(days)
    return Walks(true, noisy, arm, reward, law)


def worth_of_truth(draws: int = 400_000) -> float:
    """What a perfect sensor is worth over readings that are denoised by who knows all: by Monte Carlo."""
    dice = np.random.default_rng(0)
    true = dice.multivariate_normal(MEAN, COV, draws)
    noisy = true + dice.multivariate_normal(np.zeros(2), NOISE, draws)
    denoised = MEAN + (noisy - MEAN) @ np.linalg.solve(COV + NOISE, COV)
    paid = earned(true)
    return float((paid.max(axis=1) - paid[np.arange(draws), earned(denoised).argmax(axis=1)]).mean())
