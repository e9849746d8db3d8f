"""Kalman filters in square-root form, and a bank of them: several hypotheses filtered side by side.

`Belief` is N(mean, root root'), of roots however wide. A step of time widens the root by the root of what the
step adds. To see value = rows x + noise_root z, z standard normal, is to triangularise, by rotations T of
columns,

    ( noise_root  rows root )  T  =  ( S^(1/2)   0    )
    (     0          root   )        (   K     root'  ),    mean' = mean + K S^(-1/2) (value - rows mean).

No covariance is subtracted from another, so root' root'' stays positive semi-definite whatever the rounding,
and an exact observation (noise_root zero) is one like any other. T. Kailath, A. H. Sayed, B. Hassibi, *Linear
Estimation*, chapter 12; the filter is R. E. Kalman's.

The bank has several hypotheses about how a hidden vector x walks and how it is seen. Under hypothesis h the
vector walks by N(0, walk_h) a round, and a measurement is y = x + N(0, hidden) + noise. The noise has the
covariance f Sigma with a new factor f every time: f_j with probability p_j. One factor is Gaussian
noise of another size; several stand for heavy tails, as Student's t is a mixture of Gaussians over its
precision (maths/student.py). With x ~ N(g_h, S_h), e = y - g_h and P_j = S_h + hidden + f_j Sigma,

    p(y | h) = sum_j p_j N(e; 0, P_j),     q_j = p(f_j | y, h),     score = sum_j q_j P_j^-1 e,
    g_h <- g_h + S_h score,     S_h <- S_h - keep S_h (sum_j p_j P_j^-1) S_h + walk_h.

With one factor, and keep = 1, this is Kalman's filter, exact. With several the posterior of x is a mixture:
its mean is exact for one round, and for its covariance the information of a measurement is what it is on
average (C. J. Masreliez, *Approximate Non-Gaussian Filtering with Linear State and Observation Relations*):
sum_j p_j P_j^-1 were f known, and the share `keep` of it since f is not (`information_share`). So covariances
do not depend on what was measured: those of all trials are the same, as long as nothing is lost.

Weights follow Bayes' rule. With a rate of switching r each round ends with w <- (1 - r) w + r prior, so that
a hypothesis that was ruled out can come back. It has many names: multiple-model adaptive estimation (D. T.
Magill, *Optimal Adaptive Estimation of Sampled Stochastic Processes*), Bayesian model averaging; weights move
as those of interacting multiple models do (H. A. P. Blom and Y. Bar-Shalom, *The Interacting Multiple Model
Algorithm for Systems with Markovian Switching Coefficients*), whose mixing of states is left out.
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints, matvec
from unfog.maths.gaussian import invert_covariance

NODES = 400  # nodes of the integral in `information_share`


class Belief(NamedTuple):
    """A Gaussian belief about a vector x."""

    mean: Array  # (..., n)
    root: Array  # (..., n, m), m >= n

    def moved(self, keeps: Array, adds: Array) -> "Belief":
        """After a step of time: x <- keeps x + adds z, with keeps (..., n) and adds (..., n, q)."""
        xp, root = keeps.__array_namespace__(), keeps[..., None] * self.root
        batch = np.broadcast_shapes(root.shape[:-2], adds.shape[:-2])
        columns = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (root, adds))
        return Belief(keeps * self.mean, xp.concat([*columns], axis=-1))

    def seen(self, rows: Array, noise_root: Array, value: Array, lost: Bools | None = None) -> "Belief":
        """The belief after value (..., d) = rows x + noise_root z; its `lost` coordinates are ignored."""
        return self.condition_on(Belief(matvec(rows, self.mean), rows @ self.root), noise_root, value, lost)

    def condition_on(
        self, other: "Belief", noise_root: Array, value: Array, lost: Bools | None = None
    ) -> "Belief":
        """The belief after a noisy value (..., d) of another vector, whose root has the same columns."""
        rows, noise_root, surprise = _drop_lost(other, noise_root, value, lost)
        d, lower = value.shape[-1], triangle(_stack_blocks(noise_root, rows, self.root))
        whitened = forward(lower[..., :d, :d], surprise)
        return Belief(self.mean + matvec(lower[..., d:, :d], whitened), lower[..., d:, d:])

    def density(self, noise_root: Array, value: Array, lost: Bools | None = None) -> Array:
        """The logarithm of the density of value (..., n) = x + noise_root z, (...,); `lost` ones left out.

        log N(value; mean, S) = -(|S^(-1/2) (value - mean)|^2 + n log 2 pi) / 2 - sum of log |diag S^(1/2)|.
        """
        xp, present = value.__array_namespace__(), 1.0 if lost is None else (~lost).astype(value.dtype)
        root, noise_root, surprise = _drop_lost(self, noise_root, value, lost)
        lower = triangle(_concat_columns(noise_root, root))
        squares = forward(lower, surprise) ** 2 + present * np.log(2 * np.pi)
        log_density: Array = -0.5 * squares.sum(-1) - xp.log(xp.abs(xp.linalg.diagonal(lower))).sum(-1)
        return log_density

    def cov(self) -> Array:
        """The covariance root root', (..., n, n)."""
        return self.root @ self.root.mT


