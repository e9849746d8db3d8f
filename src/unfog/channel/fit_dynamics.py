"""Time constants from pairs in the order of time: a `Dynamics`, the uncertainty of its numbers, and checks.

With a true context beside every noisy one, both contexts and errors are observed, and they are fitted
separately. Groups are devices or persons: each is a series of its own, and the covariance between the starts
of series is that of level and bias at the start. With a single series, the level starts with a third of the
covariance of its walk over the whole series, which is how far a walk ends from its own mean, and the bias
with its covariance without time; both start where the pairs end. If there are more noisy contexts without a
true one than pairs, channel/fit_dynamics_sparse.py uses both.

The constants of a series (walk, time constants, white share, sizes of cycles) are fitted by maximum
likelihood. Limits are those of the profile likelihood at 95 %: two-sided for parts that stay in the model,
one-sided for parts that were dropped. For both, all dropped parts are free again: a part too small to be seen
still widens the limits of the others.

Parts that the data do not support are dropped one by one, starting from the full model. The part that costs
the least likelihood goes first, as long as twice the cost is below what chance alone exceeds one time in
twenty at the edge of the parameter space (S. G. Self and K.-Y. Liang, *Asymptotic Properties of Maximum
Likelihood Estimators and Likelihood Ratio Tests under Nonstandard Conditions*). Afterwards a walk that
returns to zero is tried in the same way, with a stricter threshold: a walk without return that is mistaken
for one has wrong limits.
"""

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.channel.dynamics import (
    ONE_SIDED,
    PAIR,
    SLOW,
    TAU,
    Drop,
    Dynamics,
    Filtered,
    Law,
    Model,
    Moving,
    Q,
    ResidualChecks,
    Series,
    W,
    box_of,
    contexts_model,
    diagnose_residuals,
    errors_model,
    filter_series,
    law_at,
    likelihood,
    scatter,
    series,
    starts_of,
)
from unfog.channel.moments import between_covariance
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.optimize import Box, Function, Place, Search, climb, limits
from unfog.validation import InputError

TIMES = "a number for each pair, none less than the one before (in each group)"
STARTS = 3  # the number of best points of the grid to start from
FAR = 2.3  # log 10: further starts after a part is dropped, with a constant ten times as large
TWO_SIDED = 3.841  # chi-squared of one: 95 %
UNTOLD = "pairs cannot tell {one} from {other} here: {one} is left out, and {other} kept"
ALONE = "{} is as large as can be: no other part shows beside it"


class Constant(NamedTuple):
    """An estimate with its 95 % limits."""

    estimate: float
    error: float  # standard error; NaN where the number is at the edge of what is possible
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.low + self.high):
            return f"{self.estimate:.4g}"
        if np.isnan(self.error):
            bound = f"at least {self.low:.4g}" if self.estimate > self.low else f"at most {self.high:.4g}"
            return f"{self.estimate:.4g} ({bound})"
        return f"{self.estimate:.4g} ± {self.error:.2g} ({self.low:.4g} to {self.high:.4g})"


class Timing(NamedTuple):
    """The estimated dynamics, with checks."""

    dynamics: Dynamics
    constants: dict[str, Constant]  # shares are of the covariance of fast, and of error and white together
    contexts: ResidualChecks
    errors: ResidualChecks
    likelihood: float  # logarithm of its maximum
    notes: tuple[str, ...]

    def __str__(self) -> str:
        rows = [f"{name:12} {constant}" for name, constant in self.constants.items()]
        rows += [f"contexts: {self.contexts}", f"errors: {self.errors}"]
        return "\n".join([*rows, *self.notes])


class Pairs(NamedTuple):
    """Complete pairs, series after series, each in the order of time."""

    true: Array  # (n, d)
    errors: Array  # (n, d)
    times: Array  # (n,)
    labels: Ints  # (n,)


class Fit(NamedTuple):
    """The best law of a series, and its constants."""

    law: Law  # a single one
    output: Filtered
    value: float  # log L
    constants: dict[str, Constant]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]


class Stand(NamedTuple):
    """A maximum of the likelihood (one point), and which entries are free there."""

    peak: Place
    free: Bools  # (p,)
    dropped: tuple[Drop, ...]


class _SeriesFit(NamedTuple):
    fit: Fit
    cov: Array  # (d, d)  S
    starts: Array | None  # (d, d)  covariance of the starts; None with one series
    left: ResidualChecks
    span: float


