"""Constants of time from pairs in the order of time: a `Tempo`, what is known of its numbers, and checks.

With every true context beside its noisy one, contexts and errors are both seen, and are fitted apart. Groups
are devices or persons: each has a series of its own, with a start of its own, and how far starts lie apart is
the covariance of level and bias at the start. Where there is one series, the level starts as far from the
mean of the contexts as a walk is from its own mean in the end, a third of all that it walked, and the bias
with the covariance it has without time; both begin where the pairs end. Where noisy contexts without a true
one are more than the pairs, channel/fit_dynamics_sparse.py takes both.

The constants of a series (walk, time constants, white share, sizes of cycles) are fitted by maximum
likelihood. Limits are of the profile likelihood at 95 %: on both sides for what is kept, on the one that is
possible for what was dropped, and for both with all that was dropped free again: a part too small to be seen
still widens the limits of the others.

Parts that the data do not ask for are dropped, from the best law of all to fewer and fewer parts. That whose
absence costs the least of the likelihood goes first, while twice the cost is below what chance alone exceeds
one time in twenty at the edge of what is possible (S. G. Self and K.-Y. Liang, *Asymptotic Properties of
Maximum Likelihood Estimators and Likelihood Ratio Tests under Nonstandard Conditions*). In the same way a
walk that returns to zero is asked for once all else is settled, of more weight: taken for one by mistake, a
walk without end has limits that are wrong.
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
    Filtered,
    Law,
    Leftover,
    Model,
    Moving,
    Q,
    Series,
    Tempo,
    W,
    box_of,
    contexts_model,
    errors_model,
    filtered,
    law_at,
    leftover,
    likelihood,
    scatter,
    series,
    starts_of,
)
from unfog.channel.moments import between
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.optimize import Box, Function, Place, Search, climb, limits
from unfog.validation import InputError

TIMES = "a number for each pair, none less than the one before (in each group)"
STARTS = 3  # of the best on a grid
FAR = 2.3  # a second start for what is left when a part goes: ten times as long, or as fast
TWO_SIDED = 3.841  # chi-squared of one: 95 %
UNTOLD = "pairs cannot tell {one} from {other} here: {one} is left out, and {other} kept"
ALONE = "{} is as large as can be: no other part shows beside it"


class Constant(NamedTuple):
    """A number, and where it may lie at 95 %."""

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
    """What pairs say of time."""

    tempo: Tempo
    constants: dict[str, Constant]  # shares are of the covariance of fast, and of error and white together
    contexts: Leftover
    errors: Leftover
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
    """The best point, and what it says."""

    law: Law  # one
    found: Filtered
    value: float  # log L
    constants: dict[str, Constant]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]


class Stand(NamedTuple):
    """A peak (one point), and what is free there."""

    peak: Place
    free: Bools  # (p,)
    dropped: tuple[Drop, ...]


class _Fitted(NamedTuple):
    fit: Fit
    cov: Array  # (d, d)  S
    starts: Array | None  # (d, d)  covariance of the starts; None with one series
    left: Leftover
    span: float


def check_times(times: npt.ArrayLike, kept: Bools) -> Array:
    """The times of the pairs that are kept."""
    given = np.asarray(times)
    if given.dtype.kind not in "iuf" or given.shape != kept.shape:
        raise InputError("times", f"{given.dtype} of shape {given.shape}", f"{TIMES}: {len(kept)}")
    if not np.isfinite(given).all():
        where = int(np.argmin(np.isfinite(given)))
        raise InputError("times", f"row {where} is {given[where]}", TIMES)
    return given[kept].astype(np.float64)


def check_periods(cycles: Sequence[float] | Array) -> tuple[float, ...]:
    """Periods of cycles."""
    allowed = "periods: positive numbers in the unit of times, each given once"
    given = cycles.tolist() if isinstance(cycles, np.ndarray) else cycles
    if not isinstance(given, tuple | list) or not all(_is_number(period) for period in given):
        raise InputError("cycles", cycles, allowed)
    periods = tuple(float(period) for period in given)
    if any(not 0 < period < np.inf for period in periods) or len(set(periods)) < len(periods):
        raise InputError("cycles", cycles, allowed)
    return periods


def _is_number(period: object) -> bool:
    return isinstance(period, Real) and not isinstance(period, bool)


def timing(pairs: Pairs, periods: tuple[float, ...], bias_cov: Array) -> Timing:
    """The law in time of pairs; `bias_cov` is for the start of a bias that is the only one seen."""
    order = np.argsort(pairs.labels, kind="stable")
    pairs = Pairs(pairs.true[order], pairs.errors[order], pairs.times[order], pairs.labels[order])
    _check(pairs, len(periods))
    one = len(set(pairs.labels)) == 1
    contexts = _fitted(contexts_model(periods, returns=one), _moments(pairs, periods))
    errors = _fitted(errors_model(returns=one), series(pairs.errors, pairs.times, pairs.labels))
    tempo = _tempo(contexts, errors, periods, bias_cov)
    tempo = tempo._replace(since=float(pairs.times[-1]) if one else None)
    said = [f"contexts: {words}" for words in (*contexts.fit.notes, *contexts.left.doubts())]
    said += [f"errors: {words}" for words in (*errors.fit.notes, *errors.left.doubts())]
    return Timing(
        tempo.check(len(bias_cov)),
        contexts.fit.constants | errors.fit.constants,
        contexts.left,
        errors.left,
        contexts.fit.value + errors.fit.value,
        tuple(said),
    )


def _check(pairs: Pairs, cycles: int) -> None:
    """Refuse times that go back, and fewer pairs than constants."""
    check_order(pairs.times, pairs.labels)
    same = np.diff(pairs.labels) == 0
    n, d = pairs.true.shape
    constants = d * (n - int(same.sum())) + d * (d + 1) // 2 + max(3, 2 + cycles)
    moments = int((same & (np.diff(pairs.times) > 0)).sum())
    if moments < constants:
        allowed = f"at least {constants} steps forward in time, as many as there are constants"
        raise InputError("times", f"has {moments} steps forward", allowed)


def check_order(times: Array, labels: Ints) -> None:
    """Refuse times that go back within a series."""
    back = (np.diff(labels) == 0) & (np.diff(times) < 0)
    if back.any():
        before, after = times[np.argmax(back) : np.argmax(back) + 2]
        raise InputError("times", f"{after:g} comes after {before:g}", TIMES)


def _moments(pairs: Pairs, periods: tuple[float, ...]) -> Series:
    """Contexts, one for each moment: several readings of one moment are beside the same."""
    again = (np.diff(pairs.times, prepend=np.nan) == 0) & (np.diff(pairs.labels, prepend=-1) == 0)
    apart = again & (np.diff(pairs.true, axis=0, prepend=np.nan) != 0).any(axis=1)
    if apart.any():
        time = pairs.times[np.argmax(apart)]
        raise InputError("true", f"has two contexts at the time {time:g}", "one for each moment (of a group)")
    return series(pairs.true[~again], pairs.times[~again], pairs.labels[~again], periods)


def _fitted(model: Model, given: Series) -> _Fitted:
    found = fit(model, given)
    cov, news = scatter(found.found)[0], found.found
    starts = None
    if len(news.starts) > 1:
        starts = between(news.starts[:, :, 0], float(news.blur.mean()), cov, 1 / len(given.steps))
    left = leftover(news.news[:, :, 0], news.sizes[:, 0], cov)
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(given.first)[1:]))
    return _Fitted(found, cov, starts, left, float(span))


def _tempo(contexts: _Fitted, errors: _Fitted, periods: tuple[float, ...], bias_cov: Array) -> Tempo:
    white = errors.fit.law.white[0]
    bias = Moving(bias_cov, np.inf)
    sizes = contexts.fit.law.cycles[0]
    kept = sizes > 0
    return Tempo(
        fast=Moving(contexts.cov, float(contexts.fit.law.time[0])),
        bias=_slow(errors, bias) or bias,
        white=white * errors.cov if white else None,
        level=_slow(contexts, None),
        error=Moving((1 - white) * errors.cov, float(errors.fit.law.time[0])) if white < 1 else None,
        periods=tuple(period for period, one in zip(periods, kept, strict=True) if one),
        cycles=sizes[kept, None, None] * contexts.cov if kept.any() else None,
    )


def _slow(side: _Fitted, still: Moving | None) -> Moving | None:
    """What walks, and from where; or returns; or stays where it started."""
    walk, time = side.fit.law.walk[0] * side.cov, float(side.fit.law.slow[0])
    if not walk.any():
        return still if side.starts is None else Moving(side.starts, np.inf)
    if time < np.inf:
        return Moving(walk * time / 2, time)
    start = walk * side.span / 3 if still is None else still.cov
    return Moving(start if side.starts is None else side.starts, np.inf, walk)


def fit(model: Model, given: Series) -> Fit:
    """The law of a series."""

    def value(points: Array) -> Array:
        return likelihood(filtered(law_at(points), given))

    box = box_of(given, len(model.names))
    full = highest(value, starts_of(model, given, box), box)
    stand, notes = chosen(value, full, model, box)
    if model.names[SLOW] is not None:
        stand = returning(value, stand, box)
    if stand.free[SLOW]:
        full = enlarged(value, stand, full, box)
    notes += tuple(
        ALONE.format(model.names[k]) for k in np.flatnonzero(stand.free & (stand.peak.at[0] >= box.high))
    )
    law = law_at(stand.peak.at)
    constants = _kept(value, model, stand, full, box) | _gone(value, model, stand, full, box)
    dropped = tuple(drop.part for drop in stand.dropped)
    return Fit(law, filtered(law, given), float(stand.peak.value[0]), constants, dropped, notes)


def _kept(value: Function, model: Model, stand: Stand, full: Stand, box: Box) -> dict[str, Constant]:
    """Estimates, standard errors by the curvature, limits by the profile with all that was dropped free."""
    places = np.flatnonzero(stand.free)
    if not len(places):
        return {}
    curvature = -stand.peak.bend[0][np.ix_(places, places)]
    errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(curvature)), 0.0))
    which, side = np.repeat(places, 2), np.tile([-1.0, 1.0], len(places))
    tops = np.repeat(full.peak.at, len(which), 0)
    search = Search(which, side, np.tile(full.free, (len(which), 1)))
    ends = limits(value, tops, search, box, full.peak.value[0] - TWO_SIDED / 2).reshape(-1, 2)
    return {
        str(model.names[place]): _constant(int(place), stand.peak.at[0, place], errors[k], ends[k], box)
        for k, place in enumerate(places)
    }


def _constant(place: int, at: float, error: float, ends: Array, box: Box) -> Constant:
    """In its own units, by the delta method."""
    size = _unit(place, at, box)
    slope = size * (1 - size) if place == Q else size
    edge = not box.low[place] < at < box.high[place]
    low, high = (_unit(place, end, box) for end in ends)
    return Constant(size, np.nan if edge else slope * error, low, high)


def _unit(place: int, entry: float, box: Box) -> float:
    """A number from its logarithm or logit; the edges of the box are as good as infinite."""
    if entry <= box.low[place]:
        return 0.0
    if entry >= box.high[place]:
        return 1.0 if place == Q else np.inf
    return float(1 / (1 + np.exp(-entry)) if place == Q else np.exp(entry))


def _gone(value: Function, model: Model, stand: Stand, full: Stand, box: Box) -> dict[str, Constant]:
    """What was dropped, at its edge, and how far from it it might be."""
    found = {}
    at = stand.peak.at[0]
    for place, entry in ((i, e) for drop in stand.dropped for i, e in drop.entries):
        if (place == SLOW and at[W] == -np.inf) or (place == TAU and at[Q] == np.inf):
            continue  # a time of nothing
        end = _beyond(value, full, place, -np.sign(entry), box)
        edge = 0.0 if entry < 0 else 1.0 if place == Q else np.inf
        found[str(model.names[place])] = Constant(edge, np.nan, min(edge, end), max(edge, end))
    return found


def _beyond(value: Function, full: Stand, place: int, side: float, box: Box) -> float:
    """The one-sided limit of a number, upwards or downwards."""
    aim = full.peak.value[0] - ONE_SIDED / 2
    grid = np.repeat(full.peak.at, 40, 0)
    ends = box.low[place], box.high[place]
    grid[:, place] = np.linspace(*(ends if side > 0 else ends[::-1]), 40)
    inside = np.flatnonzero(value(grid) > aim)
    free = full.free.copy()
    free[place] = True
    start = grid[inside[-1:] if len(inside) else [0]]
    end = limits(value, start, Search(np.array([place]), np.array([side]), free[None]), box, aim)[0]
    return _unit(place, end, box)


def highest(value: Function, grid: Array, box: Box) -> Stand:
    """The best there is from points of a grid."""
    free = np.isfinite(grid[0])
    best = grid[np.argsort(-value(grid))[:STARTS]]
    peaks = climb(value, best, np.tile(free, (STARTS, 1)), box)
    return Stand(top(peaks), free, ())


def top(peaks: Place) -> Place:
    """The highest of them."""
    best = int(np.argmax(peaks.value))
    return Place(*(part[best : best + 1] for part in peaks))


def chosen(value: Function, stand: Stand, model: Model, box: Box) -> tuple[Stand, tuple[str, ...]]:
    """What is left when all that may go is gone, and what might have gone in its stead."""
    notes: list[str] = []
    rivals: set[str] = set()
    while True:
        fewer = _without(value, stand, model, box)
        costs = {one.dropped[-1]: 2 * float(stand.peak.value[0] - one.peak.value[0]) for one in fewer}
        near = [one for one in fewer if costs[one.dropped[-1]] < one.dropped[-1].allowed]
        parts = {one.dropped[-1].part for one in near}
        notes += [UNTOLD.format(one=stand.dropped[-1].part, other=other) for other in sorted(rivals - parts)]
        if not near:
            return stand, tuple(notes)
        stand = min(near, key=lambda one: costs[one.dropped[-1]] / one.dropped[-1].allowed)
        rivals = parts - {stand.dropped[-1].part}


def _without(value: Function, stand: Stand, model: Model, box: Box) -> list[Stand]:
    """The best with one part fewer, for each part that may go."""
    drops = [drop for drop in model.drops if all(stand.free[place] for place, _ in drop.entries)]
    if not drops:
        return []
    free, starts = np.tile(stand.free, (len(drops), 3, 1)), np.tile(stand.peak.at, (len(drops), 3, 1))
    starts[:, 1, W] += FAR
    starts[:, 2, TAU] += FAR
    for k, drop in enumerate(drops):
        for place, entry in drop.entries:
            free[k, :, place], starts[k, :, place] = False, entry
    size = len(model.names)
    peaks = climb(value, starts.reshape(-1, size), free.reshape(-1, size), box)
    return [
        Stand(top(Place(*(part[3 * k : 3 * k + 3] for part in peaks))), free[k, 0], (*stand.dropped, drop))
        for k, drop in enumerate(drops)
    ]


def returning(value: Function, stand: Stand, box: Box) -> Stand:
    """With a slow part that returns to zero in the place of a walk or of none, where that is called for."""
    free, starts = stand.free.copy(), np.repeat(stand.peak.at, 2, 0)
    free[[W, SLOW]] = True
    starts[:, SLOW] = box.high[SLOW] - np.log([60, 600])  # a third of the time there is, and a thirtieth
    if not stand.free[W]:
        starts[:, W] = np.log(0.4) - starts[:, SLOW]  # a fifth as large as what is fast
    peak = top(climb(value, starts, np.tile(free, (2, 1)), box))
    gone = tuple(drop for drop in stand.dropped if drop.entries[0][0] != W)
    if 2 * (peak.value[0] - stand.peak.value[0]) > PAIR:
        return Stand(peak, free, gone)
    return stand._replace(dropped=(*stand.dropped, Drop("return", ((SLOW, np.inf),), ONE_SIDED)))


def enlarged(value: Function, stand: Stand, full: Stand, box: Box) -> Stand:
    """All that was free in the beginning, and is now."""
    free = stand.free | full.free
    starts = np.where(stand.free, stand.peak.at, full.peak.at)
    return Stand(climb(value, starts, free[None], box), free, ())
