"""A model of rewards through the denoiser: E[r | what is known of the context, a] = E[phi(a, c)]'theta.

Least squares of rewards on the expected features of the arms that were drawn, with a little of a ridge,

    theta = (sum w x x' + ridge S)^-1 sum w x r,    w = s^2 / (s^2 + theta'Cov(phi)theta),

s^2 the variance of rewards given the context. A round whose context is well known (revealed, or nothing of it
lost) says more of theta than one whose context is a guess, which is what the weights are for; where all
rounds know equally much there are none. S is diagonal, the mean square of each feature where it is not zero,
so that units do not matter. Rewards are counted from their mean where arms have an intercept, so that the
ridge draws an arm that was seldom drawn to that mean.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unfog.evaluation.contexts import Believed
from unfog.evaluation.sums import Sums
from unfog.features import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Gaussian

ROWS = 100_000  # at once
RIDGE = 1.0  # models of few rounds speak of later ones, so it is not too small
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

    @property
    def has_intercept(self) -> bool:
        """Whether every arm has one."""
        return isinstance(self.features, PerArm) and self.features.intercept

    @property
    def middle(self) -> float:
        """Sums of rewards less this lose no digits; 0 where nothing could take it up."""
        return float(self.reward.mean()) if self.has_intercept else 0.0


class Model(NamedTuple):
    """What was found, from some of the rounds."""

    theta: Array  # (m,)
    offset: float  # of rewards
    precision: Array  # (m, m)  sum w x x' + ridge S
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


def in_parts(places: Ints) -> Iterator[Ints]:
    """A stretch after the other, so that memory is bounded."""
    yield from (places[start : start + ROWS] for start in range(0, len(places), ROWS))


def rows_of(data: Data, places: Ints) -> Array:
    """The expected features of the arms that were drawn: (rounds, m)."""
    parts = [data.features.design(data.contexts.rows(part)).row(data.arm[part]) for part in in_parts(places)]
    return np.concat([np.zeros((0, data.features.size)), *parts])


def fit(data: Data, places: Ints) -> Model:
    """From these rounds, of which there may be none."""
    if data.contexts.alike or not len(places):
        return solved(data, summed(data, places))
    rows, paid = rows_of(data, places), data.reward[places] - data.middle
    model = solved(data, Sums.of(rows, paid, np.ones(len(places))))
    for _ in range(PASSES):
        model = solved(data, Sums.of(rows, paid, model.weights(data, places)))
    return model


def summed(data: Data, places: Ints) -> Sums:
    """What these rounds say, all weighed alike."""
    total = Sums.none(data.features.size)
    for part in in_parts(places):
        paid = data.reward[part] - data.middle
        total = total.plus(Sums.of(rows_of(data, part), paid, np.ones(len(part))))
    return total


def solved(data: Data, sums: Sums) -> Model:
    """Least squares from what rounds come to."""
    if not sums.rounds:
        return Model(np.zeros(len(sums.paid)), 0.0, RIDGE * np.eye(len(sums.paid)), 1.0)
    offset = sums.reward / sums.weight if data.has_intercept else 0.0
    paid = sums.paid - offset * sums.rows
    squares = sums.squares - offset * (2 * sums.reward - offset * sums.weight)
    precision = sums.gram + np.diag(RIDGE * sums.size)
    theta: Array = np.linalg.solve(precision, paid).astype(np.float64)
    left = float(squares - 2 * theta @ paid + theta @ sums.gram @ theta)  # of w e^2, whose mean is s^2
    variance = max(left / sums.rounds, np.finfo(float).tiny)
    return Model(theta, data.middle + offset, precision, variance)
