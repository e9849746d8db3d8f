"""bayesianbandits behind a denoiser: its contextual agents; `X` are rows of numbers.

Its regressors have no intercept of their own: give them a column of ones, and name it in `as_is`.
"""

# ruff: noqa: N803 (names of the library)

from typing import Any

from unfog import validation
from unfog.adapters.libraries.tables import Table
from unfog.adapters.libraries.wrapped import Wrapped
from unfog.validation import InputError


class BayesianBandits(Wrapped[Table]):
    """An agent, its verbs; `decay` and the arms have no context, and are the agent's own."""

    def pull(self, X: Any, *, noise_cov: Any = None, groups: Any = None, **options: Any) -> Any:
        """The action of an arm for each row."""
        with self.way.deciding("X", X, noise_cov, groups) as rows:
            return self.bandit.pull(rows, **options)

    def select_for_update(self, token: Any) -> "BayesianBandits":
        """The arm to be updated next; the wrapped agent again, so that `update` is denoised too."""
        self.bandit.select_for_update(token)
        return self

    def update(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        noise_cov: Any = None,
        groups: Any = None,
    ) -> None:
        """Learn from rewards of the arm to be updated."""
        with self.way.learning("X", X, noise_cov, groups) as rows:
            self.bandit.update(rows, y, sample_weight=sample_weight)


def wrapped(bandit: Any, table: Table) -> BayesianBandits:
    """An agent that asks for contexts."""
    if not {"ContextualAgent", "LipschitzContextualAgent"} & {kind.__name__ for kind in type(bandit).__mro__}:
        allowed = "bayesianbandits' ContextualAgent or LipschitzContextualAgent"
        raise InputError("bandit", validation.shown(bandit), allowed)
    return BayesianBandits(bandit, table)
