"""Epsilon-greedy: any arm with probability epsilon_t, else the arm with the largest expected score.

epsilon_t = epsilon / t^decay with rounds t = 1, 2, .... R. S. Sutton and A. G. Barto, *Reinforcement
Learning: An Introduction*; with decay 1, P. Auer, N. Cesa-Bianchi and P. Fischer, *Finite-time Analysis of
the Multiarmed Bandit Problem*.
"""

from dataclasses import dataclass

from unfog import inputs
from unfog.agents.choose.greedy import best
from unfog.agents.choose.ucb import rounds_so_far
from unfog.features import Design
from unfog.inputs import InputError
from unfog.maths.arrays import Array, Ints
from unfog.maths.blocks import Belief
from unfog.maths.normal import uniforms
from unfog.model.knowledge import Knowledge


@dataclass(frozen=True, kw_only=True)
class Epsilon:
    """Its settings: `epsilon` is the probability of the first round, `decay` how fast it falls."""

    epsilon: float = 0.05
    decay: float = 0.0

    odds = "exact"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_probability("epsilon", self.epsilon)
        inputs.not_negative("decay", self.decay)

    def normals(self, known: Knowledge) -> int:
        """Whether to explore, and which arm: two."""
        return 2

    def choose(self, design: Design, belief: Belief, normals: Array, number: Ints | None = None) -> Ints:
        """The best arm, or any."""
        xp = normals.__array_namespace__()
        scores = design.scores(belief.centre)
        coin, place = uniforms(normals)
        arms = scores.shape[-1]
        anyone = xp.minimum(xp.floor(place * arms), arms - 1)
        arm = best(scores)
        found: Ints = xp.where(coin < self._share(number, normals), anyone.astype(arm.dtype), arm)
        return found

    def probability(
        self, design: Design, belief: Belief, arm: Ints, draws: Array, number: Ints | None = None
    ) -> Array:
        """Its part of the exploration, and the rest for the best arm."""
        scores = design.scores(belief.centre)
        share = self._share(number, draws)
        found: Array = share / scores.shape[-1] + (1 - share) * (best(scores) == arm)
        return found.astype(draws.dtype)

    def _share(self, number: Ints | None, like: Array) -> Array:
        """The probability of exploring: (...,)."""
        xp = like.__array_namespace__()
        if self.decay == 0:
            return xp.asarray(self.epsilon, dtype=like.dtype)
        return self.epsilon / rounds_so_far(number, like) ** self.decay


def check_probability(field: str, value: object) -> float:
    """A number from zero to one."""
    allowed = "a number, at least 0 and at most 1"
    try:
        share = inputs.not_negative(field, value)
    except InputError:
        raise InputError(field, repr(value), allowed) from None
    if share > 1:
        raise InputError(field, repr(value), allowed)
    return share
