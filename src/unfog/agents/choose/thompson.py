"""Thompson sampling: draw theta from the belief and take the arm that is best for it.

W. R. Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two
Samples*; for linear rewards D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling* (the
posterior as it is, without inflation).
"""

from dataclasses import dataclass

from unfog.agents.choose.greedy import alone, best
from unfog.agents.parts import Chooser, View
from unfog.maths.arrays import Array, Ints
from unfog.model.knowledge import Knowledge


@dataclass(frozen=True, kw_only=True)
class Thompson(Chooser):
    """It has no settings."""

    name = "thompson"
    note = "the best arm of one draw of theta"
    propensity = "estimated"

    def normals(self, known: Knowledge) -> int:
        """One draw of theta: m."""
        return known.prior_mean.shape[-1]

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest score under one draw of theta."""
        return best(_scores(view, normals))

    def probabilities(self, view: View, draws: Array) -> Array:
        """The shares of the draws (n, ..., m) for which each arm is best."""
        xp = draws.__array_namespace__()
        found: Array = xp.stack([alone(_scores(view, normals), draws) for normals in draws]).mean(0)
        return found


def _scores(view: View, normals: Array) -> Array:
    """Scores under one draw of theta, of every arm that may be chosen: (..., K)."""
    return view.among(view.design.scores(view.belief.sample(normals)))
