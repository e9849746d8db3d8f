"""A context seen through a channel whose bias is known: c ~ N(mu_c, Sigma_c), chat = c + gamma + n.

The posterior of c is N(A, M^-1) in the paper's letters; without its inverses A = mu_c + B (chat - mu_c -
gamma) and M^-1 = Sigma_c - B Sigma_c, with B = Sigma_c (Sigma_c + Sigma_n)^-1. Where only some coordinates of
chat were measured, the same holds with the rows and columns of the others left out: a mask of ones and zeros
does that without changing shapes, so that every trial of a batch may miss others.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, matvec
from unfog.maths.small import inverse, product
from unfog.model.knowledge import Knowledge


class Shrinkage(NamedTuple):
    """The posterior of c given chat when the bias is known."""

    mean: Array  # (d,)    mu_c
    gain: Array  # (..., d, d)  B
    cov: Array  # (..., d, d)  M^-1


def shrinkage(mean: Array, context_cov: Array, noise_cov: Array) -> Shrinkage:
    """The gain and the covariance that is left."""
    xp = context_cov.__array_namespace__()
    gain = xp.linalg.solve(context_cov + noise_cov, context_cov).mT
    return Shrinkage(mean, gain, context_cov - gain @ context_cov)


def posterior_mean(shrinkage: Shrinkage, noisy: Array, bias: Array) -> Array:
    """The mean A of the context, were the bias this."""
    return shrinkage.mean + matvec(shrinkage.gain, noisy - shrinkage.mean - bias)


def masked_inverse(cov: Array, mask: Array) -> Array:
    """The inverse of the covariance of the measured coordinates, zero for the others: mask (..., d)."""
    xp = cov.__array_namespace__()
    both = mask[..., :, None] * mask[..., None, :]
    eye = xp.eye(cov.shape[-1], dtype=cov.dtype)
    found: Array = both * inverse(both * cov + (1 - mask)[..., None] * eye)
    return found


def masked_shrinkage(mean: Array, context_cov: Array, noise_cov: Array, mask: Array) -> Shrinkage:
    """With only the coordinates measured whose mask is 1; what stands in for the others does not matter."""
    gain = product(context_cov, masked_inverse(context_cov + noise_cov, mask))
    return Shrinkage(mean, gain, context_cov - product(gain, context_cov))


def as_told(known: Knowledge) -> Shrinkage:
    """With the channel as agents are told of it."""
    return shrinkage(known.context_mean, known.context_cov, known.noise_cov)
