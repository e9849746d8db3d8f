"""mabwiser behind a denoiser: a `MAB` whose policy is contextual; `contexts` are rows of numbers.

Its linear policies have no intercept of their own: give them a column of ones, and name it in `as_is`.
"""

from typing import Any

from unfog import validation
from unfog.adapters.libraries.tables import Table
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.validation import InputError


class Mabwiser(Wrapped[Table]):
    """`mabwiser.mab.MAB`, its verbs and their order of arguments."""

    def fit(
        self, decisions: Any, rewards: Any, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None
    ) -> None:
        """Start afresh from these rounds."""
        if contexts is None:
            self.bandit.fit(decisions, rewards)  # the library says itself what is wrong
            return
        with self.way.learning("contexts", contexts, noise_cov, groups, afresh=True) as rows:
            self.bandit.fit(decisions, rewards, rows)

    def partial_fit(
        self, decisions: Any, rewards: Any, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None
    ) -> None:
        """Learn from more rounds."""
        if contexts is None:
            self.bandit.partial_fit(decisions, rewards)
            return
        with self.way.learning("contexts", contexts, noise_cov, groups) as rows:
            self.bandit.partial_fit(decisions, rewards, rows)

    def predict(self, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """An arm for each row: one where there is one row, a list where there are more."""
        if contexts is None:
            return self.bandit.predict()
        with self.way.deciding("contexts", contexts, noise_cov, groups) as rows:
            return self.bandit.predict(rows)

    def predict_expectations(self, contexts: Any = None, *, noise_cov: Any = None, groups: Any = None) -> Any:
        """A dictionary from arms to expected rewards for each row."""
        if contexts is None:
            return self.bandit.predict_expectations()
        return self.bandit.predict_expectations(self.way.asking("contexts", contexts, noise_cov, groups))


def wrapped(bandit: Any, table: Table) -> Mabwiser:
    """A `MAB` that asks for contexts."""
    if not vars(bandit).get("is_contextual", False):
        allowed = "a mabwiser.mab.MAB with a contextual policy, such as LearningPolicy.LinTS"
        raise InputError("bandit", validation.shown(bandit), allowed)
    return Mabwiser(bandit, table)
