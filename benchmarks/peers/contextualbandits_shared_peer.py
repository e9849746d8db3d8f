"""contextualbandits with one theta for all arms: its `linreg.LinearRegression`, without a policy around it.

The K rows of the round are scored by `predict_ucb` with a standard normal for each row as the multiplier,
which is what its LinTS does inside, and the best is picked outside. Prior N(0, I), unit noise, updates by
Sherman-Morrison. It deviates from Thompson sampling in that each row has a draw of its own, so correlations
between arms are lost; `predict_thompson` would draw one theta, but (in 0.3.30) with the precision of theta
for its covariance.
"""

import numpy as np
from contextualbandits.linreg import LinearRegression

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "contextualbandits"
MODEL = 'linreg.LinearRegression(method="sm")'
PARAMETERS = "shared, a draw per arm"


class _Regression:
    def __init__(self, features: Array, seed: int) -> None:
        _, self._arms, size = features.shape
        self._features, self._rng = features, np.random.default_rng(seed)
        self._model = LinearRegression(lambda_=1.0, fit_intercept=False, method="sm", use_float=False)
        self._model.partial_fit(np.zeros((1, size)), np.zeros(1))

    def decide(self, t: int) -> int:
        draws = self._rng.standard_normal(self._arms)
        return int(np.argmax(self._model.predict_ucb(self._features[t], draws)))

    def update(self, t: int, arm: int, reward: float) -> None:
        self._model.partial_fit(self._features[t, arm : arm + 1], np.array([reward]))


def make(features: Array, seed: int) -> Peer:
    return _Regression(features, seed)
