"""A model of rewards through the denoiser, cross-fitted: E[r | what is known of the context, a].

The model is E[phi(a, c)]'theta, by least squares of rewards on the expected features of the arms that were
drawn, with a little of a ridge,

    theta = (sum w x x' + ridge S)^-1 sum w x r,    w = s^2 / (s^2 + theta'Cov(phi)theta),

s^2 the variance of rewards given the context. A round whose context is well known (revealed, or nothing of it
lost) says more of theta than one whose context is a guess, which is what the weights are for; where all
rounds know equally much there are none. S is diagonal, the mean square of each feature where it is not zero,
so that units do not matter. Rewards are counted from their mean where arms have an intercept, so that the
ridge draws an arm that was seldom drawn to that mean.

A model never speaks of rounds that it was fitted on. There are two ways to divide them:

    across    blocks of time; each is predicted by a model of all the others. For loggers that do not learn.
    forward   each block is predicted by a model of the blocks before it, the first by none. What a learning
              logger did in later rounds hangs on the rewards of earlier ones, so that a model which has seen
              later rounds has seen something of this one's reward, too.

Both go through the rounds in the order of time, and speak of each once. What rounds come to in least squares
are sums over them (`Sums`), so that blocks of rounds are looked at once: models of all blocks but one, or of
all blocks up to one, are made of the same sums, added.
"""

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from unfog.evaluation.beliefs import Believed
from unfog.features import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Gaussian

ROWS = 100_000  # at once
RIDGE = 1.0  # models of few rounds speak of later ones, so it is not too small
PASSES = 2  # of weighing; a third changes next to nothing
BLOCKS = 5
STEPS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # where blocks begin
FIRST = 100  # rounds of the first block, if that is no more than a quarter: a model of few does more harm
FEW = 5  # rounds whose mean is taken for that of rewards; those before do not count


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


class Sums(NamedTuple):
    """Sums over rounds with features x, reward r and weight w."""

    rounds: int
    weight: float  # w
    reward: float  # w r
    squares: float  # w r^2
    rows: Array  # (m,)  w x
    paid: Array  # (m,)  w x r
    gram: Array  # (m, m)  w x x'
    there: Array  # (m,)  w where x is not zero

    @classmethod
    def of(cls, rows: Array, reward: Array, weight: Array) -> "Sums":
        """The sums over rows (n, m), with rewards and weights (n,)."""
        weighed, paid = rows * weight[:, None], weight * reward
        there = weight @ (rows != 0)
        return cls(
            len(rows),
            float(weight.sum()),
            float(paid.sum()),
            float(paid @ reward),
            weighed.sum(axis=0),
            rows.T @ paid,
            rows.T @ weighed,
            there,
        )

    @classmethod
    def none(cls, size: int) -> "Sums":
        """The sums over no rounds, for so many features."""
        nothing = np.zeros(size)
        return cls(0, 0.0, 0.0, 0.0, nothing, nothing, np.zeros((size, size)), nothing)

    def plus(self, other: "Sums") -> "Sums":
        """The sums over the rounds of both."""
        mine: tuple[Any, ...] = self
        return Sums(*(one + its for one, its in zip(mine, other, strict=True)))

    def less(self, other: "Sums") -> "Sums":
        """The sums over these rounds without the others, which are among them."""
        mine: tuple[Any, ...] = self
        return Sums(*(one - its for one, its in zip(mine, other, strict=True)))

    @property
    def size(self) -> Array:
        """The mean square of each feature where it is not zero, (m,); 1 for one that always is."""
        some = self.there > 0
        return np.where(some, np.diag(self.gram) / np.where(some, self.there, 1.0), 1.0)


class Model(NamedTuple):
    """A model fitted on some of the rounds."""

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


class Fold(NamedTuple):
    """Rounds to learn from, and rounds to speak of."""

    train: Ints  # in the order of time
    test: Ints

    def learns(self, block: Ints) -> bool:
        """Whether it learns from the rounds that another fold speaks of: from all of them, or from none."""
        place = int(np.searchsorted(self.train, block[0]))
        return place < len(self.train) and bool(self.train[place] == block[0])


