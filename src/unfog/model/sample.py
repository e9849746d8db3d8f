"""The law of contexts from a sample of them: a kernel on every atom, no more atoms than can be afforded.

Contexts are taken for N(u_i, H) with probability p_i, H = h^2 C, where C is the covariance of the sample and

    h = bandwidth (4 / ((d + 2) n))^(1 / (d + 4)),    n = 1 / sum p_i^2,    h at most 1,

which for a Gaussian law and `bandwidth` 1 is the best h there is (B. W. Silverman, *Density Estimation for
Statistics and Data Analysis*, section 4.3). Kernels make a law wider than its sample: so atoms are drawn
towards the mean, u_i = mean + sqrt(1 - h^2) (x_i - mean), and mean and covariance stay those of the sample
(M. West, *Approximating Posterior Distributions by Mixtures*). With h = 1 this is one Gaussian, with h = 0
the sample itself.

A sample that is too large is thinned: every k-th stays, and stands for those that it is the nearest to, each
coordinate in units of its deviation: its weight is their share.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, Ints

CELLS = 2**22  # distances that are made at once


class Law(NamedTuple):
    """A mixture of Gaussians that differ in their means alone, and its moments."""

    atoms: Array  # (n, d)
    weights: Array  # (n,)
    kernel: Array  # (d, d)  H
    mean: Array  # (d,)
    cov: Array  # (d, d)


def smoothed(contexts: Array, most: int, bandwidth: float) -> Law:
    """The law for a sample (n, d), of at most so many atoms."""
    xp = contexts.__array_namespace__()
    atoms, weights = thinned(contexts, most)
    mean = weights @ atoms
    away = atoms - mean
    cov = (weights[:, None] * away).mT @ away
    dim = contexts.shape[1]
    number = 1 / xp.vecdot(weights, weights)
    square = xp.minimum(bandwidth**2 * (4 / ((dim + 2) * number)) ** (2 / (dim + 4)), xp.ones_like(number))
    return Law(mean + xp.sqrt(1 - square) * away, weights, square * cov, mean, cov)


def thinned(contexts: Array, most: int) -> tuple[Array, Array]:
    """At most so many of the contexts, (m, d), and the share of all that each stands for, (m,)."""
    xp, n = contexts.__array_namespace__(), contexts.shape[0]
    if n <= most:
        return contexts, xp.ones_like(contexts[:, 0]) / n
    kept = contexts[xp.arange(most) * n // most]
    place = _nearest(contexts, kept)
    bounds = xp.searchsorted(xp.sort(place), xp.arange(most + 1))
    return kept, xp.astype(bounds[1:] - bounds[:-1], contexts.dtype) / n


def _nearest(contexts: Array, kept: Array) -> Ints:
    """Which of those kept is the nearest to each, a few at a time."""
    xp, n = contexts.__array_namespace__(), contexts.shape[0]
    spread = contexts.std(0)
    unit = xp.where(spread > 0, spread, xp.ones_like(spread))
    all_of_them, near = (contexts - contexts.mean(0)) / unit, (kept - contexts.mean(0)) / unit
    size, half = max(1, CELLS // kept.shape[0]), 0.5 * xp.vecdot(near, near)
    found = [(all_of_them[first : first + size] @ near.mT - half).argmax(-1) for first in range(0, n, size)]
    places: Ints = xp.concat(found)
    return places
