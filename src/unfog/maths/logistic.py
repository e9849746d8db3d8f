"""The logistic function and its mean under a Gaussian or a quadratic form of Gaussians; Polya-Gamma draws.

For S = shift + sum_k (slope_k z_k + curvature_k z_k^2), z ~ N(0, I), the characteristic function is known and
the sigmoid's is 1 / sinh, so that one integral over a line does what would be one over R^d (the inversion of
J. P. Imhof, *Computing the distribution of quadratic forms in normal variables*, with the logistic kernel in
the place of a step):

    E[sigmoid(S)] = 1/2 + int_0^inf |f(u)| sin(arg f(u)) / sinh(pi u) du,
    f(u) = E[exp(i u S)] = exp(i u shift) prod_k q_k^(-1/2) exp(-u^2 slope_k^2 / (2 q_k)),
    q_k = 1 - 2 i u curvature_k.

The integrand falls as exp(-pi u): past `LAST` less than 1e-5 is left. Gauss and Legendre's rule with n nodes
follows scores of size up to about n / 2, so that n must grow with the scores (worlds/synthetic.py sees to
it); where the mean is so far from zero that the sigmoid is 0 or 1, it is moved nearer, within 2e-5.

Samplers of logistic models draw from the Polya-Gamma distribution PG(1, z). N. G. Polson, J. G. Scott and
J. Windle, *Bayesian Inference for Logistic Models Using Polya-Gamma Latent Variables*: it is the sum over
k = 1, 2, ... of e_k / (2 pi^2 ((k - 1/2)^2 + (z / 2 pi)^2)) with independent e_k ~ Exp(1). The first `terms`
are drawn as they are; the rest, after four of them three ten-thousandths of the variance, is replaced by an
inverse Gaussian of the same mean and variance. Its skewness, 3 sd / mean, is within a fifth of the true one
at z = 0 and tends to it as z grows. The distribution function is off by 1e-5 at most for |z| < 1, 2e-5 at 3,
1e-4 at 10 and 1e-3 at 50, where a round hardly counts: far below what a sampler's own noise can show. Unlike
rejection a draw always takes equally many standard normals, so that trials stay side by side and any engine
can run it.
"""

from functools import lru_cache

import numpy as np

from unfog.maths.arrays import Array, rowdots

LAST = 3.8
NODES = 64
FLAT = 13.0  # sigmoid(13) = 1 - 2e-6
RARE = 11.5  # exp(-11.5) = 1e-5


def sigmoid(score: Array) -> Array:
    """1 / (1 + exp(-score)), without overflow."""
    xp = score.__array_namespace__()
    return 0.5 + 0.5 * xp.tanh(0.5 * score)


def softplus(score: Array) -> Array:
    """log(1 + exp(score)), without overflow."""
    xp = score.__array_namespace__()
    return xp.maximum(score, 0.0) + xp.log1p(xp.exp(-xp.abs(score)))


def expected_sigmoid(shift: Array, slope: Array, curvature: Array, nodes: int = NODES) -> Array:
    """E[sigmoid(shift + slope'z + z'diag(curvature)z)]: (...,), (..., d) and (..., d) -> (...,).

    A curvature that many share, (..., 1, d), is worked on once.
    """
    xp = shift.__array_namespace__()
    if shift.ndim < 2:
        return _integral(shift, slope, curvature, nodes)
    # One trial at a time: all at once would not fit into the processor's cache.
    return xp.stack(
        [
            expected_sigmoid(_trial_of(shift, i), _trial_of(slope, i), _trial_of(curvature, i), nodes)
            for i in range(shift.shape[0])
        ]
    )


def _trial_of(values: Array, trial: int) -> Array:
    """The values of one trial, or those that all trials share."""
    return values[trial if values.shape[0] > 1 else 0]


