"""contextualbandits: `online.LinTS`, drawing from each arm's predictive interval.

A theta of its own for every arm (disjoint), learnt on one context a round; prior N(0, I), unit noise, no
intercept. `sample_from="ci"` draws the score x'theta of an arm rather than theta: with one context and
independent arms that is the same law. It is used instead of the default, "coef", whose draws in 0.3.30 have
the precision of theta for their covariance, and so get wider with data. Rewards are documented as 0/1, but
the model is least squares and takes any. A row of zeros for each arm starts it without changing the prior;
otherwise arms without data score 0 and may never be played. It refuses 0 for a seed.
"""

import numpy as np
from contextualbandits.online import LinTS

from benchmarks.peers.peer import Array, Peer, contexts

DISTRIBUTION = "contextualbandits"
MODEL = 'online.LinTS(sample_from="ci", method="sm")'
PARAMETERS = "disjoint"


class _Policy:
    def __init__(self, features: Array, seed: int) -> None:
        _, arms, size = features.shape
        self._contexts = contexts(features)
        self._policy = LinTS(
            arms,
            lambda_=1.0,
            fit_intercept=False,
            v_sq=1.0,
            sample_from="ci",
            method="sm",
            random_state=seed + 1,
        )
        self._policy.partial_fit(np.zeros((arms, size)), np.arange(arms), np.zeros(arms))

    def decide(self, t: int) -> int:
        return int(self._policy.predict(self._contexts[t : t + 1])[0])

    def update(self, t: int, arm: int, reward: float) -> None:
        self._policy.partial_fit(self._contexts[t : t + 1], np.array([arm]), np.array([reward]))


def make(features: Array, seed: int) -> Peer:
    return _Policy(features, seed)
