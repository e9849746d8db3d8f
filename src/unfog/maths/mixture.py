"""A hidden quantity that is drawn from a mixture of Gaussians, or is one of known points.

A `Mixture` is for few components, each with a factor of its own in every trial. With x ~ N(u_j, H_j) with
probability p_j, and y = x + N(0, V) + N(0, S) measured,

    w_j ~ p_j N(y; u_j, T_j),    T_j = H_j + S + V,

and given j both x and the part of the noise that is N(0, S) are Gaussian: u_j + H_j T_j^-1 (y - u_j) with
covariance H_j - H_j T_j^-1 H_j, and S T_j^-1 (y - u_j) with S - S T_j^-1 S. The moments of either are those
of the mixture over j: sum w_j m_j, and sum w_j (C_j + (m_j - m)(m_j - m)').

`Points` are for many: n known points, as likely as they are told to be, seen through additive noise, or many
components with one covariance, which counts as noise. With x the measurement, its bias taken off, and P the
inverse of the noise's covariance (or of its scale), Bayes' rule over the points u_1 .. u_n with prior weights
p_1 .. p_n is

    s_i = (x - u_i)'P(x - u_i),    w_i ~ p_i exp(-s_i / 2),

or for Student's t w_i ~ p_i (1 + s_i / nu)^(-(nu + d) / 2), and the moments of the posterior are sum w_i u_i
and sum w_i u_i u_i' less the mean's square. Both s_i, up to x'P x, and the moments are linear in the numbers
[u_i, u_i u_i'], which are computed once, each product of two coordinates once: each is one product with their
table. Weights are computed in the log, the largest subtracted first, so that a measurement far from all
points still picks the nearest. Points are centred, so that differences lose few digits. Coordinates
that were not measured have zero rows and columns in P, which may then differ from one measurement to the
next.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import invert_covariance

CELLS = 2**20  # weights of points that are computed at once for a block of rounds


class Mixture(NamedTuple):
    """A mixture of k Gaussians; a covariance may be singular, or zero."""

    weights: Array  # (k,)  they sum to one
    means: Array  # (k, d)
    covs: Array  # (k, d, d)


class Posterior(NamedTuple):
    """What a measurement says of a mixture."""

    weights: Array  # (..., k)
    precisions: Array  # (..., k, d, d)  T^-1
    turned: Array  # (..., k, d)  T^-1 (y - u)
    logs: Array  # (..., k)  p N(y; u, T), up to one constant


def posterior(law: Mixture, noise_cov: Array, value: Array) -> Posterior:
    """Given a measurement (..., d) with noise of this covariance, (d, d) or (..., d, d): S + V."""
    xp = value.__array_namespace__()
    covs = noise_cov[..., None, :, :] + law.covs
    precisions, log_dets = invert_covariance(covs)
    residuals = value[..., None, :] - law.means
    scaled = matvec(precisions, residuals)
    weights = xp.maximum(law.weights, xp.full_like(law.weights, xp.finfo(law.weights.dtype).tiny))
    logs = xp.log(weights) - 0.5 * (log_dets + xp.vecdot(residuals, scaled))
    relative = xp.exp(logs - logs.max(-1)[..., None])
    return Posterior(relative / relative.sum(-1)[..., None], precisions, scaled, logs)


def moments(weights: Array, means: Array, covs: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of a mixture: (..., k), (..., k, d), (..., k, d, d)."""
    mean = (weights[..., None] * means).sum(-2)
    centred = means - mean[..., None, :]
    within = (weights[..., None, None] * covs).sum(-3)
    return mean, within + (weights[..., None] * centred).mT @ centred