@lru_cache
def _quadrature_rule(nodes: int) -> tuple[Array, Array]:
    """Points on (0, LAST) and weights, with the kernel 1 / sinh(pi u) in them."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    points, weights = LAST / 2 * (points + 1), LAST / 2 * weights
    return points, weights / np.sinh(np.pi * points)


def _integral(shift: Array, slope: Array, curvature: Array, nodes: int) -> Array:
    """The inversion integral of the module's docstring, by quadrature."""
    xp = shift.__array_namespace__()
    points, weights = (xp.asarray(x, dtype=shift.dtype) for x in _quadrature_rule(nodes))
    clipped = _clip_shift(shift, slope, curvature)
    tangents = 2 * curvature[..., None] * points
    size = 1 + tangents**2
    damping = 0.5 * points**2 / size
    decay = 0.25 * xp.log(size).sum(-2) + rowdots(damping.mT, slope**2)
    phase = (
        clipped[..., None] * points
        + 0.5 * xp.atan(tangents).sum(-2)
        - rowdots((damping * tangents).mT, slope**2)
    )
    mean: Array = 0.5 + xp.vecdot(xp.exp(-decay) * xp.sin(phase), weights)
    return mean


def _clip_shift(shift: Array, slope: Array, curvature: Array) -> Array:
    """The shift, clipped where the score stays beyond +-FLAT anyway, except in one case in exp(RARE).

    A quadratic form is below its mean by more than sqrt(2 x variance) + 2 x max(-curvature, 0) with
    probability exp(-x) at most: B. Laurent and P. Massart, *Adaptive estimation of a quadratic functional by
    model selection*.
    """
    xp = shift.__array_namespace__()
    reach = FLAT + xp.sqrt(2 * RARE * (2 * curvature**2 + slope**2).sum(-1))
    high = reach + 2 * RARE * xp.maximum((-curvature).max(-1), 0.0)
    low = reach + 2 * RARE * xp.maximum(curvature.max(-1), 0.0)
    mean_curvature = curvature.sum(-1)
    return xp.clip(shift + mean_curvature, -low, high) - mean_curvature


TERMS = 4
SMALL = 0.3  # below it mean and variance are power series with these coefficients
MEAN = (1 / 4, -1 / 48, 1 / 480, -17 / 80640, 31 / 1451520)
VARIANCE = (1 / 24, -1 / 120, 17 / 13440, -31 / 181440, 691 / 31933440)


def normals(terms: int = TERMS) -> int:
    """How many standard normals a draw takes: two for each exponential, three for the inverse Gaussian."""
    return 2 * terms + 3


def moments(z: Array) -> tuple[Array, Array]:
    """Mean and variance of PG(1, z)."""
    xp = z.__array_namespace__()
    size = xp.maximum(xp.abs(z), SMALL)
    half = xp.tanh(size / 2)
    square = xp.minimum(z**2, SMALL**2)
    is_small = xp.abs(z) < SMALL
    mean = xp.where(is_small, _evaluate_series(square, MEAN), half / (2 * size))
    variance = xp.where(
        is_small, _evaluate_series(square, VARIANCE), (2 * half - size * (1 - half**2)) / (4 * size**3)
    )
    return mean, variance


def _evaluate_series(square: Array, coefficients: tuple[float, ...]) -> Array:
    """The power series in `square`, by Horner's rule."""
    total = square.__array_namespace__().zeros_like(square)
    for coefficient in reversed(coefficients):
        total = total * square + coefficient
    return total


def draw(z: Array, normals: Array, terms: int = TERMS) -> Array:
    """Draws of PG(1, z): z (...,) and normals (..., 2 terms + 3) -> (...,)."""
    mean, variance = moments(z)
    slope = (z / (2 * np.pi)) ** 2
    total = 0.0 * z
    for k in range(terms):
        weight = 1 / (2 * np.pi**2 * ((k + 0.5) ** 2 + slope))
        exponential = 0.5 * (normals[..., 2 * k] ** 2 + normals[..., 2 * k + 1] ** 2)
        total = total + weight * exponential
        mean, variance = mean - weight, variance - weight**2
    return total + _inverse_gaussian(mean, variance, normals[..., 2 * terms :])


def _inverse_gaussian(mean: Array, variance: Array, normals: Array) -> Array:
    """J. R. Michael, W. R. Schucany and R. W. Haas, *Generating random variates using transformations*."""
    xp = mean.__array_namespace__()
    spread = 0.5 * normals[..., 0] ** 2 * variance / mean**2
    low = 1 / (1 + spread + xp.sqrt(spread * (spread + 2)))
    uniform = xp.exp(-0.5 * (normals[..., 1] ** 2 + normals[..., 2] ** 2))
    return mean * xp.where(uniform * (1 + low) <= 1, low, 1 / low)
