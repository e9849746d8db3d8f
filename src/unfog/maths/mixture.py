"""A quantity whose law is a mixture of Gaussians, seen through Gaussian noise.

With x ~ N(u_j, H_j) with probability p_j, and y = x + N(0, V) + N(0, S) measured,

    w_j ~ p_j N(y; u_j, T_j),    T_j = H_j + S + V,

and given j both x and the part of the noise that is N(0, S) are Gaussian: u_j + H_j T_j^-1 (y - u_j) with
covariance H_j - H_j T_j^-1 H_j, and S T_j^-1 (y - u_j) with S - S T_j^-1 S. The moments of either are those
of the mixture over j: sum w_j m_j, and sum w_j (C_j + (m_j - m)(m_j - m)').

Components are few: every one has a factor of its own in every trial. For many with one covariance see
maths/atoms.py.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import inverted


class Mixture(NamedTuple):
    """A mixture of k Gaussians; a covariance may be singular, or zero."""

    weights: Array  # (k,)  they sum to one
    means: Array  # (k, d)
    covs: Array  # (k, d, d)


class Posterior(NamedTuple):
    """What a measurement says."""

    weights: Array  # (..., k)
    precisions: Array  # (..., k, d, d)  T^-1
    turned: Array  # (..., k, d)  T^-1 (y - u)
    logs: Array  # (..., k)  p N(y; u, T), up to one constant


def posterior(law: Mixture, noise_cov: Array, value: Array) -> Posterior:
    """Given a measurement (..., d) with noise of this covariance, (d, d) or (..., d, d): S + V."""
    xp = value.__array_namespace__()
    whole = noise_cov[..., None, :, :] + law.covs
    precisions, sizes = inverted(whole)
    away = value[..., None, :] - law.means
    turned = matvec(precisions, away)
    weights = xp.maximum(law.weights, xp.full_like(law.weights, xp.finfo(law.weights.dtype).tiny))
    logs = xp.log(weights) - 0.5 * (sizes + xp.vecdot(away, turned))
    raised = xp.exp(logs - logs.max(-1)[..., None])
    return Posterior(raised / raised.sum(-1)[..., None], precisions, turned, logs)


def moments(weights: Array, means: Array, covs: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of a mixture: (..., k), (..., k, d), (..., k, d, d)."""
    mean = (weights[..., None] * means).sum(-2)
    away = means - mean[..., None, :]
    within = (weights[..., None, None] * covs).sum(-3)
    return mean, within + (weights[..., None] * away).mT @ away


def quantity(law: Mixture, found: Posterior) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of x."""
    means = law.means + matvec(law.covs, found.turned)
    return moments(found.weights, means, law.covs - law.covs @ found.precisions @ law.covs)


def shared(cov: Array, found: Posterior) -> tuple[Array, Array]:
    """Likewise of the part of the noise that is N(0, cov): (d, d) or (..., d, d)."""
    wide = cov[..., None, :, :]
    return moments(found.weights, matvec(wide, found.turned), wide - wide @ found.precisions @ wide)
