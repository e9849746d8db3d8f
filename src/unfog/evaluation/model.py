"""A model of rewards through the denoiser: E[r | what is known of the context, a] = E[phi(a, c)]'theta.

Least squares of rewards on the expected features of the arms that were drawn, with a little of a ridge,

    theta = (sum w x x' + ridge I)^-1 sum w x r,    w = s^2 / (s^2 + theta'Cov(phi)theta),

s^2 the variance of rewards given the context. A round whose context is well known (revealed, or nothing of it
lost) says more of theta than one whose context is a guess, which is what the weights are for; where all
rounds know equally much there are none. Rewards are counted from their mean where arms have an intercept, so
that the ridge draws an arm that was seldom drawn to that mean.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unfog.evaluation.contexts import Believed
from unfog.features import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Gaussian

ROWS = 100_000  # at once
RIDGE = 0.1
PASSES = 2  # of weighing; a third changes next to nothing


class Data(NamedTuple):
    """The rounds of a log as the model sees them."""

    features: FeatureMap
    contexts: Believed
    arm: Ints  # (n,)
    reward: Array  # (n,)

    @property
    def rounds(self) -> int:
        """How many: n."""
        return len(self.arm)


class Model(NamedTuple):
    """What was found, from some of the rounds."""

    theta: Array  # (m,)
    offset: float  # of rewards
    precision: Array  # (m, m)  sum w x x' + I
    variance: float  # s^2

    def predict(self, data: Data, places: Ints) -> Array:
        """What each arm would have been paid in these rounds: (rounds, K)."""
        parts = [
            data.features.design(data.contexts.rows(part)).scores(self.theta) for part in in_parts(places)
        ]
        return self.offset + np.concat([np.zeros((0, data.features.arms)), *parts])

    def weights(self, data: Data, places: Ints) -> Array:
        """How much rounds say of theta, against one whose context is known: (rounds,)."""
        if data.contexts.alike:
            return np.ones(len(places))
        root = np.linalg.inv(np.linalg.cholesky(self.precision)).T * np.sqrt(self.variance)
        belief = Gaussian(self.theta, root)
        hidden = [
            data.features.design(data.contexts.rows(part)).context_variance(belief, data.arm[part])
            for part in in_parts(places)
        ]
        return self.variance / (self.variance + np.concat([np.zeros(0), *hidden]))

    def rows(self, data: Data, places: Ints) -> Array:
        """The expected features of the arms that were drawn: (rounds, m)."""
        parts = [
            data.features.design(data.contexts.rows(part)).row(data.arm[part]) for part in in_parts(places)
        ]
        return np.concat([np.zeros((0, data.features.size)), *parts])


def in_parts(places: Ints) -> Iterator[Ints]:
    """A stretch after the other, so that memory is bounded."""
    yield from (places[start : start + ROWS] for start in range(0, len(places), ROWS))


def fit(data: Data, places: Ints) -> Model:
    """From these rounds, of which there may be none."""
    m = data.features.size
    has_intercept = isinstance(data.features, PerArm) and data.features.intercept
    offset = float(data.reward[places].mean()) if has_intercept and len(places) else 0.0
    model = Model(np.zeros(m), offset, RIDGE * np.eye(m), 1.0)
    if not len(places):
        return model
    rows, paid = model.rows(data, places), data.reward[places] - offset
    weights = np.ones(len(places))
    for _ in range(1 if data.contexts.alike else 1 + PASSES):
        model = _solved(rows, paid, weights, model)
        weights = model.weights(data, places)
    return model


def _solved(rows: Array, paid: Array, weights: Array, before: Model) -> Model:
    weighed = rows * weights[:, None]
    precision = RIDGE * np.eye(rows.shape[1]) + rows.T @ weighed
    theta: Array = np.linalg.solve(precision, weighed.T @ paid).astype(np.float64)
    left = weights * (paid - rows @ theta) ** 2  # E of it is s^2, whatever is hidden
    return Model(theta, before.offset, precision, max(float(left.mean()), np.finfo(float).tiny))
