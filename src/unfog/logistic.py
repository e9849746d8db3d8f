"""The logistic function, and its mean under a Gaussian or a quadratic form of Gaussians.

For S = shift + sum_k (slope_k z_k + curvature_k z_k^2), z ~ N(0, I), the characteristic function is known and
the sigmoid's is 1 / sinh, so that one integral over a line does what would be one over R^d (the inversion of
J. P. Imhof, *Computing the distribution of quadratic forms in normal variables*, with the logistic kernel in
the place of a step):

    E[sigmoid(S)] = 1/2 + int_0^inf |f(u)| sin(arg f(u)) / sinh(pi u) du,
    f(u) = E[exp(i u S)] = exp(i u shift) prod_k q_k^(-1/2) exp(-u^2 slope_k^2 / (2 q_k)),
    q_k = 1 - 2 i u curvature_k.

The integrand falls as exp(-pi u): past `LAST` less than 1e-5 is left. Gauss and Legendre's rule with n nodes
follows scores of size up to about n / 2; where the mean is so many standard deviations from zero that the
sigmoid is 0 or 1, the mean is moved nearer, which changes nothing that counts.
"""

from functools import lru_cache

import numpy as np

from unfog.arrays import Array

LAST = 3.8
NODES = 64
FLAT, TAIL = 13.0, 14.0  # sigmoid(13) = 1 - 2e-6; a quadratic form beyond 14 standard deviations: below 1e-4


def sigmoid(score: Array) -> Array:
    """1 / (1 + exp(-score)), without overflow."""
    xp = score.__array_namespace__()
    return 0.5 + 0.5 * xp.tanh(0.5 * score)


def softplus(score: Array) -> Array:
    """log(1 + exp(score)), without overflow."""
    xp = score.__array_namespace__()
    return xp.maximum(score, 0.0) + xp.log1p(xp.exp(-xp.abs(score)))


@lru_cache
def _rule(nodes: int) -> tuple[Array, Array]:
    """Points on (0, LAST) and weights, with the kernel 1 / sinh(pi u) in them."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    points, weights = LAST / 2 * (points + 1), LAST / 2 * weights
    return points, weights / np.sinh(np.pi * points)


def expected_sigmoid(shift: Array, slope: Array, curvature: Array, nodes: int = NODES) -> Array:
    """E[sigmoid(shift + slope'z + z'diag(curvature)z)]: (...,), (..., d) and (..., d) -> (...,)."""
    xp = shift.__array_namespace__()
    points, weights = (xp.asarray(x, dtype=shift.dtype) for x in _rule(nodes))
    bend = curvature.sum(-1)
    limit = FLAT + TAIL * xp.sqrt((2 * curvature**2 + slope**2).sum(-1))
    near = xp.clip(shift + bend, -limit, limit) - bend
    phase, decay = near[..., None] * points, 0.0 * points
    for k in range(slope.shape[-1]):  # one coordinate at a time: d arrays (..., n) are never held together
        turn = 2 * curvature[..., k, None] * points
        size = 1 + turn**2
        pull = 0.5 * (slope[..., k, None] * points) ** 2 / size
        phase = phase + (0.5 * xp.atan(turn) - pull * turn)
        decay = decay + (0.25 * xp.log(size) + pull)
    mean: Array = 0.5 + xp.vecdot(xp.exp(-decay) * xp.sin(phase), weights)
    return mean
