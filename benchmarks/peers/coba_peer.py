"""coba: `LinTSLearner` over the actions' own features.

One theta for all arms, exact for prior N(0, I) and unit noise (`v=1`), with Sherman-Morrison updates and a
Cholesky draw each round. Its normals come from a fixed seed, whatever `seed` is given; that one only breaks
ties. Actions are lists of numbers, made beforehand.
"""

from coba.learners import LinTSLearner

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "coba"
MODEL = 'LinTSLearner(features=["a"])'
PARAMETERS = "shared"


class _Learner:
    def __init__(self, features: Array, seed: int) -> None:
        self._actions: list[list[list[float]]] = features.tolist()
        self._learner = LinTSLearner(v=1.0, features=["a"], seed=seed)

    def decide(self, t: int) -> int:
        action, self._odds = self._learner.predict(None, self._actions[t])
        return self._actions[t].index(action)

    def update(self, t: int, arm: int, reward: float) -> None:
        self._learner.learn(None, self._actions[t][arm], reward, self._odds)


def make(features: Array, seed: int) -> Peer:
    return _Learner(features, seed)
