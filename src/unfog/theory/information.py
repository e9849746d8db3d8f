"""What is learnt about the bias gamma, in nats, in closed form for any covariances.

Let n observations of precision X have shown the bias, so that gamma ~ N(g, S) with S^-1 = P + n X and
P = Sigma_gamma^-1: X = F = (Sigma_c + Sigma_n)^-1 from noisy contexts (setting 1), X = Sigma_n^-1 from pairs
(setting 2). Round t has n = t - 1 of them behind it.

    about_bias   I(gamma; n observations) = 1/2 ln det(I + n Sigma_gamma X)
    plug-in      E KL(P(c_t | chat_t, gamma*) || plug-in) = 1/2 ln det(R_t^-1 M) = 1/2 ln det(I + S N)
    exact        I(gamma; c_t | chat_t, history) = 1/2 ln [det(I + S Sigma_n^-1) / det(I + S F)]

with N = Sigma_n^-1 - F. The paper calls the second by the name of the third: the third is smaller, and the
exact denoiser attains it. Each is a ratio of determinants det(U + n X) / det(L + n X), and so a product of
(n + u_i) / (n + l_i), with u_i and l_i the eigenvalues of U and L relative to X: the sum over rounds is a
second difference of ln Gamma, however many rounds there are. U - L is N for both denoisers, and u_i - l_i is
computed from it: if little uncertainty about the bias remains, u_i and l_i agree in nearly all of their
digits. In setting 1 the exact denoiser's numbers are those of the plug-in one round later: U and L both grow
by X.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from unfog.channel.knowledge import Knowledge, known_shrinkage
from unfog.maths.arrays import Array
from unfog.validation import InputError, one_of

SETTINGS = ("unobserved", "delayed")
DENOISERS = ("plugin", "exact")
VERSIONS = ("printed", "corrected")
_LARGE = 16  # from here on Stirling's series is exact in double precision
_MANY, _DENSE = (
    1000,
    4,
)  # the least number of horizons, and the most that the largest may be times their number


class Ratio(NamedTuple):
    """The information of a round is 1/2 sum_i ln(1 + gap_i / (n + lower_i)), n = t - 1."""

    lower: Array  # (d,)
    gap: Array  # (d,)


def horizons(values: object, least: int = 1) -> Array:
    """Horizons as whole numbers in double precision, any shape."""
    array = numbers(values)
    if array is None or not array.size or (array != np.round(array)).any() or (array < least).any():
        raise InputError("horizon", repr(values)[:80], f"whole numbers from {least} on")
    return array


def numbers(values: object) -> Array | None:
    """An array of finite numbers, or None where these are none: text, truth values, something ragged."""
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    is_finite = array.dtype.kind in "iuf" and np.isfinite(array).all()
    return array.astype(np.float64) if is_finite else None


def precision(known: Knowledge, setting: str) -> Array:
    """X, the precision of what one round shows of the bias, (d, d)."""
    one_of("setting", setting, SETTINGS)
    hidden = known.context_cov if setting == "unobserved" else np.zeros_like(known.context_cov)
    return _inverse(hidden + known.noise_cov)


def about_bias(known: Knowledge, seen: object, setting: str = "delayed") -> Array:
    """I(gamma; history) after `seen` rounds."""
    root = np.linalg.cholesky(known.bias_cov)
    rates = np.linalg.eigvalsh(root.T @ precision(known, setting) @ root)
    nats: Array = 0.5 * np.log1p(horizons(seen, 0)[..., None] * rates).sum(-1)
    return nats


def ratio(known: Knowledge, setting: str = "unobserved", denoiser: str = "plugin") -> Ratio:
    """The eigenvalues that make a denoiser's numbers in a setting.

    In the coordinates in which L is diagonal, a unit eigenvector q_i of U has, without cancellation,
    u_i - l_i = q_i'N q_i + sum_j q_ji^2 (l_j - l_i). N = Sigma_n^-1 - F is Sigma_n^-1 B, B the gain.
    """
    one_of("denoiser", denoiser, DENOISERS)
    unit, start = precision(known, setting), _inverse(known.bias_cov)
    if denoiser == "exact":
        start = start + precision(known, "unobserved")
    lower, vectors = np.linalg.eigh(_relative(start, unit))
    added = precision(known, "delayed") @ known_shrinkage(known).gain
    rotated = vectors.T @ _relative(added, unit) @ vectors
    _, axes = np.linalg.eigh(np.diag(lower) + rotated)
    gap = (axes * (rotated @ axes)).sum(0) + (axes**2 * (lower[:, None] - lower)).sum(0)
    return Ratio(lower, np.maximum(gap, 0))


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _relative(matrix: Array, unit: Array) -> Array:
    """A symmetric matrix in coordinates in which a positive definite one is I."""
    root = np.linalg.cholesky(unit)
    scaled: Array = np.linalg.solve(root, np.linalg.solve(root, matrix).T)
    return scaled / 2 + scaled.T / 2


def round_information(
    known: Knowledge, number: object, setting: str = "unobserved", denoiser: str = "plugin"
) -> Array:
    """The expected KL of one round's belief about the context, for rounds 1, 2, ..."""
    lower, gap = ratio(known, setting, denoiser)
    seen = horizons(number)[..., None] - 1
    nats: Array = 0.5 * np.log1p(gap / (seen + lower)).sum(-1)
    return nats


