"""What a model of rewards says of every round that it has not seen, and how sure that is."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from unfog.evaluation.contexts import Believed
from unfog.evaluation.folds import Fold
from unfog.evaluation.model import Data, Model, fit, in_parts, rows_of, solved, summed
from unfog.evaluation.sums import Sums
from unfog.maths.arrays import Array

FEW = 5  # rounds whose mean is taken for that of rewards; those before do not count


class Predicted(NamedTuple):
    """Of all rounds, each from a model of others."""

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


def predicted(data: Data, folds: list[Fold]) -> Predicted:
    """Fold by fold."""
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