def check_times(times: npt.ArrayLike, mask: Bools) -> Array:
    """Check the times of all pairs, and return those in the mask."""
    values = np.asarray(times)
    if values.dtype.kind not in "iuf" or values.shape != mask.shape:
        raise InputError("times", f"{values.dtype} of shape {values.shape}", f"{TIMES}: {len(mask)}")
    if not np.isfinite(values).all():
        where = int(np.argmin(np.isfinite(values)))
        raise InputError("times", f"row {where} is {values[where]}", TIMES)
    return values[mask].astype(np.float64)


def check_periods(cycles: Sequence[float] | Array) -> tuple[float, ...]:
    """Check the periods of cycles."""
    allowed = "periods: positive numbers in the unit of times, each given once"
    values = cycles.tolist() if isinstance(cycles, np.ndarray) else cycles
    if not isinstance(values, tuple | list) or not all(_is_number(period) for period in values):
        raise InputError("cycles", cycles, allowed)
    periods = tuple(float(period) for period in values)
    if any(not 0 < period < np.inf for period in periods) or len(set(periods)) < len(periods):
        raise InputError("cycles", cycles, allowed)
    return periods


def _is_number(period: object) -> bool:
    return isinstance(period, Real) and not isinstance(period, bool)


def timing(pairs: Pairs, periods: tuple[float, ...], bias_cov: Array) -> Timing:
    """Fit the dynamics of pairs; `bias_cov` is that at the start, for a bias seen in one series only."""
    order = np.argsort(pairs.labels, kind="stable")
    pairs = Pairs(pairs.true[order], pairs.errors[order], pairs.times[order], pairs.labels[order])
    _check_pairs(pairs, len(periods))
    is_single = len(set(pairs.labels)) == 1
    contexts = _fit_series(contexts_model(periods, returns=is_single), _read_contexts(pairs, periods))
    errors = _fit_series(errors_model(returns=is_single), series(pairs.errors, pairs.times, pairs.labels))
    dynamics = _build_dynamics(contexts, errors, periods, bias_cov)
    dynamics = dynamics._replace(since=float(pairs.times[-1]) if is_single else None)
    notes = [f"contexts: {words}" for words in (*contexts.fit.notes, *contexts.left.doubts())]
    notes += [f"errors: {words}" for words in (*errors.fit.notes, *errors.left.doubts())]
    return Timing(
        dynamics.check(len(bias_cov)),
        contexts.fit.constants | errors.fit.constants,
        contexts.left,
        errors.left,
        contexts.fit.value + errors.fit.value,
        tuple(notes),
    )


def _check_pairs(pairs: Pairs, cycles: int) -> None:
    """Raise InputError for times that go back, and for fewer pairs than constants."""
    check_order(pairs.times, pairs.labels)
    same_series = np.diff(pairs.labels) == 0
    n, d = pairs.true.shape
    constants = d * (n - int(same_series.sum())) + d * (d + 1) // 2 + max(3, 2 + cycles)
    moments = int((same_series & (np.diff(pairs.times) > 0)).sum())
    if moments < constants:
        allowed = f"at least {constants} steps forward in time, as many as there are constants"
        raise InputError("times", f"has {moments} steps forward", allowed)


def check_order(times: Array, labels: Ints) -> None:
    """Raise InputError for times that go back within a series."""
    back = (np.diff(labels) == 0) & (np.diff(times) < 0)
    if back.any():
        before, after = times[np.argmax(back) : np.argmax(back) + 2]
        raise InputError("times", f"{after:g} comes after {before:g}", TIMES)


def _read_contexts(pairs: Pairs, periods: tuple[float, ...]) -> Series:
    """The contexts, one for each moment: several readings of a moment must have the same."""
    is_repeat = (np.diff(pairs.times, prepend=np.nan) == 0) & (np.diff(pairs.labels, prepend=-1) == 0)
    differs = is_repeat & (np.diff(pairs.true, axis=0, prepend=np.nan) != 0).any(axis=1)
    if differs.any():
        time = pairs.times[np.argmax(differs)]
        raise InputError("true", f"has two contexts at the time {time:g}", "one for each moment (of a group)")
    return series(pairs.true[~is_repeat], pairs.times[~is_repeat], pairs.labels[~is_repeat], periods)


def _fit_series(model: Model, data: Series) -> _SeriesFit:
    best = fit(model, data)
    cov, news = scatter(best.output)[0], best.output
    starts = None
    if len(news.starts) > 1:
        starts = between_covariance(news.starts[:, :, 0], float(news.blur.mean()), cov, 1 / len(data.steps))
    left = diagnose_residuals(news.news[:, :, 0], news.sizes[:, 0], cov)
    span = max(part.sum() for part in np.split(data.steps, np.flatnonzero(data.first)[1:]))
    return _SeriesFit(best, cov, starts, left, float(span))


