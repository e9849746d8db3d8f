"""river: `bandit.LinUCBDisjoint`, its only contextual policy.

A theta of its own for every arm (disjoint), learnt on one context a round, and an upper bound (mean plus one
predictive standard deviation) in place of a draw: not Thompson sampling. Contexts are dicts, made beforehand.
"""

from typing import Any

from river.bandit import LinUCBDisjoint

from benchmarks.peers.peer import Array, Peer, contexts

DISTRIBUTION = "river"
MODEL = "bandit.LinUCBDisjoint"
PARAMETERS = "disjoint, UCB"


class _Policy:
    def __init__(self, features: Array, seed: int) -> None:
        self._contexts = [dict(enumerate(row)) for row in contexts(features).tolist()]
        self._arms = list(range(features.shape[1]))
        self._policy: Any = LinUCBDisjoint(alpha=1.0, beta=1.0, seed=seed)

    def decide(self, t: int) -> int:
        arm: int = self._policy.pull(self._arms, context=self._contexts[t])
        return arm

    def update(self, t: int, arm: int, reward: float) -> None:
        self._policy.update(arm, self._contexts[t], reward)


def make(features: Array, seed: int) -> Peer:
    return _Policy(features, seed)
