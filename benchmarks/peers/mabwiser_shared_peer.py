"""mabwiser bent to one theta for all arms: a `MAB` with a single arm, asked about K contexts at once.

Not how its documentation uses it, but as near as it comes to shared parameters: `predict_expectations` scores
the K rows of the round and the best is picked outside. It deviates from Thompson sampling in that each row is
scored with a draw of theta of its own, so correlations between arms are lost.
"""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "mabwiser"
MODEL = "one-armed MAB, LearningPolicy.LinTS"
PARAMETERS = "shared, a draw per arm"


class _Mab:
    def __init__(self, features: Array, seed: int) -> None:
        self._features = features
        self._mab = MAB([0], LearningPolicy.LinTS(alpha=1.0, l2_lambda=1.0), seed=seed)
        self._mab.fit([0], [0.0], np.zeros((1, features.shape[-1])))

    def decide(self, t: int) -> int:
        scores = self._mab.predict_expectations(self._features[t])
        return max(range(len(scores)), key=lambda arm: scores[arm][0])

    def update(self, t: int, arm: int, reward: float) -> None:
        self._mab.partial_fit([0], [reward], self._features[t, arm : arm + 1])


def make(features: Array, seed: int) -> Peer:
    return _Mab(features, seed)
