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
[u_i, u_i u_i'], which are made once, each product of two coordinates once: each is one product with their
table. Weights are made in the log, the largest taken off first, so that a measurement far from all points
still names the nearest. Points lie about their mean, so that little is lost in the differences. Coordinates
that were not measured have zero rows and columns in P, which may then differ from one measurement to the
next.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import inverted

CELLS = 2**20  # weights of points that are made at once, where a block of rounds is asked for


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
    """Mean and covariance of the part of the noise that is N(0, cov): (d, d) or (..., d, d)."""
    wide = cov[..., None, :, :]
    return moments(found.weights, matvec(wide, found.turned), wide - wide @ found.precisions @ wide)


class Points(NamedTuple):
    """The points with everything made that can be made once; arrays alone, so that any engine can hold it."""

    centre: Array  # (d,)
    table: Array  # (n, d + d (d + 1) / 2)  u - centre, and its products
    logs: Array  # (n,)  of the prior weights, up to a constant


def points(atoms: Array, prior: Array | None = None) -> Points:
    """From the points themselves, (n, d), and their prior weights (n,); each as likely unless told."""
    xp = atoms.__array_namespace__()
    centre = atoms.mean(0)
    away, (first, second) = atoms - centre, np.triu_indices(atoms.shape[1])
    logs = xp.zeros_like(atoms[:, 0])
    if prior is not None:  # a weight of zero is as good as the smallest number there is
        logs = xp.log(xp.maximum(prior, xp.full_like(prior, xp.finfo(prior.dtype).tiny)))
    return Points(centre, xp.concat([away, away[:, first] * away[:, second]], axis=1), logs)


def like(made: Points, value: Array) -> Points:
    """The points in the library and the precision of this array."""
    xp = value.__array_namespace__()
    return Points(*(xp.asarray(x, dtype=value.dtype) for x in made))


def weights(made: Points, precision: Array, value: Array, nu: float = 0.0) -> Array:
    """The posterior weights (..., n) given a measurement (..., d): precision (d, d) or (..., d, d).

    Noise is Gaussian, or with `nu` more than zero Student's t with so many degrees of freedom.
    """
    return weighed(made, precision, value, nu)[0]


def weighed(made: Points, precision: Array, value: Array, nu: float = 0.0) -> tuple[Array, Array]:
    """These weights, and the logarithm of what they were divided by, (...,).

    For Gaussian noise that is the density of the measurement but for 0.5 ln det(precision / (2 pi)).
    """
    xp = value.__array_namespace__()
    away = value - made.centre
    turned = matvec(precision, away)
    first, second = np.triu_indices(value.shape[-1])
    flat = precision[..., first, second] * xp.asarray(np.where(first == second, 1, 2), dtype=value.dtype)
    flat = xp.broadcast_to(flat, (*value.shape[:-1], flat.shape[-1]))
    distance = _each(made.table, xp.concat([-2 * turned, flat], axis=-1))
    own = xp.vecdot(away, turned)
    logs = made.logs - 0.5 * distance
    if nu:
        whole = xp.maximum(distance + own[..., None], xp.zeros_like(distance))
        logs = made.logs - 0.5 * (nu + value.shape[-1]) * xp.log1p(whole / nu)
    most = logs.max(-1)
    raised = xp.exp(logs - most[..., None])
    total = raised.sum(-1)
    return raised / total[..., None], most + xp.log(total) - 0.5 * own


def points_moments(made: Points, weights: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) under weights (..., n)."""
    d = made.centre.shape[0]
    found = _each(made.table.mT, weights)
    mean, square = found[..., :d], found[..., d:][..., _places(d)]
    return made.centre + mean, square - mean[..., :, None] * mean[..., None, :]


def points_posterior(made: Points, precision: Array, value: Array, nu: float = 0.0) -> tuple[Array, Array]:
    """The moments given a measurement, of a block of rounds (trials, rounds, d) a few trials at a time."""
    xp = value.__array_namespace__()
    size = max(1, CELLS // (value.shape[-2] * made.table.shape[0])) if value.ndim > 2 else 0
    if not size or value.shape[0] <= size:
        return points_moments(made, weights(made, precision, value, nu))
    found = [
        points_moments(
            made, weights(made, precision if precision.ndim == 2 else precision[cut], value[cut], nu)
        )
        for cut in (slice(first, first + size) for first in range(0, value.shape[0], size))
    ]
    means, covs = zip(*found, strict=True)
    return xp.concat(means), xp.concat(covs)


def _places(dim: int) -> Ints:
    """Where among the products of coordinates each entry of their matrix stands, (d, d)."""
    first, second = np.triu_indices(dim)
    places = np.zeros((dim, dim), np.intp)
    places[first, second] = places[second, first] = np.arange(len(first))
    return places


def _each(rows: Array, values: Array) -> Array:
    """Every row's product with the values: (r, p), (..., p) -> (..., r).

    Over rounds this is one matrix product; over trials alone its bits would depend on how many there are.
    """
    return values @ rows.mT if values.ndim > 2 else matvec(rows, values)
