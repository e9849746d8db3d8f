"""mabwiser: `MAB` with `LearningPolicy.LinTS`, as its documentation uses it.

A theta of its own for every arm (disjoint), learnt on one context a round. Given that, exact for the prior
N(0, I) and unit noise: each arm's covariance is factorised in every round. `fit` must come before `predict`;
a row of zeros does it without changing the prior.
"""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from benchmarks.peers.peer import Array, Peer, contexts

DISTRIBUTION = "mabwiser"
MODEL = "MAB, LearningPolicy.LinTS"
PARAMETERS = "disjoint"


class _Mab:
    def __init__(self, features: Array, seed: int) -> None:
        self._contexts = contexts(features)
        self._mab = MAB(
            list(range(features.shape[1])), LearningPolicy.LinTS(alpha=1.0, l2_lambda=1.0), seed=seed
        )
        self._mab.fit([0], [0.0], np.zeros((1, features.shape[-1])))

    def decide(self, t: int) -> int:
        arm: int = self._mab.predict(self._contexts[t : t + 1])
        return arm

    def update(self, t: int, arm: int, reward: float) -> None:
        self._mab.partial_fit([arm], [reward], self._contexts[t : t + 1])


def make(features: Array, seed: int) -> Peer:
    return _Mab(features, seed)