def quantity(law: Mixture, posterior: Posterior) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of x."""
    means = law.means + matvec(law.covs, posterior.turned)
    return moments(posterior.weights, means, law.covs - law.covs @ posterior.precisions @ law.covs)


def split_noise(cov: Array, posterior: Posterior) -> tuple[Array, Array]:
    """Mean and covariance of the part of the noise that is N(0, cov): (d, d) or (..., d, d)."""
    covs = cov[..., None, :, :]
    return moments(
        posterior.weights, matvec(covs, posterior.turned), covs - covs @ posterior.precisions @ covs
    )


class Points(NamedTuple):
    """The points with everything that can be computed once; arrays alone, so that any engine can hold it."""

    centre: Array  # (d,)
    table: Array  # (n, d + d (d + 1) / 2)  u - centre, and its products
    logs: Array  # (n,)  of the prior weights, up to a constant


def points(atoms: Array, prior: Array | None = None) -> Points:
    """Prepare points (n, d) with prior weights (n,), equal by default."""
    xp = atoms.__array_namespace__()
    centre = atoms.mean(0)
    centred, (first, second) = atoms - centre, np.triu_indices(atoms.shape[1])
    logs = xp.zeros_like(atoms[:, 0])
    if prior is not None:  # zero has no logarithm: use the smallest number
        logs = xp.log(xp.maximum(prior, xp.full_like(prior, xp.finfo(prior.dtype).tiny)))
    return Points(centre, xp.concat([centred, centred[:, first] * centred[:, second]], axis=1), logs)


def like(points: Points, value: Array) -> Points:
    """The points in the library and the precision of this array."""
    xp = value.__array_namespace__()
    return Points(*(xp.asarray(x, dtype=value.dtype) for x in points))


def weights(points: Points, precision: Array, value: Array, nu: float = 0.0) -> Array:
    """The posterior weights (..., n) given a measurement (..., d): precision (d, d) or (..., d, d).

    Noise is Gaussian, or with `nu` more than zero Student's t with `nu` degrees of freedom.
    """
    return posterior_weights(points, precision, value, nu)[0]


def posterior_weights(points: Points, precision: Array, value: Array, nu: float = 0.0) -> tuple[Array, Array]:
    """The posterior weights, and the logarithm of their normalising constant, (...,).

    For Gaussian noise that is the log density of the measurement, less 0.5 ln det(precision / (2 pi)).
    """
    xp = value.__array_namespace__()
    centred = value - points.centre
    scaled = matvec(precision, centred)
    first, second = np.triu_indices(value.shape[-1])
    flat = precision[..., first, second] * xp.asarray(np.where(first == second, 1, 2), dtype=value.dtype)
    flat = xp.broadcast_to(flat, (*value.shape[:-1], flat.shape[-1]))
    distance = _dot_rows(points.table, xp.concat([-2 * scaled, flat], axis=-1))
    own_distance = xp.vecdot(centred, scaled)
    logs = points.logs - 0.5 * distance
    if nu:
        distances = xp.maximum(distance + own_distance[..., None], xp.zeros_like(distance))
        logs = points.logs - 0.5 * (nu + value.shape[-1]) * xp.log1p(distances / nu)
    largest = logs.max(-1)
    relative = xp.exp(logs - largest[..., None])
    total = relative.sum(-1)
    return relative / total[..., None], largest + xp.log(total) - 0.5 * own_distance


def points_moments(points: Points, weights: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) under weights (..., n)."""
    d = points.centre.shape[0]
    products = _dot_rows(points.table.mT, weights)
    mean, square = products[..., :d], products[..., d:][..., _symmetric_index(d)]
    return points.centre + mean, square - mean[..., :, None] * mean[..., None, :]


def points_posterior(points: Points, precision: Array, value: Array, nu: float = 0.0) -> tuple[Array, Array]:
    """The moments given a measurement; for a block of rounds (trials, rounds, d) a few trials at a time."""
    xp = value.__array_namespace__()
    trials = max(1, CELLS // (value.shape[-2] * points.table.shape[0])) if value.ndim > 2 else 0
    if not trials or value.shape[0] <= trials:
        return points_moments(points, weights(points, precision, value, nu))
    parts = [
        points_moments(
            points, weights(points, precision if precision.ndim == 2 else precision[block], value[block], nu)
        )
        for block in (slice(first, first + trials) for first in range(0, value.shape[0], trials))
    ]
    means, covs = zip(*parts, strict=True)
    return xp.concat(means), xp.concat(covs)


def _symmetric_index(dim: int) -> Ints:
    """The index, among the d (d + 1) / 2 products of coordinates, of each entry of their matrix, (d, d)."""
    first, second = np.triu_indices(dim)
    index = np.zeros((dim, dim), np.intp)
    index[first, second] = index[second, first] = np.arange(len(first))
    return index


def _dot_rows(rows: Array, values: Array) -> Array:
    """Every row's product with the values: (r, p), (..., p) -> (..., r).

    Over rounds this is one matrix product; over trials alone its bits would depend on how many there are.
    """
    return values @ rows.mT if values.ndim > 2 else matvec(rows, values)
