"""The mean of contexts and the biases of devices, found together: neither is taken for known for the other.

A row of device g is y = (x, t) with x = mu + b_g + (c - mu) + n and t = mu + (c - mu), so that

    y = H (mu, b_g) + error,   H = [[I, I], [I, 0]],   Cov(error) = [[C + N, C], [C, C]],

of which a row has the numbers that are there. Biases are b_g ~ N(beta, K^-1). mu and beta are told, or
nothing is known of them before. That is a linear mixed model, solved by generalised least squares (S. R.
Searle, G. Casella, C. E. McCulloch, *Variance Components*, chapter 7): each b_g is eliminated, then mu and
beta are found in 2 d equations. As a likelihood of all readings it holds too where readings decided whose
truth was looked up (T. W. Anderson, *Maximum Likelihood Estimates for a Multivariate Normal Distribution when
Some Observations are Missing*).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising.kept import Entries
from unfog.adapters.denoising.patterns import codes
from unfog.channel.knowledge import masked_inverse
from unfog.maths.arrays import Array, diagonal_matrix

CELLS = 2**18  # numbers of a batch of matrices that are made at once
EXACT = 1e-12  # of a context's variance: the noise of a coordinate that is said to have none


class Terms(NamedTuple):
    """What the rows of each device say of (mu, b), in information form."""

    precision: Array  # (G, 2 d, 2 d)
    natural: Array  # (G, 2 d)


class Errors(NamedTuple):
    """The covariances of rows."""

    context: Array  # (d, d)  C
    noise: Array  # (d, d)  N of a row to which none was told
    pair: Array | None  # (2 d, 2 d)  of (x, t) of such a row, where pairs tell it; else made of C and N


class Joint(NamedTuple):
    """Means and covariances."""

    centre: Array  # (2 d,)  of (mu, beta)
    centre_cov: Array  # (2 d, 2 d)
    bias: Array  # (G, d)
    bias_cov: Array  # (G, d, d)
    cross: Array  # (G, d, d)  of mu and the biases


def terms(entries: Entries, devices: int, errors: Errors) -> Terms:
    """From entries."""
    dim = len(errors.context)
    precision, natural = np.zeros((devices, 2 * dim, 2 * dim)), np.zeros((devices, 2 * dim))
    for part, inverse in _inverses(entries, errors):
        weighed = np.einsum("pij,pj->pi", inverse, part.total)
        for g, p, h in _by_device(part, inverse, weighed):
            precision[g] += p
            natural[g] += h
    eye, none = np.eye(dim), np.zeros((dim, dim))
    design = np.block([[eye, eye], [eye, none]])
    return Terms(design.T @ precision @ design, natural @ design)


def _by_device(part: Entries, inverse: Array, weighed: Array) -> Iterator[tuple[int, Array, Array]]:
    order = np.argsort(part.of, kind="stable")
    starts = np.flatnonzero(np.diff(part.of[order], prepend=-1))
    total = np.add.reduceat((part.times[:, None, None] * inverse)[order], starts, axis=0)
    means = np.add.reduceat(weighed[order], starts, axis=0)
    return zip(part.of[order][starts].tolist(), total, means, strict=True)


def _inverses(entries: Entries, errors: Errors) -> Iterator[tuple[Entries, Array]]:
    """Entries in batches, and the inverse of the covariance of each; those that share one, have it once."""
    cov = errors.context
    size = max(1, CELLS // (4 * len(cov) ** 2))
    told = ~np.isnan(entries.noise).all(axis=(-2, -1))
    if not told.all():
        alike = entries.at(~told)
        _, first, place = np.unique(codes(alike.mask > 0), return_index=True, return_inverse=True)
        shared = _covariance(cov, errors.noise) if errors.pair is None else errors.pair
        once = masked_inverse(shared, alike.mask[first])
        for part in _parts(len(place), size):
            yield alike.at(part), once[place.reshape(-1)[part]]
    own = entries.at(told)
    for part in _parts(len(own.of), size):
        some = own.at(part)
        yield some, masked_inverse(_covariance(cov, some.noise), some.mask)


def _parts(rows: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, rows, size))


def _covariance(cov: Array, noise: Array) -> Array:
    """Of (x, t), given mu and the bias."""
    floor = EXACT * np.diag(cov) * (np.linalg.diagonal(noise) == 0)
    reading = cov + noise + diagonal_matrix(floor)
    wide = np.broadcast_to(cov, reading.shape)
    return np.concatenate([np.concatenate([reading, wide], -1), np.concatenate([wide, wide], -1)], axis=-2)


def solved(given: Terms, spread: Array | None, mean: Array | None, beta: Array | None) -> Joint:
    """With biases of this spread about beta; without one, nothing is known of a bias before.

    A mean or a beta of None is found. All are about the centre of the sums.
    """
    dim = given.natural.shape[1] // 2
    of_mean, of_bias = slice(dim), slice(dim, None)
    inward = np.zeros((dim, dim)) if spread is None else np.linalg.inv(spread)
    mm, mb, bb = (
        given.precision[:, i, j] for i, j in ((of_mean, of_mean), (of_mean, of_bias), (of_bias, of_bias))
    )
    left = np.linalg.inv(bb + inward)
    link = np.concatenate([mb, np.broadcast_to(-inward, mb.shape)], axis=1)
    whole = np.zeros((2 * dim, 2 * dim))
    whole[:dim, :dim], whole[dim:, dim:] = mm.sum(0), len(mm) * inward
    whole = whole - (link @ left @ link.mT).sum(0)
    natural = np.concatenate([given.natural[:, :dim].sum(0), np.zeros(dim)])
    natural = natural - np.einsum("gij,gjk,gk->i", link, left, given.natural[:, dim:])
    centre, centre_cov = _centre(whole, natural, mean, np.zeros(dim) if spread is None else beta)
    bias = np.einsum("gij,gj->gi", left, given.natural[:, dim:] - centre @ link)
    turned = left @ link.mT
    cross = -(centre_cov @ turned.mT)[:, :dim]
    return Joint(centre, centre_cov, bias, left + turned @ centre_cov @ turned.mT, cross)


def doubted(found: Joint, student: float, slopes: Array) -> Joint:
    """Less sure by a factor, and by what shifts the mean of contexts, and every bias the other way."""
    dim = len(slopes)
    centre = found.centre_cov.copy()
    centre[:dim, :dim] += slopes
    centre[:dim, dim:] -= slopes
    centre[dim:, :dim] -= slopes
    centre[dim:, dim:] += slopes
    return found._replace(
        centre_cov=student * centre,
        bias_cov=student * (found.bias_cov + slopes),
        cross=student * (found.cross - slopes),
    )


def _centre(whole: Array, natural: Array, mean: Array | None, beta: Array | None) -> tuple[Array, Array]:
    """Of (mu, beta), of which some may be told."""
    dim = len(natural) // 2
    found = np.concatenate([np.zeros(dim) if part is None else part for part in (mean, beta)])
    # Of a coordinate that was never read nothing can be found: it stays at the centre.
    free = np.repeat([mean is None, beta is None], dim) & (np.diag(whole) > 0)
    cov = np.zeros_like(whole)
    if free.any():
        own = np.linalg.inv(whole[np.ix_(free, free)])
        found[free] = own @ (natural[free] - whole[np.ix_(free, ~free)] @ found[~free])
        cov[np.ix_(free, free)] = (own + own.T) / 2
    return found, cov
