"""A model of rewards through the denoiser, cross-fitted: E[r | what is known of the context, a].

The model is E[phi(a, c)]'theta, by least squares of rewards on the expected features of the arms that were
drawn, with a little of a ridge,

    theta = (sum w x x' + ridge S)^-1 sum w x r,    w = s^2 / (s^2 + theta'Cov(phi)theta),

s^2 the variance of rewards given the context. A round whose context is well known (revealed, or nothing of it
lost) says more of theta than one whose context is a guess, which is what the weights are for; where all
rounds know equally much there are none. S is diagonal, the mean square of each feature where it is not zero,
so that units do not matter. Rewards are counted from their mean where arms have an intercept, so that the
ridge draws an arm that was seldom drawn to that mean.

A model never predicts rounds that it was fitted on. There are two ways to divide them:

    across    blocks of time; each is predicted by a model of all the others. For loggers that do not learn.
    forward   each block is predicted by a model of the blocks before it, the first by none. What a learning
              logger did in later rounds depends on the rewards of earlier ones, so that a model which has
              seen later rounds has seen something of this one's reward, too.

Both go through the rounds in the order of time and predict each once. Least squares needs only sums over
rounds (`Sums`), so each block is read once: models of all blocks but one, or of all blocks up to one, come
from adding the same sums.
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

ROWS = 100_000  # rounds that are handled at once
RIDGE = 1.0  # not too small, since models of few rounds predict later ones
PASSES = 2  # of reweighing; a third changes next to nothing
BLOCKS = 5
STEPS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # where blocks begin
FIRST = (
    100  # rounds of the first block, if that is at most a quarter: a model of fewer does more harm than good
)
FEW = 5  # the first rounds, which do not count: the mean reward before them is too uncertain


class Data(NamedTuple):
    """The rounds of a log as the model sees them."""

    features: FeatureMap
    contexts: Believed
    arm: Ints  # (n,)
    reward: Array  # (n,)

    @property
    def rounds(self) -> int:
        """The number of rounds, n."""
        return len(self.arm)

    @property
    def has_intercept(self) -> bool:
        """Whether every arm has an intercept."""
        return isinstance(self.features, PerArm) and self.features.intercept

    @property
    def middle(self) -> float:
        """What rewards are centred on, so that sums lose no digits; 0 if no intercept can take it up."""
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
        nonzero = weight @ (rows != 0)
        return cls(
            len(rows),
            float(weight.sum()),
            float(paid.sum()),
            float(paid @ reward),
            weighed.sum(axis=0),
            rows.T @ paid,
            rows.T @ weighed,
            nonzero,
        )

    @classmethod
    def none(cls, size: int) -> "Sums":
        """The sums over no rounds, for `size` features."""
        zeros = np.zeros(size)
        return cls(0, 0.0, 0.0, 0.0, zeros, zeros, np.zeros((size, size)), zeros)

    def plus(self, other: "Sums") -> "Sums":
        """The sums over the rounds of both."""
        own: tuple[Any, ...] = self
        return Sums(*(a + theirs for a, theirs in zip(own, other, strict=True)))

    def less(self, other: "Sums") -> "Sums":
        """The sums over these rounds without the others, which are among them."""
        own: tuple[Any, ...] = self
        return Sums(*(a - theirs for a, theirs in zip(own, other, strict=True)))

    @property
    def size(self) -> Array:
        """The mean square of each feature over the rounds where it is not zero, (m,); 1 if it always is."""
        is_used = self.there > 0
        return np.where(is_used, np.diag(self.gram) / np.where(is_used, self.there, 1.0), 1.0)


class Model(NamedTuple):
    """A model fitted on some of the rounds."""

    theta: Array  # (m,)
    offset: float  # of rewards
    precision: Array  # (m, m)  sum w x x' + ridge S
    variance: float  # s^2

    def predict(self, data: Data, index: Ints) -> Array:
        """The expected reward of each arm in these rounds: (rounds, K)."""
        parts = [
            data.features.design(data.contexts.rows(part)).scores(self.theta) for part in in_parts(index)
        ]
        return self.offset + np.concat([np.zeros((0, data.features.arms)), *parts])

    def weights(self, data: Data, index: Ints) -> Array:
        """How much each round says about theta, relative to one whose context is known: (rounds,)."""
        if data.contexts.alike:
            return np.ones(len(index))
        root = np.linalg.inv(np.linalg.cholesky(self.precision)).T * np.sqrt(self.variance)
        belief = Gaussian(self.theta, root)
        hidden = [
            data.features.design(data.contexts.rows(part)).context_variance(belief, data.arm[part])
            for part in in_parts(index)
        ]
        return self.variance / (self.variance + np.concat([np.zeros(0), *hidden]))


class Fold(NamedTuple):
    """Rounds to fit a model on, and rounds to predict."""

    train: Ints  # in the order of time
    test: Ints

    def learns(self, block: Ints) -> bool:
        """Whether a model of this fold is fitted on the test rounds of another: on all of them or on none."""
        i = int(np.searchsorted(self.train, block[0]))
        return i < len(self.train) and bool(self.train[i] == block[0])


class Predicted(NamedTuple):
    """Predictions for all rounds, each by a model fitted on other rounds, and how uncertain they are."""

    rewards: Array  # (n, K)
    data: Data
    folds: list[Fold]
    models: list[Model]

    def of(self, policy: Array) -> Array:
        """The expected reward of a policy (n, K) in each round: (n,)."""
        return np.vecdot(policy, self.rewards)

    @property
    def counts(self) -> Array:
        """0 for the first few rounds, which have no past to be predicted from, 1 for all others: (n,)."""
        counts = np.ones(len(self.rewards))
        if not len(self.folds[0].train):
            counts[: min(FEW, len(counts) - 1)] = 0.0
        return counts

    def asked(self, contexts: Believed) -> Array:
        """Predictions of the same models for other beliefs about the contexts: (n, K)."""
        data = self.data._replace(contexts=contexts)
        pairs = zip(self.folds, self.models, strict=True)
        return np.concat([model.predict(data, fold.test) for fold, model in pairs])

    def wobble(self, policy: Array, corrected: Array | None = None) -> Array:
        """The influence of each round on the sum of scores through the models fitted on it: (n,).

        Scores are sum over arms of pi q, less q of the arm that was drawn times `corrected` (n,). A model is
        least squares, so round t with residual e moves that by u'x_t w_t e, u = (sum w x x' + ridge S)^-1 g,
        where g is the gradient of the sum of scores with respect to theta.
        """
        influence = np.zeros(len(policy))
        for fold, model in zip(self.folds, self.models, strict=True):
            if len(fold.train):
                rows = rows_of(self.data, fold.train)
                residual = self.data.reward[fold.train] - model.offset - rows @ model.theta
                reach = np.linalg.solve(model.precision, self._score_gradient(policy, corrected, fold))
                influence[fold.train] += (rows @ reach) * model.weights(self.data, fold.train) * residual
        return influence

    def _score_gradient(self, policy: Array, corrected: Array | None, fold: Fold) -> Array:
        """The gradient of the sum of scores over a fold with respect to theta: (m,)."""
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
    index = np.arange(rounds)
    for test in np.array_split(index, min(BLOCKS, rounds)):
        yield Fold(np.concat([index[: test[0]], index[test[-1] + 1 :]]), test)


def forward(rounds: int) -> Iterator[Fold]:
    """Each block from those before; short ones first, so that a model of few rounds is soon replaced."""
    index, least = np.arange(rounds), min(FIRST, rounds // 4)
    ends = [end for end in (round(share * rounds) for share in STEPS) if end >= least]
    for start, end in pairwise([0, *ends]):
        if end > start:
            yield Fold(index[:start], index[start:end])


def cross_fit(data: Data, folds: list[Fold]) -> Predicted:
    """Fit a model for each fold and predict its test rounds."""
    alike = data.contexts.alike
    models = _fit_by_blocks(data, folds) if alike else [fit(data, fold.train) for fold in folds]
    parts = [
        model.predict(data, fold.test) if len(fold.train) else _mean_so_far(data, fold)
        for fold, model in zip(folds, models, strict=True)
    ]
    return Predicted(np.concat(parts), data, folds, models)


def _mean_so_far(data: Data, fold: Fold) -> Array:
    """Predictions before there is a model: the mean of the rewards so far, for every arm."""
    before = np.cumsum(data.reward[fold.test]) - data.reward[fold.test]
    mean = before / np.maximum(np.arange(len(fold.test)), 1)
    return np.repeat(mean[:, None], data.features.arms, axis=1)


def _fit_by_blocks(data: Data, folds: list[Fold]) -> list[Model]:
    """Fit all models if rounds have equal weights: each block is summed once, and sums are added."""
    sums = [sum_rounds(data, fold.test) for fold in folds]
    return [
        solve_model(
            data,
            reduce(
                Sums.plus,
                [
                    block_sums
                    for block_sums, block in zip(sums, folds, strict=True)
                    if fold.learns(block.test)
                ],
                Sums.none(data.features.size),
            ),
        )
        for fold in folds
    ]


def fit(data: Data, index: Ints) -> Model:
    """Fit a model on these rounds, of which there may be none."""
    if data.contexts.alike or not len(index):
        return solve_model(data, sum_rounds(data, index))
    rows, paid = rows_of(data, index), data.reward[index] - data.middle
    model = solve_model(data, Sums.of(rows, paid, np.ones(len(index))))
    for _ in range(PASSES):
        model = solve_model(data, Sums.of(rows, paid, model.weights(data, index)))
    return model


def sum_rounds(data: Data, index: Ints) -> Sums:
    """The sums over these rounds, with equal weights."""
    total = Sums.none(data.features.size)
    for part in in_parts(index):
        paid = data.reward[part] - data.middle
        total = total.plus(Sums.of(rows_of(data, part), paid, np.ones(len(part))))
    return total


def solve_model(data: Data, sums: Sums) -> Model:
    """The least-squares model from sums over rounds."""
    if not sums.rounds:
        return Model(np.zeros(len(sums.paid)), 0.0, RIDGE * np.eye(len(sums.paid)), 1.0)
    offset = sums.reward / sums.weight if data.has_intercept else 0.0
    paid = sums.paid - offset * sums.rows
    squares = sums.squares - offset * (2 * sums.reward - offset * sums.weight)
    precision = sums.gram + np.diag(RIDGE * sums.size)
    theta: Array = np.linalg.solve(precision, paid).astype(np.float64)
    residual = float(
        squares - 2 * theta @ paid + theta @ sums.gram @ theta
    )  # the sum of w e^2, whose mean is s^2
    variance = max(residual / sums.rounds, np.finfo(float).tiny)
    return Model(theta, data.middle + offset, precision, variance)


def rows_of(data: Data, index: Ints) -> Array:
    """The expected features of the arms that were drawn: (rounds, m)."""
    parts = [data.features.design(data.contexts.rows(part)).row(data.arm[part]) for part in in_parts(index)]
    return np.concat([np.zeros((0, data.features.size)), *parts])


def in_parts(index: Ints) -> Iterator[Ints]:
    """Split an index into parts of bounded size, so that memory is bounded."""
    yield from (index[start : start + ROWS] for start in range(0, len(index), ROWS))
