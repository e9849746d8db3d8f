"""Candidates: how they are weighed by rewards, and the mixture of what they believe.

Before a reward r is learnt from, each candidate j has predicted it with a mean m_j and a variance v_j. Its
weight is multiplied by the density of Student's t with 5 degrees of freedom,

    w_j <- w_j p_j,   p_j = v_j^-1/2 (1 + (r - m_j)^2 / (5 v_j))^-3,   w_j <- (1 - s) w_j / sum w + s / J

up to a constant. Such a density is proper, and what one absurd reward can do is bounded. The share s goes
back to all, so that a candidate that is right from some time on is found (M. Herbster and M. K. Warmuth,
*Tracking the Best Expert*). In a choice, candidates below a hundredth of the largest weight count as nothing.
"""

from unfog.features import Context
from unfog.maths.arrays import Array, Bools

LEAST = 0.01  # of the largest weight
FREEDOM = 5.0  # degrees of freedom
RETURNED = 0.001  # s


def weigh(log_weights: Array, mean: Array, variance: Array, reward: Array, counts: Bools) -> Array:
    """Logarithms of the weights (..., J) after a reward that was predicted so, if it `counts`."""
    xp = reward.__array_namespace__()
    density = -0.5 * xp.log(variance)
    density = density - 0.5 * (FREEDOM + 1) * xp.log1p((reward - mean) ** 2 / (variance * FREEDOM))
    after = log_weights + xp.where(counts, density, 0.0)
    relative = xp.exp(after - after.max(-1)[..., None])
    shares = relative / relative.sum(-1)[..., None]
    weights: Array = xp.log((1 - RETURNED) * shares + RETURNED / shares.shape[-1])
    return weights


def shares(log_weights: Array) -> Array:
    """The weights of candidates in a choice, (..., J): they add up to one."""
    xp = log_weights.__array_namespace__()
    relative = xp.exp(log_weights - log_weights.max(-1)[..., None])
    relative = xp.where(relative < LEAST, 0.0, relative)
    weights: Array = relative / relative.sum(-1)[..., None]
    return weights


def mix_moments(weights: Array, mean: Array, variance: Array, axis: int) -> tuple[Array, Array]:
    """Mean and variance of a mixture along an axis; the weights add up to one along it."""
    xp = mean.__array_namespace__()
    centre = (weights * mean).sum(axis)
    within = variance + (mean - xp.expand_dims(centre, axis=axis)) ** 2
    return centre, (weights * within).sum(axis)


def mix_contexts(weights: Array, context: Context) -> Context:
    """The moments of the beliefs (..., J, d) about a context, over all candidates."""
    mean = (weights[..., None] * context.mean).sum(-2)
    apart = context.mean - mean[..., None, :]
    spread = context.cov + apart[..., :, None] * apart[..., None, :]
    return Context(mean, (weights[..., None, None] * spread).sum(-3))
