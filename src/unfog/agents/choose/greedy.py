"""Greedy: the arm with the largest expected score, argmax_a psi(a)'E[theta].

It never explores on purpose; that contexts differ from round to round may be exploration enough (H. Bastani,
M. Bayati and K. Khosravi, *Mostly Exploration-Free Algorithms for Contextual Bandits*).
"""

from dataclasses import dataclass

from unfog.features import Design
from unfog.maths.arrays import Array, Ints
from unfog.maths.blocks import Belief
from unfog.model.knowledge import Knowledge


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """It has no settings."""

    odds = "exact"

    def normals(self, known: Knowledge) -> int:
        """None."""
        return 0

    def choose(self, design: Design, belief: Belief, normals: Array, number: Ints | None = None) -> Ints:
        """The arm with the largest expected score."""
        return for_all(best(design.scores(belief.centre)), normals)

    def probability(
        self, design: Design, belief: Belief, arm: Ints, draws: Array, number: Ints | None = None
    ) -> Array:
        """One for the arm that is chosen, and zero for the others."""
        found: Array = (best(design.scores(belief.centre)) == arm).astype(draws.dtype)
        return found


def best(values: Array) -> Ints:
    """The arm with the largest value, the first of equals: (..., K) -> (...,)."""
    xp = values.__array_namespace__()
    arm: Ints = xp.argmax(values, -1)
    return arm


def for_all(arm: Ints, normals: Array) -> Ints:
    """The arm for every trial: in a first round trials may share all that decides, but not their normals."""
    xp = normals.__array_namespace__()
    return arm + xp.zeros(normals.shape[:-1], dtype=arm.dtype)
