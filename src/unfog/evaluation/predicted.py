"""What a model of rewards says of every round that it has not seen, and how sure that is."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from unfog.evaluation.contexts import Believed
from unfog.evaluation.folds import Fold
from unfog.evaluation.model import Data, Model, fit, in_parts, rows_of, solved, summed
from unfog.evaluation.sums import Sums
from unfog.maths.arrays import Array


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
    def fitted(self) -> Array:
        """One for rounds of which a model speaks that has seen others, zero for the rest: (n,)."""
        said = [np.full(len(fold.test), float(len(fold.train) > 0)) for fold in self.folds]
        return np.concat(said)

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
    parts = [model.predict(data, fold.test) for fold, model in zip(folds, models, strict=True)]
    return Predicted(np.concat(parts), data, folds, models)


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
