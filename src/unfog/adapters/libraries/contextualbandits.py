"""contextualbandits behind a denoiser: the policies it learns with round by round; `X` are rows of numbers.

Its linear policies have an intercept of their own (`fit_intercept=True`).
"""

# ruff: noqa: N802, N803 (names of the library)

from typing import Any

from unfog import inputs
from unfog.adapters.libraries.tables import Table
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.inputs import InputError


class ContextualBandits(Wrapped[Table]):
    """A policy with `fit`, `partial_fit` and `predict`, and what else of it takes `X`."""

    def fit(
        self,
        X: Any,
        a: Any,
        r: Any,
        *args: Any,
        noise_cov: Any = None,
        groups: Any = None,
        **options: Any,
    ) -> "ContextualBandits":
        """Learn from these rounds, afresh unless told otherwise."""
        self.bandit.fit(self.way.learn("X", X, noise_cov, groups), a, r, *args, **options)
        return self

    def partial_fit(
        self,
        X: Any,
        a: Any,
        r: Any,
        *,
        noise_cov: Any = None,
        groups: Any = None,
    ) -> "ContextualBandits":
        """Learn from more rounds."""
        self.bandit.partial_fit(self.way.learn("X", X, noise_cov, groups), a, r)
        return self

    def predict(self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """An arm for each row."""
        return self.bandit.predict(self.way.decide("X", X, noise_cov, groups), *args, **options)

    # No signatures of their own: the policies do not agree on them.
    def decision_function(self, X: Any, *args: Any, **options: Any) -> Any:
        """The score of each arm for each row."""
        return self.bandit.decision_function(self.way.decide("X", X, None, None), *args, **options)

    def topN(self, X: Any, *args: Any, **options: Any) -> Any:
        """The best arms for each row."""
        return self.bandit.topN(self.way.decide("X", X, None, None), *args, **options)

    def decision_function_std(self, X: Any) -> Any:
        """The scores of `SeparateClassifiers`, made comparable."""
        return self.bandit.decision_function_std(self.way.decide("X", X, None, None))

    def predict_proba_separate(self, X: Any) -> Any:
        """The probabilities of `SeparateClassifiers`."""
        return self.bandit.predict_proba_separate(self.way.decide("X", X, None, None))


def wrapped(bandit: Any, table: Table) -> ContextualBandits:
    """A policy that learns; its estimators for logs take probabilities besides, and are something else."""
    if "_BasePolicy" not in (kind.__name__ for kind in type(bandit).__mro__):
        allowed = "a policy of contextualbandits, such as LinTS or LinUCB"
        raise InputError("bandit", inputs.shown(bandit), allowed)
    return ContextualBandits(bandit, table)