def _build_dynamics(
    contexts: _SeriesFit, errors: _SeriesFit, periods: tuple[float, ...], bias_cov: Array
) -> Dynamics:
    white = errors.fit.law.white[0]
    bias = Moving(bias_cov, np.inf)
    sizes = contexts.fit.law.cycles[0]
    present = sizes > 0
    return Dynamics(
        fast=Moving(contexts.cov, float(contexts.fit.law.time[0])),
        bias=_slow_part(errors, bias) or bias,
        white=white * errors.cov if white else None,
        level=_slow_part(contexts, None),
        error=Moving((1 - white) * errors.cov, float(errors.fit.law.time[0])) if white < 1 else None,
        periods=tuple(period for period, is_present in zip(periods, present, strict=True) if is_present),
        cycles=sizes[present, None, None] * contexts.cov if present.any() else None,
    )


def _slow_part(side: _SeriesFit, still: Moving | None) -> Moving | None:
    """The slow part of a series: it walks, or returns, or stays constant."""
    walk, time = side.fit.law.walk[0] * side.cov, float(side.fit.law.slow[0])
    if not walk.any():
        return still if side.starts is None else Moving(side.starts, np.inf)
    if time < np.inf:
        return Moving(walk * time / 2, time)
    start = walk * side.span / 3 if still is None else still.cov
    return Moving(start if side.starts is None else side.starts, np.inf, walk)


def fit(model: Model, data: Series) -> Fit:
    """Fit the law of a series by maximum likelihood, and drop parts that the data do not support."""

    def value(points: Array) -> Array:
        return likelihood(filter_series(law_at(points), data))

    box = box_of(data, len(model.names))
    full = climb_grid(value, starts_of(model, data, box), box)
    stand, notes = drop_parts(value, full, model, box)
    if model.names[SLOW] is not None:
        stand = try_return(value, stand, box)
    if stand.free[SLOW]:
        full = free_more(value, stand, full, box)
    notes += tuple(
        ALONE.format(model.names[k]) for k in np.flatnonzero(stand.free & (stand.peak.at[0] >= box.high))
    )
    law = law_at(stand.peak.at)
    constants = _estimate_free(value, model, stand, full, box) | _bound_dropped(
        value, model, stand, full, box
    )
    dropped = tuple(drop.part for drop in stand.dropped)
    return Fit(law, filter_series(law, data), float(stand.peak.value[0]), constants, dropped, notes)


def _estimate_free(value: Function, model: Model, stand: Stand, full: Stand, box: Box) -> dict[str, Constant]:
    """Constants of parts in the model; limits are those of the profile likelihood with dropped parts free."""
    index = np.flatnonzero(stand.free)
    if not len(index):
        return {}
    curvature = -stand.peak.bend[0][np.ix_(index, index)]
    errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(curvature)), 0.0))
    which, side = np.repeat(index, 2), np.tile([-1.0, 1.0], len(index))
    tops = np.repeat(full.peak.at, len(which), 0)
    search = Search(which, side, np.tile(full.free, (len(which), 1)))
    ends = limits(value, tops, search, box, full.peak.value[0] - TWO_SIDED / 2).reshape(-1, 2)
    return {
        str(model.names[i]): _constant(int(i), stand.peak.at[0, i], errors[k], ends[k], box)
        for k, i in enumerate(index)
    }


def _constant(i: int, at: float, error: float, ends: Array, box: Box) -> Constant:
    """A constant in its own units; its standard error by the delta method."""
    size = _unit(i, at, box)
    slope = size * (1 - size) if i == Q else size
    edge = not box.low[i] < at < box.high[i]
    low, high = (_unit(i, end, box) for end in ends)
    return Constant(size, np.nan if edge else slope * error, low, high)


def _unit(i: int, entry: float, box: Box) -> float:
    """A number from its logarithm or logit; the edges of the box count as infinite."""
    if entry <= box.low[i]:
        return 0.0
    if entry >= box.high[i]:
        return 1.0 if i == Q else np.inf
    return float(1 / (1 + np.exp(-entry)) if i == Q else np.exp(entry))


def _bound_dropped(value: Function, model: Model, stand: Stand, full: Stand, box: Box) -> dict[str, Constant]:
    """Constants of dropped parts: at the edge, with a one-sided limit."""
    constants = {}
    at = stand.peak.at[0]
    for i, entry in ((i, e) for drop in stand.dropped for i, e in drop.entries):
        if (i == SLOW and at[W] == -np.inf) or (i == TAU and at[Q] == np.inf):
            continue  # the time constant of a part that is missing
        end = _one_sided_limit(value, full, i, -np.sign(entry), box)
        edge = 0.0 if entry < 0 else 1.0 if i == Q else np.inf
        constants[str(model.names[i])] = Constant(edge, np.nan, min(edge, end), max(edge, end))
    return constants


