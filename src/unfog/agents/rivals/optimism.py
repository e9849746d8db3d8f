"""Optimism: the arm with the largest psi(a)'E[theta] + alpha sd(psi(a)'theta).

With a belief N(theta_hat, beta^2 V^-1) and alpha = 1 this is argmax psi(a)'theta_hat + beta |psi(a)|_{V^-1}:
the best arm of the best theta in the ellipsoid.
"""

from dataclasses import dataclass

from unfog import inputs
from unfog.agents.choose.greedy import alone, best, both, for_all
from unfog.agents.choose.ucb import moments
from unfog.agents.parts import Chooser, View
from unfog.maths.arrays import Array, Ints
from unfog.model.knowledge import Knowledge


@dataclass(frozen=True, kw_only=True)
class Optimism(Chooser):
    """Its setting: how many deviations are added."""

    alpha: float = 1.0

    name = "optimism"
    note = "the largest mean and so many deviations"
    propensity = "exact"

    def __post_init__(self) -> None:
        """Check the setting."""
        inputs.not_negative("alpha", self.alpha)

    def normals(self, known: Knowledge) -> int:
        """None."""
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest bound."""
        return for_all(best(self.bounds(view)), normals)

    def probabilities(self, view: View, draws: Array) -> Array:
        """One for the arm that is chosen, and zero for the others."""
        return alone(self.bounds(view), draws)

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """Both, with every bound worked out once."""
        return both(self.bounds(view), normals, draws)

    def bounds(self, view: View) -> Array:
        """The upper bound of the score of every arm that may be chosen: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        return view.among(mean + self.alpha * xp.sqrt(variance))