def _drop_lost(
    belief: Belief, noise_root: Array, value: Array, lost: Bools | None
) -> tuple[Array, Array, Array]:
    """Root, noise and surprise of a value, with its lost coordinates made uninformative."""
    xp, surprise = value.__array_namespace__(), value - belief.mean
    if lost is None:
        return belief.root, noise_root, surprise
    present = (~lost).astype(belief.root.dtype)[..., None]
    return present * belief.root, _replace_lost_noise(noise_root, present), xp.where(lost, 0.0, surprise)


def _replace_lost_noise(noise_root: Array, present: Array) -> Array:
    """The noise with unit variance in lost coordinates, so that the covariance can still be inverted."""
    xp, d = noise_root.__array_namespace__(), present.shape[-2]
    return _concat_columns((1 - present) * xp.eye(d, dtype=present.dtype), present * noise_root)


def _stack_blocks(noise_root: Array, rows: Array, root: Array) -> Array:
    """The block matrix ((noise_root, rows), (0, root))."""
    xp, n = root.__array_namespace__(), root.shape[-2]
    batch = np.broadcast_shapes(noise_root.shape[:-2], rows.shape[:-2], root.shape[:-2])
    zeros = xp.zeros((*batch, n, noise_root.shape[-1]), dtype=root.dtype)
    return xp.concat([_concat_columns(noise_root, rows, batch), _concat_columns(zeros, root, batch)], axis=-2)


def _concat_columns(left: Array, right: Array, batch: tuple[int, ...] = ()) -> Array:
    """The columns of both matrices side by side, broadcast to one batch."""
    xp, batch = left.__array_namespace__(), np.broadcast_shapes(batch, left.shape[:-2], right.shape[:-2])
    columns = [xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (left, right)]
    return xp.concat(columns, axis=-1)


def triangle(wide: Array) -> Array:
    """A lower triangular L (..., n, n) with L L' = wide wide', from (..., n, m), m >= n.

    In compiled programs by reflections written out (A. S. Householder), since XLA's calls of LAPACK were seen
    to deadlock on a CPU of few cores, and are slow on a GPU for small matrices.
    """
    xp = wide.__array_namespace__()
    if xp is np:
        upper: Any = np.linalg.qr(wide.mT, mode="r")
        return _fix_signs(upper.mT)
    n, m = wide.shape[-2:]
    columns = xp.arange(m)
    for k in range(n):  # shapes that stay the same compile several times as fast as ones that shrink
        wide = _reflect_row(wide, k, columns, xp)
    return _fix_signs(wide[..., :n] * xp.tril(xp.ones((n, n), dtype=wide.dtype)))


