"""river with one theta for all arms: its `linear_model.BayesianLinearRegression`, without a policy around it.

Each row of the round is scored with a draw from its predictive distribution, less the noise, and the best is
picked outside. Exact posterior for prior N(0, I) and unit noise; it deviates from Thompson sampling in that
each row has a draw of its own, so correlations between arms are lost. Rows are dicts, made beforehand.
"""

import random
from typing import Any

from river.linear_model import BayesianLinearRegression

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "river"
MODEL = "linear_model.BayesianLinearRegression"
PARAMETERS = "shared, a draw per arm"

NOISE = 1.0  # variance


class _Regression:
    def __init__(self, features: Array, seed: int) -> None:
        self._rows = [[dict(enumerate(row)) for row in rows] for rows in features.tolist()]
        self._model: Any = BayesianLinearRegression(alpha=1.0, beta=1.0 / NOISE)
        self._rng = random.Random(seed)

    def decide(self, t: int) -> int:
        scores = [self._draw(row) for row in self._rows[t]]
        return scores.index(max(scores))

    def _draw(self, row: dict[int, float]) -> float:
        score = self._model.predict_one(row, with_dist=True)
        return self._rng.gauss(score.mu, max(score.sigma**2 - NOISE, 0.0) ** 0.5)

    def update(self, t: int, arm: int, reward: float) -> None:
        self._model.learn_one(self._rows[t][arm], reward)


def make(features: Array, seed: int) -> Peer:
    return _Regression(features, seed)
