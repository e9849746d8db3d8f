"""contextualbandits behind a denoiser: the policies it learns with round by round; `X` are rows of numbers.

Its linear policies have an intercept of their own (`fit_intercept=True`).
"""

# ruff: noqa: N802, N803 (names of the library)

from typing import Any

from unfog import validation
from unfog.adapters.libraries.tables import Table
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.validation import InputError


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
        with self.way.learning("X", X, noise_cov, groups, afresh=True) as rows:
            self.bandit.fit(rows, a, r, *args, **options)
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
        with self.way.learning("X", X, noise_cov, groups) as rows:
            self.bandit.partial_fit(rows, a, r)
        return self

    def predict(self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """An arm for each row."""
        with self.way.deciding("X", X, noise_cov, groups) as rows:
            return self.bandit.predict(rows, *args, **options)

    def topN(self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """The best arms for each row."""
        with self.way.deciding("X", X, noise_cov, groups) as rows:
            return self.bandit.topN(rows, *args, **options)

    # No further arguments by name: the policies do not agree on them.
    def decision_function(
        self, X: Any, *args: Any, noise_cov: Any = None, groups: Any = None, **options: Any
    ) -> Any:
        """The score of each arm for each row."""
        rows = self.way.asking("X", X, noise_cov, groups)
        return self.bandit.decision_function(rows, *args, **options)

    def decision_function_std(self, X: Any, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """The scores of `SeparateClassifiers`, made comparable."""
        return self.bandit.decision_function_std(self.way.asking("X", X, noise_cov, groups))

    def predict_proba_separate(self, X: Any, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """The probabilities of `SeparateClassifiers`."""
        return self.bandit.predict_proba_separate(self.way.asking("X", X, noise_cov, groups))


def wrapped(bandit: Any, table: Table) -> ContextualBandits:
    """A policy that learns; its estimators for logs take probabilities besides, and are something else."""
    if "_BasePolicy" not in (kind.__name__ for kind in type(bandit).__mro__):
        allowed = "a policy of contextualbandits, such as LinTS or LinUCB"
        raise InputError("bandit", validation.shown(bandit), allowed)
    return ContextualBandits(bandit, table)
