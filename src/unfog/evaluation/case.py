"""One policy on one log: what an estimator looks at, and what it answers.

The weight of a round is w = pi(a) / p(a): with which probability the policy takes the arm that was drawn,
over that with which the logger drew it. An estimate is a ratio of sums over rounds,

    V = sum h num / sum h den,

with weights h of time (evaluation/intervals.py), and den = 1 but for self-normalised estimators.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

from unfog.evaluation.predicted import Predicted
from unfog.maths.arrays import Array, Ints, pick


class Case:
    """What is known of the rounds, and of the policy in them."""

    def __init__(
        self,
        policy: Array,
        arm: Ints,
        reward: Array,
        probability: Array,
        predicted: Callable[[], Predicted],
    ) -> None:
        """`policy` (n, K): with which probability it takes each arm; the model is fitted when asked for."""
        self.policy, self.arm, self.reward, self._predicted = policy, arm, reward, predicted
        self.weight: Array = pick(policy, arm) / probability  # (n,)

    @cached_property
    def predicted(self) -> Predicted:
        """What a model of rewards says, that has not seen these rewards."""
        return self._predicted()

    @cached_property
    def baseline(self) -> Array:
        """What the model says that the policy earns in each round: sum over arms of pi q, (n,)."""
        return self.predicted.of(self.policy)

    @cached_property
    def surprise(self) -> Array:
        """By how much each reward was other than the model said, (n,)."""
        return self.reward - pick(self.predicted.rewards, self.arm)


class Scores(NamedTuple):
    """An estimate, round by round."""

    numerator: Array  # (n,)
    denominator: Array | None = None  # (n,)  None: ones
    wobble: Array | None = None  # (n,)  what its model would be off by for each round, in the sum of scores
    note: str = ""  # what was chosen on the way, for people


class Estimator(Protocol):
    """How the value of a policy is estimated."""

    @property
    def name(self) -> str:
        """As it is asked for."""
        ...

    @property
    def note(self) -> str:
        """What it does, and what it needs, in a line."""
        ...

    def scores(self, case: Case) -> Scores:
        """Round by round."""
        ...
