"""bayesianbandits: `LipschitzContextualAgent` with `ThompsonSampling` over one `NormalRegressor`.

One theta for all arms: the agent's `FunctionArmFeaturizer` hands over the rows of the round, and the policy
asks for joint draws, so all arms are scored with the same theta. Exact: prior N(0, I / alpha), noise variance
1 / beta, both known. A Cholesky factor of the precision is made anew with every reward.
"""

from typing import Any

import numpy as np
from bayesianbandits import (
    Arm,
    FunctionArmFeaturizer,
    LipschitzContextualAgent,
    NormalRegressor,
    ThompsonSampling,
)

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "bayesianbandits"
MODEL = "LipschitzContextualAgent, NormalRegressor"
PARAMETERS = "shared"


def _rows(context: Array, tokens: list[int]) -> Any:
    """(1, K, m) to the (1, m, tokens) that the featurizer wants."""
    return context[:, tokens].transpose(0, 2, 1)


class _Agent:
    def __init__(self, features: Array, seed: int) -> None:
        self._features = features
        self._agent = LipschitzContextualAgent(
            arms=[Arm(arm, learner=None) for arm in range(features.shape[1])],
            policy=ThompsonSampling(),
            arm_featurizer=FunctionArmFeaturizer(_rows),
            learner=NormalRegressor(alpha=1.0, beta=1.0),
            random_seed=seed,
        )

    def decide(self, t: int) -> int:
        arm: int = self._agent.pull(self._features[t : t + 1])[0]
        return arm

    def update(self, t: int, arm: int, reward: float) -> None:
        self._agent.select_for_update(arm).update(self._features[t : t + 1], np.array([reward]))


def make(features: Array, seed: int) -> Peer:
    return _Agent(features, seed)