def _fix_signs(lower: Array) -> Array:
    """The triangle with a nonnegative diagonal, which makes it unique if it is invertible."""
    xp = lower.__array_namespace__()
    signs = xp.where(xp.linalg.diagonal(lower) < 0, -1.0, 1.0)
    oriented: Array = lower * signs[..., None, :]
    return oriented


def _reflect_row(wide: Array, k: int, columns: Ints, xp: Any) -> Array:
    """Reflect the columns from k on, so that row k is zero beyond its diagonal."""
    row = xp.where(columns >= k, wide[..., k, :], 0.0)
    length, first = xp.sqrt((row**2).sum(-1)), row[..., k]
    pivot = xp.where(first < 0, length, -length)  # of the opposite sign, so that nothing cancels
    mirror = xp.where(columns == k, (first - pivot)[..., None], row)
    square = (mirror**2).sum(-1)
    factor = xp.where(square > 0, 2 / xp.where(square > 0, square, 1.0), 0.0)
    return wide - (matvec(wide, mirror) * factor[..., None])[..., None] * mirror[..., None, :]


def forward(lower: Array, value: Array) -> Array:
    """lower^-1 value for a lower triangular matrix (..., d, d) and value (..., d)."""
    xp, solution = value.__array_namespace__(), list[Array]()
    for i in range(value.shape[-1]):
        subtotal = sum(lower[..., i, j] * solution[j] for j in range(i))
        solution.append((value[..., i] - subtotal) / lower[..., i, i])
    return xp.stack(solution, axis=-1)


class Family(NamedTuple):
    """Hypotheses that have equally many factors."""

    factors: Array  # (H, J)  f
    chances: Array  # (H, J)  logarithms of p
    keep: Array  # (H,)
    walk: Array  # (H, d, d)


class Beliefs(NamedTuple):
    """About x, under every hypothesis of a family."""

    mean: Array  # (..., H, d)
    cov: Array  # (H, d, d), or (..., H, d, d) where trials lost other coordinates


class Reading(NamedTuple):
    """What a measurement says under every hypothesis of a family."""

    density: Array  # (..., H)  log p(y | h), up to a constant that all hypotheses share
    chances: Array  # (..., H, J)  q
    precision: Array  # (H, J, d, d) or (..., H, J, d, d)  P^-1, zero where a coordinate was lost
    slopes: Array  # (..., H, J, d)  P^-1 e


def information_share(factors: Array, chances: Array, hidden: Array, dim: int) -> Array:
    """The share E|score|^2 / (d sum_j p_j / v_j) of information that is left if f (J,) is not known, ().

    For e ~ sum_j p_j N(0, v_j I) with v = hidden + f, noise as the unit: exact where all is isotropic, an
    integral over |e| by the midpoint rule. Student's t with nothing hidden has (nu + d) / (nu + d + 2).
    """
    xp, variances = hidden.__array_namespace__(), hidden + factors
    scales = xp.sqrt(variances)
    grid = xp.asarray(np.arange(0.5, NODES) / NODES * (np.sqrt(dim) + 9), dtype=hidden.dtype)
    density = grid ** (dim - 1) * xp.exp(-0.5 * grid**2)  # of |e| in deviations, whatever f is
    distances = scales[:, None] * grid  # |e| if f is f_j: (J, nodes)
    logs = xp.log(chances) - dim * xp.log(scales) - 0.5 * distances[..., None] ** 2 / variances
    posterior = xp.exp(logs - logs.max(-1)[..., None])
    score = distances * (posterior / variances).sum(-1) / posterior.sum(-1)
    share: Array = (
        xp.vecdot(chances, score**2 @ density) / density.sum() / (dim * (chances / variances).sum())
    )
    return share


