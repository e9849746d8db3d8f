"""What a score phi(a, c)'theta* means for the reward: its mean, and its mean where the context is believed.

Two kinds: "gaussian", where the mean reward is the score itself, and "bernoulli", where it is the sigmoid of
the score. The kind decides which learners serve (agents/catalogue.py) and how regret is reckoned
(theory/regret.py).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from unfog.maths.arrays import Array, Ints, pick
from unfog.maths.logistic import NODES, sigmoid

KINDS = ("gaussian", "bernoulli")

Values: TypeAlias = Callable[[Ints], Array]
"""The mean reward of a chosen arm, (...,) -> (...,), under one belief about the context."""


class Law(Protocol):
    """The law of one score under a belief about the context."""

    def expected_sigmoid(self, nodes: int = NODES) -> Array:
        """E[sigmoid(score)], (...,)."""
        ...


class Laws(Protocol):
    """The laws of all arms' scores; what they share is worked out once."""

    def of(self, arm: Ints) -> Law:
        """The law of the chosen arm's score."""
        ...


class Scored(Protocol):
    """Anything that knows the laws of scores: a design."""

    def laws(self, theta: Array) -> Laws:
        """The laws of the scores phi(a, c)'theta: theta (..., m)."""
        ...


class Rewards(Protocol):
    """How rewards depend on scores."""

    @property
    def kind(self) -> str:
        """One of KINDS."""
        ...

    def mean(self, scores: Array) -> Array:
        """The mean reward at a known context; it grows with the score."""
        ...

    def values(self, design: Scored, theta: Array, scores: Array) -> Values:
        """Mean rewards under the belief of a design, whose scores at this theta are given: (..., K)."""
        ...


class Identity(NamedTuple):
    """The mean reward is the score, so that its expectation is the expected score."""

    kind: str = "gaussian"

    def mean(self, scores: Array) -> Array:
        """The score itself."""
        return scores

    def values(self, design: Scored, theta: Array, scores: Array) -> Values:  # noqa: ARG002
        """The expected score."""
        return partial(pick, scores)


class Sigmoid(NamedTuple):
    """The mean reward is sigmoid(score): a probability."""

    kind: str = "bernoulli"
    nodes: int = NODES

    def mean(self, scores: Array) -> Array:
        """The probability of a reward."""
        return sigmoid(scores)

    def values(self, design: Scored, theta: Array, scores: Array) -> Values:  # noqa: ARG002
        """The probability of a reward, averaged over the context: not the sigmoid of the average."""
        return partial(self._averaged, design.laws(theta))

    def _averaged(self, laws: Laws, arm: Ints) -> Array:
        return laws.of(arm).expected_sigmoid(self.nodes)
