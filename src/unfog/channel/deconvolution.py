"""The law of contexts: a mixture of Gaussians fitted to noisy contexts, or a kernel on a sample of true ones.

`deconvolve` fits a mixture of Gaussians to noisy measurements alone: extreme deconvolution. With
y_i = x_i + N(0, N), N known, and x ~ sum_j p_j N(u_j, H_j), the steps of EM are, T_j = H_j + N,

    q_ij ~ p_j N(y_i; u_j, T_j),   b_ij = u_j + H_j T_j^-1 (y_i - u_j),   B_j = H_j - H_j T_j^-1 H_j,
    p_j <- mean_i q_ij,   u_j <- sum_i q_ij b_ij / q_j,   H_j <- sum_i q_ij ((u_j - b_ij)(..)' + B_j) / q_j,

q_j = sum_i q_ij, and the likelihood of the measurements never falls (J. Bovy, D. W. Hogg and S. T. Roweis,
*Extreme deconvolution: Inferring complete distribution functions from noisy, heterogeneous and incomplete
observations*; here the noise is the same for all, and nothing is missing). A covariance may come to zero: the
noise keeps T_j regular, and the likelihood bounded.

Measurements of a biased channel, c + gamma + n, show the law of c + gamma: the bias and the mean of contexts
cannot be told apart. So the caller gives `mean`, and the mixture is moved there: only the shape is fitted.

`kernel_law` puts a kernel on every atom of a sample, and uses no more atoms than can be afforded. Contexts
are taken for N(u_i, H) with probability p_i, H = h^2 C, where C is the covariance of the sample and

    h = bandwidth (4 / ((d + 2) n))^(1 / (d + 4)),    n = 1 / sum p_i^2,    h at most 1,

which for a Gaussian law and `bandwidth` 1 is the best h there is (B. W. Silverman, *Density Estimation for
Statistics and Data Analysis*, section 4.3). Kernels make a law wider than its sample: so atoms are drawn
towards the mean, u_i = mean + sqrt(1 - h^2) (x_i - mean), and mean and covariance stay those of the sample
(M. West, *Approximating Posterior Distributions by Mixtures*). With h = 1 this is one Gaussian, with h = 0
the sample itself. A sample that is too large is thinned: every k-th stays, and stands for those that it is
the nearest to, each coordinate in units of its deviation: its weight is their share.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog import validation
from unfog.maths import mixture
from unfog.maths.arrays import Array, Ints
from unfog.maths.mixture import Mixture, Posterior
from unfog.maths.random import generator
from unfog.validation import InputError, check_keywords

MOST_COMPONENTS = 100
STARTS, SHORT = 5, 20  # the number of starts, and the steps after which only the best of them goes on
STEPS, NEAR = 500, 1e-6  # until a step raises the mean log likelihood by less
LEAST = 1e-6  # what a component keeps of the variance of an exact column, so that none ends in a point
CELLS = 2**22  # distances between a sample and its atoms that are computed at once


@check_keywords
def deconvolve(
    noisy: npt.ArrayLike,
    noise_cov: validation.Numbers,
    *,
    components: int = 5,
    mean: validation.Numbers | None = None,
    seed: int = 0,
) -> Mixture:
    """Fit the law of contexts to noisy ones (n, d), whose noise has this covariance; a variance of 0: exact.

    `mean` is that of the contexts, where it is known; None: the channel has no bias. More components follow
    the law more closely and need more measurements: ten for each number that is fitted, k (d + 1)(d + 2) / 2
    in all, are not too many. A mixture of one is the Gaussian.

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> true = np.where(rng.random(500) < 0.5, -2.0, 2.0)[:, None] + 0.3 * rng.normal(size=(500, 1))
    >>> law = unfog.deconvolve(true + rng.normal(size=(500, 1)), 1.0, components=2)
    >>> sorted(float(mean) for mean in np.round(law.means[:, 0], 1))  # two groups, near -2 and 2
    [-2.0, 2.1]
    """
    values = validation.rows("noisy", noisy, None, "a matrix (n, d) of numbers, none missing")
    if values.ndim != 2:
        raise InputError("noisy", f"has shape {values.shape}", "a matrix (n, d) of numbers, none missing")
    n, dim = values.shape
    count = validation.count("components", components, most=MOST_COMPONENTS)
    if n < count * (dim + 1):
        raise InputError("noisy", f"{n} rows", f"at least {count * (dim + 1)}, for {count} components")
    if np.linalg.matrix_rank(values - values.mean(0)) < dim:
        raise InputError(
            "noisy", "it does not spread in every direction", "columns that each vary by themselves"
        )
    cov = validation.covariance("noise_cov", noise_cov, dim, exact=True)
    rng = generator(validation.count("seed", seed, 0), 0, "deconvolution")
    laws = [_climb(_start(values, cov, count, rng), values, cov, SHORT) for _ in range(STARTS)]
    best = max(laws, key=lambda law: likelihood(law, values, cov))
    law = _climb(best, values, cov, STEPS)
    return law if mean is None else recentre(law, validation.vector("mean", mean, dim))


def likelihood(law: Mixture, noisy: Array, noise_cov: Array) -> float:
    """The mean log likelihood of measurements (n, d)."""
    return _likelihood(mixture.posterior(law, noise_cov, noisy), noisy.shape[1])


def _likelihood(posterior: Posterior, dim: int) -> float:
    largest = posterior.logs.max(-1)
    each = largest + np.log(np.exp(posterior.logs - largest[:, None]).sum(-1))
    return float(each.mean() - 0.5 * dim * np.log(2 * np.pi))


def step(law: Mixture, noisy: Array, noise_cov: Array) -> Mixture:
    """The law after one step of EM."""
    return _maximise(law, mixture.posterior(law, noise_cov, noisy))


def _maximise(law: Mixture, posterior: Posterior) -> Mixture:
    """The M step: the most likely law given the expected component and context of each measurement."""
    total = np.maximum(posterior.weights.sum(0), np.finfo(float).tiny)
    share = posterior.weights / total  # (n, k)
    expected = law.means + (law.covs @ posterior.turned[..., None])[..., 0]  # b, (n, k, d)
    means = (share[..., None] * expected).sum(0)
    deviations = np.moveaxis(expected - means, 0, 1)  # (k, n, d)
    spread = (share.T[..., None] * deviations).mT @ deviations
    remaining = law.covs - law.covs @ posterior.precisions @ law.covs
    covs = spread + remaining
    return Mixture(total / total.sum(), means, (covs + covs.mT) / 2)


def recentre(law: Mixture, mean: Array) -> Mixture:
    """The same shape about another mean (d,)."""
    return law._replace(means=law.means + mean - law.weights @ law.means)


def _start(noisy: Array, noise_cov: Array, components: int, rng: np.random.Generator) -> Mixture:
    """Start with components at some of the measurements, shrunk to undo the spread that noise adds."""
    dim, centre = noisy.shape[1], noisy.mean(0)
    cov = np.atleast_2d(np.cov(noisy.T))
    root = np.linalg.cholesky(cov)
    white = np.linalg.solve(root, np.linalg.solve(root, cov - noise_cov).T)
    values, vectors = np.linalg.eigh((white + white.T) / 2)
    # At least a twentieth of the variance of measurements is left to contexts.
    shrunk = root @ vectors * np.sqrt(np.maximum(values, 0.05))
    gaussian = shrunk @ shrunk.T
    centres = noisy[rng.choice(len(noisy), components, replace=False)]
    means = centre + (centres - centre) @ np.linalg.solve(cov, gaussian)
    covs = np.tile(gaussian / components ** (2 / dim), (components, 1, 1))
    return Mixture(np.full(components, 1 / components), means, covs)


def _climb(law: Mixture, noisy: Array, noise_cov: Array, steps: int) -> Mixture:
    """Take EM steps, at most `steps`, until they no longer help."""
    before = -np.inf
    least = np.diag(LEAST * noisy.var(0) * (np.diag(noise_cov) == 0))
    for _ in range(steps):
        posterior = mixture.posterior(law, noise_cov, noisy)
        law, now = _maximise(law, posterior), _likelihood(posterior, noisy.shape[1])
        law = law._replace(covs=law.covs + least)
        if now - before < NEAR:
            break
        before = now
    return law


class Law(NamedTuple):
    """A mixture of Gaussians that differ in their means alone, and its moments."""

    atoms: Array  # (n, d)
    weights: Array  # (n,)
    kernel: Array  # (d, d)  H
    mean: Array  # (d,)
    cov: Array  # (d, d)


def kernel_law(contexts: Array, most: int, bandwidth: float) -> Law:
    """The kernel law for a sample (n, d), with at most `most` atoms."""
    xp = contexts.__array_namespace__()
    atoms, weights = thin(contexts, most)
    mean = weights @ atoms
    deviations = atoms - mean
    cov = (weights[:, None] * deviations).mT @ deviations
    dim = contexts.shape[1]
    number = 1 / xp.vecdot(weights, weights)
    square = xp.minimum(bandwidth**2 * (4 / ((dim + 2) * number)) ** (2 / (dim + 4)), xp.ones_like(number))
    return Law(mean + xp.sqrt(1 - square) * deviations, weights, square * cov, mean, cov)


def thin(contexts: Array, most: int) -> tuple[Array, Array]:
    """At most `most` of the contexts, (m, d), and the share of all that each stands for, (m,)."""
    xp, n = contexts.__array_namespace__(), contexts.shape[0]
    if n <= most:
        return contexts, xp.ones_like(contexts[:, 0]) / n
    atoms = contexts[xp.arange(most) * n // most]
    index = _nearest(contexts, atoms)
    bounds = xp.searchsorted(xp.sort(index), xp.arange(most + 1))
    return atoms, xp.astype(bounds[1:] - bounds[:-1], contexts.dtype) / n


def _nearest(contexts: Array, atoms: Array) -> Ints:
    """The index of the atom that is nearest to each context."""
    xp, n = contexts.__array_namespace__(), contexts.shape[0]
    spread = contexts.std(0)
    unit = xp.where(spread > 0, spread, xp.ones_like(spread))
    scaled, scaled_atoms = (contexts - contexts.mean(0)) / unit, (atoms - contexts.mean(0)) / unit
    size, half = max(1, CELLS // atoms.shape[0]), 0.5 * xp.vecdot(scaled_atoms, scaled_atoms)
    parts = [
        (scaled[first : first + size] @ scaled_atoms.mT - half).argmax(-1) for first in range(0, n, size)
    ]
    index: Ints = xp.concat(parts)
    return index
