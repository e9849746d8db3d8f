"""Time constants if most noisy contexts have no true one beside them: from both kinds of rows together.

`fit_time_constants` chooses the rows to fit. If readings without a true context outnumber the pairs, both are
used, as below. Otherwise, and always with cycles, which this fit does not support, the pairs alone are used
(channel/fit_dynamics.py).

The covariances between coordinates are those of the pairs, up to one factor for contexts and one for errors.
In coordinates in which both are diagonal,

    true(t)  = level + fast,    noisy(t) = level + fast + bias + error + white,

and every coordinate is a Kalman filter of its own, of four states; level and bias start from N(0, `VAGUE`
times their size). Parts are dropped as in channel/fit_dynamics.py; limits are the estimate times or divided
by exp(1.96 standard errors of its logarithm), with errors from the curvature. Only the true contexts can tell
whether a slow move belongs to the level or to the bias.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.channel import moments
from unfog.channel.dynamics import NEVER, ONE_SIDED, PAIR, TINY, Drop, Dynamics, Moving, diagnose_residuals
from unfog.channel.fit_dynamics import Constant, Pairs, Timing, check_order, check_times, timing, top
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.optimize import Box, Function, Place, climb
from unfog.maths.statistics import normal_reach
from unfog.validation import InputError

LEVEL, FAST, BIAS, ERROR, WHITE, CONTEXTS, ERRORS = range(7)  # indices in a point
NAMES = ("level.walk", "fast.time", "bias.walk", "error.time", "white.share", "contexts.size", "errors.size")
DROPS = (
    Drop("level.walk", ((LEVEL, -np.inf),), ONE_SIDED),
    Drop("bias.walk", ((BIAS, -np.inf),), ONE_SIDED),
    Drop("white", ((WHITE, -np.inf),), ONE_SIDED),
    Drop("error", ((WHITE, np.inf), (ERROR, -np.inf)), PAIR),
)
SIZES = (np.log(0.05), np.log(20.0))  # limits of the factors on the covariances of the pairs
VAGUE = 1e4
SPARSE_NOTE = (
    "{alone} noisy contexts without a true one are used beside {pairs} pairs: which of level and bias a slow "
    "move belongs to is decided by the true contexts alone"
)


class Study(NamedTuple):
    """The data of a study: readings and true contexts, row by row, and labels of groups."""

    noisy: Array  # (n, d)
    true: Array  # (n, d)
    groups: npt.ArrayLike | None

    @property
    def alone(self) -> int:
        """How many whole readings have no whole truth beside them."""
        seen, known = (np.isfinite(part).all(axis=1) for part in self[:2])
        return int((seen & ~known).sum())


class Rows(NamedTuple):
    """Readings, in the order of time within each label."""

    noisy: Array  # (n, d)
    true: Array  # (n, d)  NaN where there is none
    times: Array  # (n,)
    labels: Ints  # (n,)


class Covs(NamedTuple):
    """Covariances estimated from the pairs, (d, d) each."""

    contexts: Array
    errors: Array
    bias: Array  # at the start


class Record(NamedTuple):
    """Readings in the order of time, series after series, in coordinates of their own."""

    noisy: Array  # (n, d)
    true: Array  # (n, d)
    paired: Bools  # (n,)  whether there is a true context, one for each moment
    steps: Array  # (n,)
    first: Bools  # (n,)
    sizes: Array  # (d,)  variances of contexts where those of errors are 1
    scale: float  # log-determinant of the transformation to these coordinates


class Numbers(NamedTuple):
    """The numbers of B points, (B, 1) each."""

    level: Array
    fast: Array
    bias: Array
    error: Array
    white: Array
    contexts: Array
    errors: Array


class SparseFit(NamedTuple):
    """The best constants, with standardised innovations."""

    numbers: dict[str, float]
    constants: dict[str, Constant]
    value: float  # log L
    true_news: Array  # (pairs, d)  standardised
    noisy_news: Array  # (n, d)


def fit_time_constants(
    study: Study, times: npt.ArrayLike, periods: tuple[float, ...], covs: Covs, *, few: bool
) -> Timing:
    """Fit the time constants; `few`: there are few pairs, so use all readings and not the pairs alone."""
    used = np.asarray(np.isfinite(study.noisy if few else study.noisy + study.true).all(axis=1))
    noisy, true = study.noisy[used], study.true[used]
    when, labels = check_times(times, used), moments.labels(study.groups, used)
    if few:
        return fit_sparse(Rows(noisy, true, when, labels), covs)
    fitted = timing(Pairs(true, noisy - true, when, labels), periods, covs.bias)
    if study.alone <= used.sum():
        return fitted
    note = f"{study.alone} noisy contexts without a true one are not used, since cycles are asked for"
    return fitted._replace(notes=(*fitted.notes, note))


def fit_sparse(rows: Rows, covs: Covs) -> Timing:
    """Fit the dynamics to all rows; checks are of the innovations of true and of noisy contexts."""
    order = np.argsort(rows.labels, kind="stable")
    times, labels = rows.times[order], rows.labels[order]
    check_order(times, labels)
    first = np.diff(labels, prepend=-1) != 0
    pairs = _check_pairs(rows.true)
    data = record(rows.noisy[order], rows.true[order], times, first, (covs.contexts, covs.errors))
    best = fit_record(data)
    unit = np.eye(len(covs.bias))
    true, noisy = (diagnose_residuals(z, np.ones(len(z)), unit) for z in (best.true_news, best.noisy_news))
    notes = [SPARSE_NOTE.format(alone=len(times) - pairs, pairs=pairs)]
    notes += [f"true contexts: {words}" for words in true.doubts()]
    notes += [f"noisy contexts: {words}" for words in noisy.doubts()]
    span = max(part.sum() for part in np.split(data.steps, np.flatnonzero(first)[1:]))
    since = float(times[-1]) if first.sum() == 1 else None
    dynamics = _build_dynamics(best, covs, float(span))._replace(since=since).check(len(unit))
    return Timing(dynamics, best.constants, true, noisy, best.value, tuple(notes))


def _check_pairs(true: Array) -> int:
    """Count the pairs; raise InputError if they are fewer than the numbers of a mean and a covariance."""
    pairs, d = int(np.isfinite(true).all(axis=1).sum()), true.shape[1]
    least = d + d * (d + 1) // 2
    if pairs < least:
        raise InputError(
            "true", f"{pairs} pairs are complete", f"at least {least} with times, for {d} dimensions"
        )
    return pairs


def _build_dynamics(best: SparseFit, covs: Covs, span: float) -> Dynamics:
    now = best.numbers
    contexts, errors = now["contexts.size"] * covs.contexts, now["errors.size"] * covs.errors
    level, bias, white = now["level.walk"] * contexts, now["bias.walk"] * errors, now["white.share"]
    return Dynamics(
        fast=Moving(contexts, now["fast.time"]),
        bias=Moving(covs.bias, np.inf, bias if bias.any() else None),
        white=white * errors if white else None,
        level=Moving(level * span / 3, np.inf, level) if level.any() else None,
        error=Moving((1 - white) * errors, now["error.time"]) if white < 1 else None,
    )


def record(noisy: Array, true: Array, times: Array, first: Bools, covs: tuple[Array, Array]) -> Record:
    """The record of rows (n, d), true ones NaN if unknown; `covs` are those of contexts and of errors."""
    root = np.linalg.cholesky(covs[1])
    inner = np.linalg.solve(root, np.linalg.solve(root, covs[0]).T)
    sizes, vectors = np.linalg.eigh((inner + inner.T) / 2)
    basis = np.linalg.solve(root.T, vectors)  # rows times this
    steps = np.where(first, 0.0, np.diff(times, prepend=times[0]))
    paired = np.asarray(np.isfinite(true).all(axis=1))
    last_paired = np.maximum.accumulate(np.where(paired, np.arange(len(times)), -1))
    before = np.concatenate([[-1], last_paired[:-1]])
    series_start = np.maximum.accumulate(np.where(first, np.arange(len(times)), 0))
    is_repeat = (before >= series_start) & (times[before] == times)
    scale = float(np.linalg.slogdet(basis)[1])
    centre = true[paired].mean(axis=0), noisy[paired].mean(axis=0) - true[paired].mean(axis=0)
    rows = (noisy - centre[0] - centre[1]) @ basis, np.where(paired[:, None], true - centre[0], 0.0) @ basis
    return Record(rows[0], rows[1], paired & ~is_repeat, steps, first, sizes, scale)


def fit_record(data: Record) -> SparseFit:
    """Fit the constants by maximum likelihood."""

    def value(points: Array) -> Array:
        return news(data, numbers(points))[0]

    box = _box(data)
    grid = _grid(data, box)
    best = grid[np.argsort(-value(grid))[:2]]
    free = np.ones((2, 7), bool)
    peak = top(climb(value, best, free, box))
    at, free = _drop_parts(value, peak, free[0], box)
    now = numbers(at.at)
    _, true_news, noisy_news = news(data, now)
    estimates = {name: float(part[0, 0]) for name, part in zip(NAMES, now, strict=True)}
    constants = {name: _constant(at, free, k) for k, name in enumerate(NAMES[:CONTEXTS])}
    return SparseFit(estimates, constants, float(at.value[0]), true_news[data.paired, 0], noisy_news[:, 0])


def _drop_parts(value: Function, peak: Place, free: Bools, box: Box) -> tuple[Place, Bools]:
    """Drop parts that the data do not support, the cheapest first."""
    while True:
        drops = [drop for drop in DROPS if all(free[i] for i, _ in drop.entries)]
        if not drops:
            return peak, free
        rest, starts = np.tile(free, (len(drops), 1)), np.repeat(peak.at, len(drops), 0)
        for k, drop in enumerate(drops):
            for i, entry in drop.entries:
                rest[k, i], starts[k, i] = False, entry
        peaks = climb(value, starts, rest, box)
        costs = 2 * (peak.value[0] - peaks.value) / np.array([drop.allowed for drop in drops])
        k = int(np.argmin(costs))
        if costs[k] >= 1:
            return peak, free
        peak, free = Place(*(part[k : k + 1] for part in peaks)), rest[k]


def _box(data: Record) -> Box:
    steps = data.steps[data.steps > 0]
    span = max(part.sum() for part in np.split(data.steps, np.flatnonzero(data.first)[1:]))
    rates, times = np.log([1e-4 / span, 1e4 / np.median(steps)]), np.log([steps.min() / 8, 20 * span])
    return Box(*np.array([rates, times, rates, times, [-9.0, 9.0], SIZES, SIZES]).T)


def _grid(data: Record, box: Box) -> Array:
    usual = np.log(np.median(data.steps[data.steps > 0]))
    rates, times = np.log([1e-4, 1e-2]) - usual, usual + np.log([1.5, 6.0, 30.0])
    grid = [
        [level, fast, bias, error, -1.5, -0.3, -0.3]
        for level in rates
        for fast in times
        for bias in rates
        for error in times
    ]
    return np.clip(np.array(grid), box.low, box.high)


def _constant(at: Place, free: Bools, i: int) -> Constant:
    """A constant with limits from the curvature, in logarithms (the share: in logits)."""
    entry = at.at[0, i]
    if not free[i]:
        edge = 1.0 if entry > 0 else 0.0
        return Constant(edge, np.nan, np.nan, np.nan)
    index = np.flatnonzero(free)
    spread = np.diag(np.linalg.pinv(-at.bend[0][np.ix_(index, index)]))[int(np.searchsorted(index, i))]
    error = float(np.sqrt(max(spread, 0.0)))
    size, low, high = (_unit(i, entry + k * normal_reach() * error) for k in (0, -1, 1))
    return Constant(size, error * (size * (1 - size) if i == WHITE else size), low, high)


def _unit(i: int, entry: float) -> float:
    return float(1 / (1 + np.exp(-entry)) if i == WHITE else np.exp(entry))


def numbers(points: Array) -> Numbers:
    """The numbers of points (B, 7)."""
    with np.errstate(over="ignore"):
        values = np.exp(points)
        values[:, WHITE] = 1 / (1 + np.exp(-points[:, WHITE]))
    return Numbers(*values.T[:, :, None])


def news(data: Record, now: Numbers) -> tuple[Array, Array, Array]:
    """Log L (B,), and standardised innovations of true and of noisy contexts, (n, B, d) each."""
    n, d = data.noisy.shape
    shape = (len(now.level), d)
    z = np.zeros((2, n, *shape))
    value = np.zeros(shape)
    state = np.zeros((4, 5, *shape))
    for t in range(n):
        if data.first[t]:
            state = _start_state(data, now, shape)
        else:
            _advance(state, data.steps[t], now, data.sizes)
        if data.paired[t]:
            z[0, t] = _update(state, value, 2, data.true[t], np.zeros(1))
        z[1, t] = _update(state, value, 4, data.noisy[t], now.white * now.errors)
    count = n + int(data.paired.sum())
    constant = count * (data.scale - d * np.log(2 * np.pi) / 2)
    return value.sum(axis=1) + constant, z[0], z[1]


def _start_state(data: Record, now: Numbers, shape: tuple[int, int]) -> Array:
    state = np.zeros((4, 5, *shape))
    state[0, 0], state[1, 1] = VAGUE * data.sizes, now.contexts * data.sizes
    state[2, 2], state[3, 3] = VAGUE, (1 - now.white) * now.errors
    return state


def _advance(state: Array, step: float, now: Numbers, sizes: Array) -> None:
    """Advance the state in place: covariances (4, 4), and means in the last column."""
    for k, time, size in ((1, now.fast, now.contexts * sizes), (3, now.error, (1 - now.white) * now.errors)):
        decay = np.exp(-step / np.maximum(time, NEVER))
        state[k] *= decay
        state[:, k] *= decay
        state[k, k] += (1 - decay**2) * size
    state[0, 0] += step * now.level * now.contexts * sizes
    state[2, 2] += step * now.bias * now.errors


def _update(state: Array, value: Array, seen: int, reading: Array, noise: Array) -> Array:
    """Update the state by a reading of the sum of the first `seen` states, add to the likelihood in place.

    The innovation is returned.
    """
    projection = state[:seen].sum(axis=0)
    size = np.maximum(projection[:seen].sum(axis=0) + noise, TINY)
    gain = projection[:4] / size
    projection[:4] *= -1
    projection[4] = reading - projection[4]
    state += gain[:, None] * projection
    z = projection[4] / np.sqrt(size)
    value -= (z**2 + np.log(size)) / 2
    return z