def _one_sided_limit(value: Function, full: Stand, i: int, side: float, box: Box) -> float:
    """The one-sided limit of a number, above (side > 0) or below."""
    aim = full.peak.value[0] - ONE_SIDED / 2
    grid = np.repeat(full.peak.at, 40, 0)
    ends = box.low[i], box.high[i]
    grid[:, i] = np.linspace(*(ends if side > 0 else ends[::-1]), 40)
    inside = np.flatnonzero(value(grid) > aim)
    free = full.free.copy()
    free[i] = True
    start = grid[inside[-1:] if len(inside) else [0]]
    end = limits(value, start, Search(np.array([i]), np.array([side]), free[None]), box, aim)[0]
    return _unit(i, end, box)


def climb_grid(value: Function, grid: Array, box: Box) -> Stand:
    """Climb from the best points of a grid to the highest maximum."""
    free = np.isfinite(grid[0])
    best = grid[np.argsort(-value(grid))[:STARTS]]
    peaks = climb(value, best, np.tile(free, (STARTS, 1)), box)
    return Stand(top(peaks), free, ())


def top(peaks: Place) -> Place:
    """The highest peak."""
    best = int(np.argmax(peaks.value))
    return Place(*(part[best : best + 1] for part in peaks))


def drop_parts(value: Function, stand: Stand, model: Model, box: Box) -> tuple[Stand, tuple[str, ...]]:
    """Drop parts while that costs little; notes name parts that might have been dropped instead."""
    notes: list[str] = []
    alternatives: set[str] = set()
    while True:
        candidates = _drop_one(value, stand, model, box)
        costs = {
            candidate.dropped[-1]: 2 * float(stand.peak.value[0] - candidate.peak.value[0])
            for candidate in candidates
        }
        cheap = [
            candidate
            for candidate in candidates
            if costs[candidate.dropped[-1]] < candidate.dropped[-1].allowed
        ]
        parts = {candidate.dropped[-1].part for candidate in cheap}
        notes += [
            UNTOLD.format(one=stand.dropped[-1].part, other=other) for other in sorted(alternatives - parts)
        ]
        if not cheap:
            return stand, tuple(notes)
        stand = min(cheap, key=lambda candidate: costs[candidate.dropped[-1]] / candidate.dropped[-1].allowed)
        alternatives = parts - {stand.dropped[-1].part}


def _drop_one(value: Function, stand: Stand, model: Model, box: Box) -> list[Stand]:
    """The best fits with one more part dropped, one for each part that may go."""
    drops = [drop for drop in model.drops if all(stand.free[i] for i, _ in drop.entries)]
    if not drops:
        return []
    free, starts = np.tile(stand.free, (len(drops), 3, 1)), np.tile(stand.peak.at, (len(drops), 3, 1))
    starts[:, 1, W] += FAR
    starts[:, 2, TAU] += FAR
    for k, drop in enumerate(drops):
        for i, entry in drop.entries:
            free[k, :, i], starts[k, :, i] = False, entry
    size = len(model.names)
    peaks = climb(value, starts.reshape(-1, size), free.reshape(-1, size), box)
    return [
        Stand(top(Place(*(part[3 * k : 3 * k + 3] for part in peaks))), free[k, 0], (*stand.dropped, drop))
        for k, drop in enumerate(drops)
    ]


def try_return(value: Function, stand: Stand, box: Box) -> Stand:
    """Replace the walk by a slow part that returns to zero, if that is clearly better."""
    free, starts = stand.free.copy(), np.repeat(stand.peak.at, 2, 0)
    free[[W, SLOW]] = True
    starts[:, SLOW] = box.high[SLOW] - np.log([60, 600])  # a third of the time observed, and a thirtieth
    if not stand.free[W]:
        starts[:, W] = np.log(0.4) - starts[:, SLOW]  # a fifth as large as the fast part
    peak = top(climb(value, starts, np.tile(free, (2, 1)), box))
    dropped = tuple(drop for drop in stand.dropped if drop.entries[0][0] != W)
    if 2 * (peak.value[0] - stand.peak.value[0]) > PAIR:
        return Stand(peak, free, dropped)
    return stand._replace(dropped=(*stand.dropped, Drop("return", ((SLOW, np.inf),), ONE_SIDED)))


def free_more(value: Function, stand: Stand, full: Stand, box: Box) -> Stand:
    """Climb again with everything free that is free in either fit."""
    free = stand.free | full.free
    starts = np.where(stand.free, stand.peak.at, full.peak.at)
    return Stand(climb(value, starts, free[None], box), free, ())
