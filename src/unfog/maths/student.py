"""A quantity seen through heavy-tailed noise: n ~ Student's t with nu degrees of freedom and scale Sigma_n.

Such noise is Gaussian with a precision of its own every round, n | w ~ N(0, Sigma_n / w) with
w ~ Gamma(nu/2, nu/2). Given w everything is Gaussian, so the posterior of what was hidden is a mixture over
w, and its moments are sums over a grid in ln w. K. L. Lange, R. J. A. Little and J. M. G. Taylor, *Robust
Statistical Modeling Using the t Distribution*.

With T the covariance of all that is not noise, one eigendecomposition makes T and Sigma_n diagonal at once,
U'Sigma_n U = I and U'T U = diag(l), so that (T + Sigma_n / w)^-1 = U diag(1 / (l + 1/w)) U' for every w: no
inverse for each node, and no matrix for each node either.

The trapezoidal rule converges at once for a density as smooth as this one, if the nodes are near enough for
the narrowest posterior of ln w, that of Gamma((nu + d)/2), and reach as far as it does: hence a grid for
every nu and d. It reaches to surprises of `FARTHEST` deviations; for larger ones the noise is taken to be as
wide as the first node has it, at least `FARTHEST` deviations: a measurement then says next to nothing.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, matvec
from unfog.maths.linalg import eigh, product

FARTHEST = 3e3
TAIL = 25.0  # truncation and discretisation errors are of the order of exp(-TAIL)


class Noise(NamedTuple):
    """The noise with everything that can be computed once; arrays alone, so that any engine can hold it."""

    white: Array  # (..., d, d)  makes the scale I
    logs: Array  # (n,)  ln w
    prior: Array  # (n,)  its log density, up to a constant


class Mixture(NamedTuple):
    """What one measurement says at every node, and how much each node is to be believed."""

    weights: Array  # (..., n)  posterior weights of the nodes, adding up to one
    rates: Array  # (n, d) or (..., n, d)  1 / (l + 1/w)
    basis: Array  # (d, d) or (..., d, d)  U
    seen: Array  # (..., d)  U'surprise


def nodes(nu: float, dim: int) -> Array:
    """The grid in ln w."""
    shape = (nu + dim) / 2  # of the posterior of w, a Gamma where all is noise; nu/2 at least elsewhere
    # The Fourier transform of the density of ln w, |Gamma(shape + i x)|, has fallen by exp(-TAIL) at this x.
    spacing = 2 * np.pi / np.sqrt((2 * TAIL / np.pi) ** 2 + 2 * TAIL * shape)
    first = -2 * np.log(FARTHEST) - 8 / shape  # w about (nu + d) / (nu + s^2) goes with a surprise of s
    last = np.log((shape + np.sqrt(2 * TAIL * shape) + TAIL) / (nu / 2))  # a tail bound of the Gamma
    return np.linspace(first, last, int(np.ceil((last - first) / spacing)) + 1)


def noise(scale: Array, nu: float) -> Noise:
    """Noise of this scale (..., d, d)."""
    xp = scale.__array_namespace__()
    dim = scale.shape[-1]
    white = xp.linalg.solve(xp.linalg.cholesky(scale), xp.eye(dim, dtype=scale.dtype))
    logs = xp.asarray(nodes(nu, dim), dtype=scale.dtype)
    return Noise(white, logs, 0.5 * nu * (1 + logs - xp.exp(logs)))


def mixture(noise: Noise, cov: Array, surprise: Array) -> Mixture:
    """What a surprise (..., d) says that is N(0, cov) plus the noise; cov (d, d) or (..., d, d)."""
    xp = surprise.__array_namespace__()
    levels, vectors = eigh(product(product(noise.white, cov), noise.white.mT))
    basis = product(noise.white.mT, vectors)
    projected = matvec(basis.mT, surprise)
    rates = 1 / (xp.maximum(levels, xp.zeros_like(levels))[..., None, :] + xp.exp(-noise.logs)[:, None])
    density = noise.prior + 0.5 * (xp.log(rates).sum(-1) - _dot_nodes(rates, projected**2))
    relative = xp.exp(density - density.max(-1)[..., None])
    return Mixture(relative / relative.sum(-1)[..., None], rates, basis, projected)


def _dot_nodes(rates: Array, values: Array) -> Array:
    """The rates of every node times the values (..., d): (..., n)."""
    return values @ rates.mT if _is_shared(rates, values) else matvec(rates, values)


def _is_shared(rates: Array, values: Array) -> bool:
    """Whether rounds share the rates: over trials alone, a product's bits would depend on their number."""
    return rates.ndim == 2 and values.ndim > 2


def moments(mixture: Mixture, cov: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of a part of the surprise that was N(0, cov) before."""
    xp = cov.__array_namespace__()
    rates, basis, projected = mixture.rates, mixture.basis, mixture.seen
    n, dim = rates.shape[-2:]
    if _is_shared(rates, mixture.weights):
        first = mixture.weights @ rates
        pairs = (rates[:, :, None] * rates[:, None, :]).reshape(n, dim * dim)
        second = (mixture.weights @ pairs).reshape(*first.shape, dim)
    else:
        weighted = mixture.weights[..., None] * rates
        first, second = weighted.sum(-2), weighted.mT @ rates
    excess = (
        (second - first[..., :, None] * first[..., None, :])
        * projected[..., :, None]
        * projected[..., None, :]
    )
    loadings = cov @ basis
    explained = first[..., :, None] * xp.eye(dim, dtype=cov.dtype) - excess
    return matvec(loadings, first * projected), cov - loadings @ explained @ loadings.mT