def read(
    family: Family, beliefs: Beliefs, noise: Array, hidden: Array, value: Array, present: Array | None
) -> Reading:
    """Read a measurement (..., d); `present` is 1 where a coordinate was measured, else 0; None: all were."""
    xp = value.__array_namespace__()
    total_cov = (beliefs.cov + hidden)[..., None, :, :] + family.factors[..., None, None] * noise
    residuals = value[..., None, :] - beliefs.mean
    if present is not None:
        present = present[..., None, None, :]
        mask = present[..., :, None] * present[..., None, :]
        total_cov = mask * total_cov + (1 - present)[..., None] * xp.eye(noise.shape[-1], dtype=noise.dtype)
        residuals = xp.where(present[..., 0, :] > 0, residuals, 0.0)
    precision, log_dets = invert_covariance(total_cov)
    if present is not None:
        precision = mask * precision
    slopes = matvec(precision, residuals[..., None, :])
    logs = family.chances - 0.5 * (log_dets + xp.vecdot(residuals[..., None, :], slopes))
    if family.factors.shape[-1] == 1:
        return Reading(logs[..., 0], xp.ones_like(logs), precision, slopes)
    largest = logs.max(-1)[..., None]
    relative = xp.exp(logs - largest)
    totals = relative.sum(-1)[..., None]
    return Reading((largest + xp.log(totals))[..., 0], relative / totals, precision, slopes)


def advance(family: Family, beliefs: Beliefs, reading: Reading) -> Beliefs:
    """The beliefs after a measurement and the step that follows it."""
    xp = beliefs.mean.__array_namespace__()
    score = (reading.chances[..., None] * reading.slopes).sum(-2)
    weighted = xp.exp(family.chances)[..., None, None] * reading.precision
    information = family.keep[..., None, None] * weighted.sum(-3)
    cov = beliefs.cov - beliefs.cov @ information @ beliefs.cov + family.walk
    return Beliefs(beliefs.mean + matvec(beliefs.cov, score), 0.5 * (cov + cov.mT))


def apply_bayes(weights: Array, densities: Array) -> Array:
    """Bayes' rule for logarithms of probabilities (..., H)."""
    xp = weights.__array_namespace__()
    logs = weights + densities
    logs = logs - logs.max(-1)[..., None]
    posterior: Array = logs - xp.log(xp.exp(logs).sum(-1))[..., None]
    return posterior


def mix_with_prior(weights: Array, prior: Array, rate: float) -> Array:
    """Logarithms of probabilities (..., H) after a round in which the truth may have become another."""
    xp = weights.__array_namespace__()
    if rate == 0:
        return weights
    # Without a floor a hypothesis that was ruled out could never return, even if none is left.
    floor = xp.finfo(weights.dtype).tiny
    log_weights: Array = xp.log(xp.maximum((1 - rate) * xp.exp(weights) + rate * prior, floor))
    return log_weights


def hidden_moments(weights: Array, readings: list[Reading], cov: Array) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) of a part of what hid x that was N(0, cov) before.

    `weights` are the probabilities (..., H) of the hypotheses of all families after the measurement. Under h
    and f_j that part is N(cov P^-1 e, cov - cov P^-1 cov); these are the moments of the mixture.
    """
    xp, dim = cov.__array_namespace__(), cov.shape[-1]
    first, second = xp.zeros_like(cov[0]), xp.zeros_like(cov)
    start = 0
    for reading in readings:
        number = reading.density.shape[-1]
        shares = (weights[..., start : start + number, None] * reading.chances).reshape(
            *weights.shape[:-1], -1
        )
        start += number
        count = shares.shape[-1]
        slopes = reading.slopes.reshape(*reading.slopes.shape[:-3], count, dim)
        flat = reading.precision.reshape(*reading.precision.shape[:-4], count, dim * dim)
        mean_precision = matvec(flat.mT, shares).reshape(*shares.shape[:-1], dim, dim)
        first = first + matvec(slopes.mT, shares)
        second = second + (mean_precision - (shares[..., None] * slopes).mT @ slopes)
    second = second + first[..., :, None] * first[..., None, :]
    return matvec(cov, first), cov - cov @ second @ cov