def total(known: Knowledge, horizon: object, setting: str = "unobserved", denoiser: str = "plugin") -> Array:
    """The sum of `round_information` over rounds 1 to T; for many dense horizons by a cumulative sum."""
    ends = horizons(horizon)
    if ends.size >= _MANY and ends.max() <= _DENSE * ends.size:
        rounds = round_information(known, np.arange(1, ends.max() + 1), setting, denoiser)
        return np.cumsum(rounds, dtype=np.longdouble)[ends.astype(int) - 1].astype(np.float64)
    lower, gap = ratio(known, setting, denoiser)
    nats: Array = 0.5 * _second_difference(lower, ends[..., None], gap).sum(-1)
    return nats


def _second_difference(x: Array, one: Array, other: Array) -> Array:
    """Ln Gamma(x + p + q) - ln Gamma(x + p) - ln Gamma(x + q) + ln Gamma(x), for x (d,), p, q (..., d) > 0.

    For large x terms may cancel to the last digit, so only the differences in Stirling's series are summed.
    """
    less, more = np.minimum(one, other), np.maximum(one, other)
    small, below = x < _LARGE, np.zeros_like(x + less)
    for step in range(_LARGE if small.any() else 0):
        below[..., small] += _cross_ratio(x[small] + step, less[..., small], more[..., small])
    x = np.where(small, x + _LARGE, x)
    bend = less * (_bend(less / (x + more)) - _bend(less / x))
    inverse = less / x / (x + less) * (more / (x + more)) * ((2 * x + less + more) / (x + less + more))
    high = (_mixed(x, less, more, power) / size for power, size in ((-3, -360), (-5, 1260), (-7, -1680)))
    series = inverse / 12 + sum(high)
    difference: Array = less * np.log1p(more / (x + less)) + bend - 0.5 * _cross_ratio(x, less, more) + series
    return difference - below


def _cross_ratio(x: Array, one: Array, other: Array) -> Array:
    """ln[x (x + p + q) / ((x + p) (x + q))]."""
    lost = one / (x + one) * (other / (x + other))
    product = x / (x + one) * ((x + one + other) / (x + other))
    return np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(product))


def _bend(z: Array) -> Array:
    """ln(1 + z) / z - 1."""
    small = np.minimum(z, 1e-3)
    series = small * (-1 / 2 + small * (1 / 3 + small * (-1 / 4 + small * (1 / 5 - small / 6))))
    large = np.maximum(z, 1e-3)
    return np.where(z < 1e-3, series, np.log1p(large) / large - 1)


def _mixed(x: Array, one: Array, other: Array, power: int) -> Array:
    """The second difference of a power."""
    difference: Array = (x + one + other) ** power - (x + one) ** power - (x + other) ** power + x**power
    return difference


def harmonic(start: Array, horizon: Array) -> Array:
    """sum_{n < T} 1 / (n + start)."""
    difference: Array = digamma(horizon + start) - digamma(start)
    return difference


def isotropic(
    dim: int, context: float, noise: float, bias: float, horizon: object, version: str = "corrected"
) -> Array:
    """The paper's bound on the plug-in's total where all covariances are multiples of I, in setting 1.

    d sc^2 / (2 sn^2) (sg^2 / (sc^2 + sn^2) + ln(T - 1)). Printed, it rests on 1 + 1/2 + ... + 1/T <= ln T,
    which is false: ln needs a 1 added to it. (Its Theorem 1 leaves the 1/2 out: too much, not too little.)
    """
    one_of("version", version, VERSIONS)
    return dim * context / (2 * noise) * (bias / (context + noise) + log_sum(horizon, version))


def log_sum(horizon: object, version: str) -> Array:
    """The paper's bound on 1 + 1/2 + ... + 1/(T - 1): ln(T - 1), and 1 more where corrected; 0 for T = 1."""
    rest = horizons(horizon) - 1
    return np.where(rest > 0, np.log(np.maximum(rest, 1)) + (version == "corrected"), 0.0)
