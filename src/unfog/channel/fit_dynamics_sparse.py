"""Constants of time where most noisy contexts have no true one beside them: from both kinds together.

`timed` chooses the rows that say how fast contexts and errors move. Where readings without a truth are more
than the pairs, both are used, as below. Otherwise, and with cycles, which this fit does not know, the pairs
alone are (channel/fit_dynamics.py).

The covariances between coordinates are those of the pairs, up to one factor for contexts and one for errors.
In coordinates in which both are diagonal,

    true(t)  = level + fast,    noisy(t) = level + fast + bias + error + white,

and every coordinate is a Kalman filter of its own, of four states; level and bias start from N(0, `VAGUE`
times their size). Parts are dropped as in channel/fit_dynamics.py; limits are estimates times or divided by
exp(1.96 standard errors of the logarithm), as the curvature says. Which of level and bias a slow move belongs
to shows in the true contexts alone.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.channel import moments
from unfog.channel.dynamics import NEVER, ONE_SIDED, PAIR, TINY, Drop, Moving, Tempo, leftover
from unfog.channel.fit_dynamics import Constant, Pairs, Timing, check_order, check_times, timing, top
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.optimize import Box, Function, Place, climb
from unfog.maths.statistics import normal_reach
from unfog.validation import InputError

LEVEL, FAST, BIAS, ERROR, WHITE, CONTEXTS, ERRORS = range(7)  # places in a point
NAMES = ("level.walk", "fast.time", "bias.walk", "error.time", "white.share", "contexts.size", "errors.size")
DROPS = (
    Drop("level.walk", ((LEVEL, -np.inf),), ONE_SIDED),
    Drop("bias.walk", ((BIAS, -np.inf),), ONE_SIDED),
    Drop("white", ((WHITE, -np.inf),), ONE_SIDED),
    Drop("error", ((WHITE, np.inf), (ERROR, -np.inf)), PAIR),
)
SIZES = (np.log(0.05), np.log(20.0))  # by how much pairs may mislead
VAGUE = 1e4
SELDOM = (
    "{alone} noisy contexts without a true one are used beside {pairs} pairs: which of level and bias a slow "
    "move belongs to is decided by the true contexts alone"
)


class Study(NamedTuple):
    """What a caller gives: readings and true contexts, row by row, and labels of groups."""

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
    """Of the pairs, (d, d) each."""

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
    scale: float  # log-determinant of the way to these coordinates


class Numbers(NamedTuple):
    """The numbers of B points, (B, 1) each."""

    level: Array
    fast: Array
    bias: Array
    error: Array
    white: Array
    contexts: Array
    errors: Array


class Together(NamedTuple):
    """The best point, in its own units, with what it leaves over."""

    numbers: dict[str, float]
    constants: dict[str, Constant]
    value: float  # log L
    true_news: Array  # (pairs, d)  standardised
    noisy_news: Array  # (n, d)


def timed(study: Study, times: npt.ArrayLike, periods: tuple[float, ...], covs: Covs, *, few: bool) -> Timing:
    """Constants of time from these rows; `few`: of all readings and not of the pairs alone."""
    used = np.asarray(np.isfinite(study.noisy if few else study.noisy + study.true).all(axis=1))
    noisy, true = study.noisy[used], study.true[used]
    when, labels = check_times(times, used), moments.labels(study.groups, used)
    if few:
        return seldom(Rows(noisy, true, when, labels), covs)
    fitted = timing(Pairs(true, noisy - true, when, labels), periods, covs.bias)
    if study.alone <= used.sum():
        return fitted
    note = f"{study.alone} noisy contexts without a true one are not used, since cycles are asked for"
    return fitted._replace(notes=(*fitted.notes, note))


def seldom(rows: Rows, covs: Covs) -> Timing:
    """The law in time; checks are of true contexts, and of noisy ones, each given all that came before."""
    order = np.argsort(rows.labels, kind="stable")
    times, labels = rows.times[order], rows.labels[order]
    check_order(times, labels)
    first = np.diff(labels, prepend=-1) != 0
    pairs = _check_pairs(rows.true)
    given = record(rows.noisy[order], rows.true[order], times, first, (covs.contexts, covs.errors))
    found = together(given)
    unit = np.eye(len(covs.bias))
    true, noisy = (leftover(z, np.ones(len(z)), unit) for z in (found.true_news, found.noisy_news))
    notes = [SELDOM.format(alone=len(times) - pairs, pairs=pairs)]
    notes += [f"true contexts: {words}" for words in true.doubts()]
    notes += [f"noisy contexts: {words}" for words in noisy.doubts()]
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(first)[1:]))
    since = float(times[-1]) if first.sum() == 1 else None
    tempo = _tempo(found, covs, float(span))._replace(since=since).check(len(unit))
    return Timing(tempo, found.constants, true, noisy, found.value, tuple(notes))


def _check_pairs(true: Array) -> int:
    """Refuse fewer pairs than a mean and a covariance have numbers."""
    pairs, d = int(np.isfinite(true).all(axis=1).sum()), true.shape[1]
    least = d + d * (d + 1) // 2
    if pairs < least:
        raise InputError(
            "true", f"{pairs} pairs are complete", f"at least {least} with times, for {d} dimensions"
        )
    return pairs


def _tempo(found: Together, covs: Covs, span: float) -> Tempo:
    now = found.numbers
    contexts, errors = now["contexts.size"] * covs.contexts, now["errors.size"] * covs.errors
    level, bias, white = now["level.walk"] * contexts, now["bias.walk"] * errors, now["white.share"]
    return Tempo(
        fast=Moving(contexts, now["fast.time"]),
        bias=Moving(covs.bias, np.inf, bias if bias.any() else None),
        white=white * errors if white else None,
        level=Moving(level * span / 3, np.inf, level) if level.any() else None,
        error=Moving((1 - white) * errors, now["error.time"]) if white < 1 else None,
    )


def record(noisy: Array, true: Array, times: Array, first: Bools, covs: tuple[Array, Array]) -> Record:
    """Rows (n, d), true ones NaN where there is none; covs are those of contexts and of errors."""
    root = np.linalg.cholesky(covs[1])
    inner = np.linalg.solve(root, np.linalg.solve(root, covs[0]).T)
    sizes, turn = np.linalg.eigh((inner + inner.T) / 2)
    way = np.linalg.solve(root.T, turn)  # rows times this
    steps = np.where(first, 0.0, np.diff(times, prepend=times[0]))
    paired = np.asarray(np.isfinite(true).all(axis=1))
    seen = np.maximum.accumulate(np.where(paired, np.arange(len(times)), -1))
    before = np.concatenate([[-1], seen[:-1]])
    begun = np.maximum.accumulate(np.where(first, np.arange(len(times)), 0))
    again = (before >= begun) & (times[before] == times)
    scale = float(np.linalg.slogdet(way)[1])
    centre = true[paired].mean(axis=0), noisy[paired].mean(axis=0) - true[paired].mean(axis=0)
    rows = (noisy - centre[0] - centre[1]) @ way, np.where(paired[:, None], true - centre[0], 0.0) @ way
    return Record(rows[0], rows[1], paired & ~again, steps, first, sizes, scale)


def together(given: Record) -> Together:
    """The constants by maximum likelihood."""

    def value(points: Array) -> Array:
        return news(given, numbers(points))[0]

    box = _box(given)
    grid = _grid(given, box)
    best = grid[np.argsort(-value(grid))[:2]]
    free = np.ones((2, 7), bool)
    peak = top(climb(value, best, free, box))
    at, free = _fewer(value, peak, free[0], box)
    now = numbers(at.at)
    _, true_news, noisy_news = news(given, now)
    found = {name: float(part[0, 0]) for name, part in zip(NAMES, now, strict=True)}
    constants = {name: _constant(at, free, k) for k, name in enumerate(NAMES[:CONTEXTS])}
    return Together(found, constants, float(at.value[0]), true_news[given.paired, 0], noisy_news[:, 0])


def _fewer(value: Function, peak: Place, free: Bools, box: Box) -> tuple[Place, Bools]:
    """Without the parts that the record does not ask for, the cheapest first."""
    while True:
        drops = [drop for drop in DROPS if all(free[place] for place, _ in drop.entries)]
        if not drops:
            return peak, free
        rest, starts = np.tile(free, (len(drops), 1)), np.repeat(peak.at, len(drops), 0)
        for k, drop in enumerate(drops):
            for place, entry in drop.entries:
                rest[k, place], starts[k, place] = False, entry
        found = climb(value, starts, rest, box)
        costs = 2 * (peak.value[0] - found.value) / np.array([drop.allowed for drop in drops])
        k = int(np.argmin(costs))
        if costs[k] >= 1:
            return peak, free
        peak, free = Place(*(part[k : k + 1] for part in found)), rest[k]


def _box(given: Record) -> Box:
    steps = given.steps[given.steps > 0]
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(given.first)[1:]))
    rates, times = np.log([1e-4 / span, 1e4 / np.median(steps)]), np.log([steps.min() / 8, 20 * span])
    return Box(*np.array([rates, times, rates, times, [-9.0, 9.0], SIZES, SIZES]).T)


def _grid(given: Record, box: Box) -> Array:
    usual = np.log(np.median(given.steps[given.steps > 0]))
    rates, times = np.log([1e-4, 1e-2]) - usual, usual + np.log([1.5, 6.0, 30.0])
    grid = [
        [level, fast, bias, error, -1.5, -0.3, -0.3]
        for level in rates
        for fast in times
        for bias in rates
        for error in times
    ]
    return np.clip(np.array(grid), box.low, box.high)


def _constant(at: Place, free: Bools, place: int) -> Constant:
    """By the curvature, in logarithms (the share: in logits)."""
    entry = at.at[0, place]
    if not free[place]:
        edge = 1.0 if entry > 0 else 0.0
        return Constant(edge, np.nan, np.nan, np.nan)
    places = np.flatnonzero(free)
    spread = np.diag(np.linalg.pinv(-at.bend[0][np.ix_(places, places)]))[int(np.searchsorted(places, place))]
    error = float(np.sqrt(max(spread, 0.0)))
    size, low, high = (_unit(place, entry + k * normal_reach() * error) for k in (0, -1, 1))
    return Constant(size, error * (size * (1 - size) if place == WHITE else size), low, high)


def _unit(place: int, entry: float) -> float:
    return float(1 / (1 + np.exp(-entry)) if place == WHITE else np.exp(entry))


def numbers(points: Array) -> Numbers:
    """Of points (B, 7)."""
    with np.errstate(over="ignore"):
        found = np.exp(points)
        found[:, WHITE] = 1 / (1 + np.exp(-points[:, WHITE]))
    return Numbers(*found.T[:, :, None])


def news(given: Record, now: Numbers) -> tuple[Array, Array, Array]:
    """Log L (B,); and innovations over their standard deviations, of true and noisy contexts, (n, B, d)."""
    n, d = given.noisy.shape
    shape = (len(now.level), d)
    z = np.zeros((2, n, *shape))
    value = np.zeros(shape)
    state = np.zeros((4, 5, *shape))
    for t in range(n):
        if given.first[t]:
            state = _begun(given, now, shape)
        else:
            _moved(state, given.steps[t], now, given.sizes)
        if given.paired[t]:
            z[0, t] = _updated(state, value, 2, given.true[t], np.zeros(1))
        z[1, t] = _updated(state, value, 4, given.noisy[t], now.white * now.errors)
    count = n + int(given.paired.sum())
    constant = count * (given.scale - d * np.log(2 * np.pi) / 2)
    return value.sum(axis=1) + constant, z[0], z[1]


def _begun(given: Record, now: Numbers, shape: tuple[int, int]) -> Array:
    state = np.zeros((4, 5, *shape))
    state[0, 0], state[1, 1] = VAGUE * given.sizes, now.contexts * given.sizes
    state[2, 2], state[3, 3] = VAGUE, (1 - now.white) * now.errors
    return state


def _moved(state: Array, step: float, now: Numbers, sizes: Array) -> None:
    """A step of time: covariances (4, 4), and means in the last column."""
    for k, time, size in ((1, now.fast, now.contexts * sizes), (3, now.error, (1 - now.white) * now.errors)):
        held = np.exp(-step / np.maximum(time, NEVER))
        state[k] *= held
        state[:, k] *= held
        state[k, k] += (1 - held**2) * size
    state[0, 0] += step * now.level * now.contexts * sizes
    state[2, 2] += step * now.bias * now.errors


def _updated(state: Array, value: Array, seen: int, reading: Array, noise: Array) -> Array:
    """A reading of the sum of the first `seen` states; adds to the likelihood, gives the innovation."""
    shown = state[:seen].sum(axis=0)
    size = np.maximum(shown[:seen].sum(axis=0) + noise, TINY)
    gain = shown[:4] / size
    shown[:4] *= -1
    shown[4] = reading - shown[4]
    state += gain[:, None] * shown
    z = shown[4] / np.sqrt(size)
    value -= (z**2 + np.log(size)) / 2
    return z
