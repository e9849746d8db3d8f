"""Thompson sampling: draw theta from the belief and take the arm that is best for it.

W. R. Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two
Samples*; for linear rewards D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling* (the
posterior as it is, without inflation).
"""

from dataclasses import dataclass

from unfog.agents.choose.greedy import best
from unfog.agents.parts import Chooser, View
from unfog.maths.arrays import Array, Ints
from unfog.model.knowledge import Knowledge


@dataclass(frozen=True, kw_only=True)
class Thompson(Chooser):
    """It has no settings."""

    name = "thompson"
    note = "the best arm of one draw of theta"

    def normals(self, known: Knowledge) -> int:
        """One draw of theta: m."""
        return known.prior_mean.shape[-1]

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest score under one draw of theta."""
        return best(view.among(view.design.scores(view.belief.sample(normals))))
