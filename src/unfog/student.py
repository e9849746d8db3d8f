"""A context seen through heavy-tailed noise: n ~ Student's t with nu degrees of freedom and scale Sigma_n.

Such noise is Gaussian with a precision of its own every round, n | w ~ N(0, Sigma_n / w) with
w ~ Gamma(nu/2, nu/2). Given w everything is Gaussian, so the posterior of what was hidden is a mixture over
w, and its moments are sums over a grid in ln w: `NODES` points, the trapezoidal rule, which converges at once
for a density as smooth as this. K. L. Lange, R. J. A. Little and J. M. G. Taylor, *Robust Statistical
Modeling Using the t Distribution*.
"""

from typing import NamedTuple

import numpy as np

from unfog.arrays import Array, matvec

NODES = np.linspace(-9.0, 3.0, 49)  # ln w: from an outlier of ninety deviations to a quiet round


class Mixture(NamedTuple):
    """What one measurement says at every node, and how much each node is to be believed."""

    weights: Array  # (..., n)  posterior weights of the nodes, adding up to one
    gains: Array  # (n, d, d) or (..., n, d, d)  of the hidden quantity on the surprise
    covs: Array  # likewise: its covariance given the node


def mixture(prior_cov: Array, other_cov: Array, noise_cov: Array, nu: float, surprise: Array) -> Mixture:
    """For x ~ N(0, prior_cov) seen as x + N(0, other_cov) + noise = surprise (..., d)."""
    xp = surprise.__array_namespace__()
    logs = xp.asarray(NODES, dtype=surprise.dtype)
    prior, noise = prior_cov[..., None, :, :], noise_cov[..., None, :, :] / xp.exp(logs)[:, None, None]
    precision = xp.linalg.inv(prior + other_cov[..., None, :, :] + noise)
    gains = prior @ precision
    seen = surprise[..., None, :]
    distance = (matvec(precision, seen) * seen).sum(-1) - xp.linalg.slogdet(precision)[1]
    density = 0.5 * nu * (logs - xp.exp(logs)) - 0.5 * distance
    raised = xp.exp(density - density.max(-1)[..., None])
    return Mixture(raised / raised.sum(-1)[..., None], gains, prior - gains @ prior)


def moments(found: Mixture, surprise: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of the hidden quantity."""
    means = matvec(found.gains, surprise[..., None, :])
    mean = (found.weights[..., None] * means).sum(-2)
    away = means - mean[..., None, :]
    spread = (found.weights[..., None, None] * (found.covs + away[..., :, None] * away[..., None, :])).sum(-3)
    return mean, spread
