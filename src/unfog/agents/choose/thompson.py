"""Thompson sampling: draw theta from the belief and take the arm that is best for it.

W. R. Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two
Samples*; for linear rewards D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling* (the
posterior as it is, without inflation).
"""

from unfog.arrays import Array, Ints
from unfog.blocks import Belief
from unfog.features import Design
from unfog.knowledge import Knowledge


def normals(known: Knowledge) -> int:
    """One draw of theta: m."""
    return known.prior_mean.shape[-1]


def choose(design: Design, belief: Belief, normals: Array) -> Ints:
    """The arm with the largest score under one draw of theta."""
    xp = normals.__array_namespace__()
    arm: Ints = xp.argmax(design.scores(belief.sample(normals)), -1)
    return arm
