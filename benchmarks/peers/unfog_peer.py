"""unfog itself, live: its learner and its chooser on the rows that every library here is given.

One theta for all arms, exact. The posterior is kept as a square root of the covariance, which a reward
changes by a rank-one formula: no inverse and no factorisation. Denoising is left out, because the others
have none; the normals of a round are drawn in that round. Needs NumPy and the package's `src` on the path.
"""

from typing import Any, NamedTuple

import numpy as np

import unfog
from benchmarks.peers.peer import Array, Peer
from unfog.agents.base import Evidence, View
from unfog.agents.choose import Thompson
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.link import Laws
from unfog.maths import gaussian
from unfog.maths.arrays import Ints
from unfog.maths.gaussian import Gaussian

DISTRIBUTION = "unfog"
VERSION = unfog.__version__
MODEL = "learn.conjugate + choose.thompson"
PARAMETERS = "shared"
LEARNER, CHOOSER = Conjugate(), Thompson()
NO_CONTEXT = Context(np.zeros(0), np.zeros((0, 0)))
NO_MAP: Any = None  # features are given


class _Rows(NamedTuple):
    """The design of a round whose features are given: no belief about a context stands between."""

    rows: Array  # (K, m)

    def scores(self, theta: Array) -> Array:
        return self.rows @ theta

    def row(self, arm: Ints) -> Array:
        return self.rows[arm]

    def variances(self, belief: Gaussian) -> Array:
        spread = self.rows @ belief.root
        return np.vecdot(spread, spread)

    def covariance(self, arm: Ints) -> Array:
        return np.zeros((*np.shape(arm), *2 * self.rows.shape[-1:]))

    def context_variance(self, belief: gaussian.Gaussian, arm: Ints) -> Array:  # noqa: ARG002
        return np.zeros(np.shape(arm))

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        return np.zeros((*np.shape(arm), theta.shape[-1]))

    def laws(self, theta: Array) -> Laws:
        raise NotImplementedError("features that are given are known for certain")


class _Agent:
    def __init__(self, features: Array, seed: int) -> None:
        self._designs = [_Rows(rows) for rows in features]
        self._rng, known = np.random.default_rng(seed), _knowledge(features.shape[-1])
        self._parameters, self._state = LEARNER.setup(known), LEARNER.start(known, None)
        self._normals = CHOOSER.normals(known)

    def decide(self, t: int) -> int:
        belief = LEARNER.belief(self._parameters, self._state)
        view = View(NO_CONTEXT, self._designs[t], belief)
        return int(CHOOSER.choose(view, self._rng.standard_normal(self._normals)))

    def update(self, t: int, arm: int, reward: float) -> None:
        seen = Evidence(NO_MAP, self._designs[t], self._state, np.asarray(arm))
        self._state = LEARNER.update(self._parameters, self._state, seen, np.asarray(reward))


def _knowledge(size: int) -> Knowledge:
    """Prior N(0, I) and unit noise; contexts are not used."""
    none, nothing = np.zeros(0), np.zeros((0, 0))
    return Knowledge(none, nothing, nothing, nothing, np.zeros(size), np.eye(size), np.asarray(1.0))


def make(features: Array, seed: int) -> Peer:
    return _Agent(features, seed)
