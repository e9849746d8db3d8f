"""Greedy: the arm with the largest expected score, argmax_a psi(a)'E[theta].

It never explores on purpose; that contexts differ from round to round may be exploration enough (H. Bastani,
M. Bayati and K. Khosravi, *Mostly Exploration-Free Algorithms for Contextual Bandits*).
"""

from dataclasses import dataclass

from unfog.agents.parts import Chooser, View
from unfog.maths.arrays import Array, Ints
from unfog.model.knowledge import Knowledge


@dataclass(frozen=True, kw_only=True)
class Greedy(Chooser):
    """It has no settings."""

    name = "greedy"
    note = "the largest expected score"
    propensity = "exact"

    def normals(self, known: Knowledge) -> int:
        """None."""
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest expected score."""
        return for_all(best(expected(view)), normals)

    def probabilities(self, view: View, draws: Array) -> Array:
        """One for the arm that is chosen, and zero for the others."""
        return alone(expected(view), draws)

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """Both, with every score worked out once."""
        return both(expected(view), normals, draws)


def expected(view: View) -> Array:
    """The expected score of every arm that may be chosen: (..., K)."""
    return view.among(view.design.scores(view.belief.centre))


def best(values: Array) -> Ints:
    """The arm with the largest value, the first of equals: (..., K) -> (...,)."""
    arm: Ints = values.argmax(-1)
    return arm


def for_all(arm: Ints, normals: Array) -> Ints:
    """The arm for every trial: in a first round trials may share all that decides, but not their normals."""
    xp = normals.__array_namespace__()
    return arm + xp.zeros(normals.shape[:-1], dtype=arm.dtype)


def alone(values: Array, draws: Array) -> Array:
    """All of the probability on the arm with the largest value: (..., K) -> (..., K)."""
    xp = draws.__array_namespace__()
    found: Array = (xp.arange(values.shape[-1]) == best(values)[..., None]).astype(draws.dtype)
    return found


def both(values: Array, normals: Array, draws: Array) -> tuple[Ints, Array]:
    """The arm with the largest value for every trial, and all of the probability on it."""
    return for_all(best(values), normals), alone(values, draws)
