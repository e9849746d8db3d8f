"""The chooser of rivals that are optimistic."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.choose.largest import Largest
from unfog.agents.choose.ucb import moments
from unfog.agents.parts import View
from unfog.maths.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Optimism(Largest):
    """Optimism: the arm with the largest psi(a)'E[theta] + alpha sd(psi(a)'theta).

    With a belief N(theta_hat, beta^2 V^-1) and alpha = 1 this is argmax psi(a)'theta_hat + beta
    |psi(a)|_{V^-1}: the best arm of the best theta in the ellipsoid.

    Settings
    --------
    How many deviations are added.
    """

    alpha: float = 1.0

    name = "optimism"
    note = "the largest mean and so many deviations"

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.not_negative("alpha", self.alpha)

    def bounds(self, view: View) -> Array:
        """The upper bound of the score of every arm that may be chosen: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        return view.among(mean + self.alpha * xp.sqrt(variance))
