"""The baseline: linear Thompson sampling as one writes it down in NumPy.

One theta for all arms, exact. Every round inverts the precision, draws with `multivariate_normal` (which
factorises the covariance again) and adds a rank-one term to the precision.
"""

import numpy as np

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "numpy"
MODEL = "plain loop: linalg.inv, multivariate_normal"
PARAMETERS = "shared"


class _Loop:
    def __init__(self, features: Array, seed: int) -> None:
        size = features.shape[-1]
        self._features, self._rng = features, np.random.default_rng(seed)
        self._precision, self._total = np.eye(size), np.zeros(size)

    def decide(self, t: int) -> int:
        cov = np.linalg.inv(self._precision)
        theta = self._rng.multivariate_normal(cov @ self._total, cov)
        return int(np.argmax(self._features[t] @ theta))

    def update(self, t: int, arm: int, reward: float) -> None:
        row = self._features[t, arm]
        self._precision += np.outer(row, row)
        self._total += reward * row


def make(features: Array, seed: int) -> Peer:
    return _Loop(features, seed)