class Predicted(NamedTuple):
    """What models say of all rounds, each from one of other rounds, and how sure that is."""

    rewards: Array  # (n, K)
    data: Data
    folds: list[Fold]
    models: list[Model]

    def of(self, policy: Array) -> Array:
        """What a policy (n, K) is paid by the model: (n,)."""
        return np.vecdot(policy, self.rewards)

    @property
    def counts(self) -> Array:
        """Zero for the first few rounds, of which nothing can be said from the past, one for others: (n,)."""
        found = np.ones(len(self.rewards))
        if not len(self.folds[0].train):
            found[: min(FEW, len(found) - 1)] = 0.0
        return found

    def asked(self, contexts: Believed) -> Array:
        """What the same models say of other beliefs about the contexts: (n, K)."""
        data = self.data._replace(contexts=contexts)
        pairs = zip(self.folds, self.models, strict=True)
        return np.concat([model.predict(data, fold.test) for fold, model in pairs])

    def wobble(self, policy: Array, corrected: Array | None = None) -> Array:
        """By how much each round moves the sum of scores through the models that are fitted on it: (n,).

        Scores are sum over arms of pi q, less q of the arm that was drawn times `corrected` (n,). A model is
        least squares, so round t with residual e moves that by u'x_t w_t e, u = (sum w x x' + ridge S)^-1 g,
        where g is what the sum of scores has of each feature.
        """
        found = np.zeros(len(policy))
        for fold, model in zip(self.folds, self.models, strict=True):
            if len(fold.train):
                rows = rows_of(self.data, fold.train)
                residual = self.data.reward[fold.train] - model.offset - rows @ model.theta
                reach = np.linalg.solve(model.precision, self._features(policy, corrected, fold))
                found[fold.train] += (rows @ reach) * model.weights(self.data, fold.train) * residual
        return found

    def _features(self, policy: Array, corrected: Array | None, fold: Fold) -> Array:
        """What the sum of scores over a fold has of each feature: (m,)."""
        data, total = self.data, np.zeros(self.data.features.size)
        for part in in_parts(fold.test):
            design = data.features.design(data.contexts.rows(part))
            for arm in range(policy.shape[1]):
                total += policy[part, arm] @ design.row(np.full(len(part), arm))
            if corrected is not None:
                total -= corrected[part] @ design.row(data.arm[part])
        return total


def across(rounds: int) -> Iterator[Fold]:
    """Blocks of as many rounds each, or one more; each from all the others."""
    places = np.arange(rounds)
    for test in np.array_split(places, min(BLOCKS, rounds)):
        yield Fold(np.concat([places[: test[0]], places[test[-1] + 1 :]]), test)


def forward(rounds: int) -> Iterator[Fold]:
    """Each block from those before; short ones first, so that a model of few rounds is soon replaced."""
    places, least = np.arange(rounds), min(FIRST, rounds // 4)
    ends = [end for end in (round(share * rounds) for share in STEPS) if end >= least]
    for start, end in pairwise([0, *ends]):
        if end > start:
            yield Fold(places[:start], places[start:end])


def predicted(data: Data, folds: list[Fold]) -> Predicted:
    """What models say of the rounds of every fold, each fitted on the others."""
    alike = data.contexts.alike
    models = _by_blocks(data, folds) if alike else [fit(data, fold.train) for fold in folds]
    parts = [
        model.predict(data, fold.test) if len(fold.train) else _mean_so_far(data, fold)
        for fold, model in zip(folds, models, strict=True)
    ]
    return Predicted(np.concat(parts), data, folds, models)


def _mean_so_far(data: Data, fold: Fold) -> Array:
    """For the first rounds, before there is a model: the mean of rewards before each, whatever the arm."""
    before = np.cumsum(data.reward[fold.test]) - data.reward[fold.test]
    mean = before / np.maximum(np.arange(len(fold.test)), 1)
    return np.repeat(mean[:, None], data.features.arms, axis=1)


def _by_blocks(data: Data, folds: list[Fold]) -> list[Model]:
    """Where rounds are weighed alike: each round is looked at once, and blocks are added."""
    sums = [summed(data, fold.test) for fold in folds]
    return [
        solved(
            data,
            reduce(
                Sums.plus,
                [one for one, other in zip(sums, folds, strict=True) if fold.learns(other.test)],
                Sums.none(data.features.size),
            ),
        )
        for fold in folds
    ]


def fit(data: Data, places: Ints) -> Model:
    """Fit a model on these rounds, of which there may be none."""
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


def rows_of(data: Data, places: Ints) -> Array:
    """The expected features of the arms that were drawn: (rounds, m)."""
    parts = [data.features.design(data.contexts.rows(part)).row(data.arm[part]) for part in in_parts(places)]
    return np.concat([np.zeros((0, data.features.size)), *parts])


def in_parts(places: Ints) -> Iterator[Ints]:
    """A stretch after the other, so that memory is bounded."""
    yield from (places[start : start + ROWS] for start in range(0, len(places), ROWS))
