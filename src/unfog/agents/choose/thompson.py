"""Thompson sampling: draw theta from the belief and take the arm that is best for it.

W. R. Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two
Samples*; for linear rewards D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling* (the
posterior as it is, without inflation).
"""

from unfog.features import Design
from unfog.maths.arrays import Array, Ints
from unfog.maths.blocks import Belief
from unfog.model.knowledge import Knowledge

odds = "estimated"


def normals(known: Knowledge) -> int:
    """One draw of theta: m."""
    return known.prior_mean.shape[-1]


def choose(design: Design, belief: Belief, normals: Array, number: Ints | None = None) -> Ints:
    """The arm with the largest score under one draw of theta."""
    xp = normals.__array_namespace__()
    arm: Ints = xp.argmax(design.scores(belief.sample(normals)), -1)
    return arm


def probability(design: Design, belief: Belief, arm: Ints, draws: Array, number: Ints | None = None) -> Array:
    """The share of the draws (n, ..., m) for which this arm is best."""
    xp = draws.__array_namespace__()
    agree = xp.stack([choose(design, belief, normals) == arm for normals in draws])
    found: Array = agree.astype(draws.dtype).mean(0)
    return found
