"""What an agent knows before the first round, and the posterior of a context when the bias is known.

`Knowledge` holds distributions and priors, never a draw from them.

A context is seen as chat = c + gamma + n with c ~ N(mu_c, Sigma_c) and n ~ N(0, Sigma_n). Where the bias
gamma is known, the posterior of c is N(A, M^-1) in the paper's letters; without its inverses A = mu_c + B
(chat - mu_c - gamma) and M^-1 = Sigma_c - B Sigma_c, with B = Sigma_c (Sigma_c + Sigma_n)^-1. If only some
coordinates of chat were measured, the same holds without the rows and columns of the others: a mask of ones
and zeros does that without changing shapes, so that each trial of a batch may lack different ones.

A coordinate that is measured exactly has noise and bias of variance 0. No denoiser divides by it: to agents a
variance of noise or bias is at least LEAST and at most MOST of that of contexts (`limit_cov`). Beyond these
limits beliefs differ in digits that sums of covariances lose to rounding anyway.
"""

from typing import NamedTuple

from unfog.channel.dynamics import Dynamics
from unfog.maths.arrays import Array, diagonal_matrix, matvec
from unfog.maths.linalg import inverse, product
from unfog.maths.mixture import Mixture

BEYOND = (
    "contexts",
    "sample",
    "mixture",
    "dynamics",
)  # what agents may be told of contexts besides their moments


LEAST, MOST = 1e-10, 1e10  # of the variances of contexts


class Knowledge(NamedTuple):
    """The context's law, the channel, and the priors of one problem.

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.channel.knowledge import Knowledge
    >>> one = np.ones((1, 1))
    >>> known = Knowledge(np.array([7.0]), 4 * one, 1 * one, 5 * one, prior_mean=np.zeros(1), prior_cov=one)
    >>> known.noise_cov.tolist(), known.beyond_moments
    ([[1.0]], ())
    >>> unfog.GaussianProblem(dim=2, actions=5).knowledge().context_mean.tolist()  # what a problem tells
    [0.0, 0.0]
    """

    context_mean: Array  # (d,)     mu_c
    context_cov: Array  # (d, d)   Sigma_c
    noise_cov: Array  # (d, d)   Sigma_n
    bias_cov: Array  # (d, d)   Sigma_gamma
    prior_mean: Array  # (m,)     of theta
    prior_cov: Array  # (m, m)   of theta, or (K, k, k): independent blocks
    reward_var: Array | None = None  # ()  sigma^2, if rewards have a single variance
    contexts: Array | None = None  # (n, d)  all contexts there are, with equal probabilities
    sample: Array | None = None  # (n, d)  true contexts of the past
    mixture: Mixture | None = None  # of Gaussians: the law of contexts
    dynamics: Dynamics | None = None  # how contexts and errors move in time
    person_cov: Array | None = None  # (d, d)  the part of context_cov that differs between units, if known
    groups: tuple[int, ...] | None = None  # (k,)  which entries of a block of theta share a spread

    @property
    def has_moments(self) -> bool:
        """Whether mean and covariance of contexts, and the bias's covariance, are known; else not numbers."""
        moments = self.context_mean, self.context_cov, self.bias_cov
        return not any(bool((part != part).any()) for part in moments)

    @property
    def beyond_moments(self) -> tuple[str, ...]:
        """The names of what is known of contexts besides their mean and covariance."""
        return tuple(field for field in BEYOND if self._asdict()[field] is not None)

    def limited(self) -> "Knowledge":
        """The same, with noise and bias that are neither too small nor too large to compute with."""
        noise_cov, bias_cov = (limit_cov(cov, self.context_cov) for cov in (self.noise_cov, self.bias_cov))
        return self._replace(noise_cov=noise_cov, bias_cov=bias_cov)


def limit_cov(cov: Array, context_cov: Array) -> Array:
    """A covariance (..., d, d) of noise or biases, its variances from LEAST to MOST of those of contexts.

    Where either is not known, there are no limits.
    """
    xp = cov.__array_namespace__()
    variances, contexts = xp.linalg.diagonal(cov), xp.linalg.diagonal(context_cov)
    is_known = ~(xp.isnan(contexts) | xp.isnan(variances))
    contexts = xp.where(is_known, contexts, 1.0)
    shares = xp.where(is_known, variances, 1.0) / contexts
    scale = xp.where(shares > MOST, xp.sqrt(MOST / xp.where(shares > MOST, shares, 1.0)), 1.0)
    more = xp.where(shares < LEAST, LEAST - shares, 0.0) * contexts
    limited: Array = cov * scale[..., :, None] * scale[..., None, :]
    return limited + diagonal_matrix(more)


class Shrinkage(NamedTuple):
    """The posterior of c given chat when the bias is known."""

    mean: Array  # (d,)    mu_c
    gain: Array  # (..., d, d)  B
    cov: Array  # (..., d, d)  M^-1


def shrinkage(mean: Array, context_cov: Array, noise_cov: Array) -> Shrinkage:
    """The gain, and the covariance of the context given a reading."""
    xp = context_cov.__array_namespace__()
    gain = xp.linalg.solve(context_cov + noise_cov, context_cov).mT
    return Shrinkage(mean, gain, context_cov - gain @ context_cov)


def posterior_mean(shrinkage: Shrinkage, noisy: Array, bias: Array) -> Array:
    """The posterior mean A of the context for a given bias."""
    return shrinkage.mean + matvec(shrinkage.gain, noisy - shrinkage.mean - bias)


def masked_inverse(cov: Array, mask: Array) -> Array:
    """The inverse of the covariance of the measured coordinates, zero for the others: mask (..., d)."""
    xp = cov.__array_namespace__()
    both = mask[..., :, None] * mask[..., None, :]
    eye = xp.eye(cov.shape[-1], dtype=cov.dtype)
    precision: Array = both * inverse(both * cov + (1 - mask)[..., None] * eye)
    return precision


def masked_shrinkage(mean: Array, context_cov: Array, noise_cov: Array, mask: Array) -> Shrinkage:
    """The shrinkage if only coordinates with mask 1 are measured; the values of the others do not matter."""
    gain = product(context_cov, masked_inverse(context_cov + noise_cov, mask))
    return Shrinkage(mean, gain, context_cov - product(gain, context_cov))


def known_shrinkage(known: Knowledge) -> Shrinkage:
    """The shrinkage for the channel that agents are told."""
    return shrinkage(known.context_mean, known.context_cov, known.noise_cov)
