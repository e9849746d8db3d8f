"""Constants of one series by maximum likelihood: walk, time constant, white share, sizes of cycles.

All but S are numbers, and searched for by their logarithms (the share: by its logit) in a box whose edges are
as good as zero or infinity. A part the data do not ask for is dropped: that whose absence costs the least of
the likelihood goes first, while twice the cost is below what chance alone exceeds one time in twenty at the
edge of what is possible (S. G. Self and K.-Y. Liang, *Asymptotic Properties of Maximum Likelihood Estimators
and Likelihood Ratio Tests under Nonstandard Conditions*). In the same way a walk that returns to zero is
asked for once all else is settled. Limits are of the profile likelihood at 95 %: on both sides for what is
kept, on the one that is possible for what was dropped, and for both with all that was dropped free again: a
part too small to be seen still widens the limits of the others.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools
from unfog.maths.ascent import Box, Function, Place, Search, climb, limits
from unfog.model.series import Filtered, Law, Series, filtered, likelihood

W, SLOW, TAU, Q = 0, 1, 2, 3  # places in a point; sizes of cycles follow
TWO_SIDED, ONE_SIDED, PAIR = 3.841, 2.706, 5.991  # chi-squared: 95 % of one, 90 % of one, 95 % of two
STARTS = 3  # of the best on a grid
UNTOLD = "pairs cannot tell {one} from {other} here: {one} is left out, and {other} kept"
APART = 2.0  # times as slow as what is fast is the slow part at least
FAR = 2.3  # a second start for what is left when a part goes: ten times as long, or as fast


class Constant(NamedTuple):
    """A number, and where it may lie at 95 %."""

    estimate: float
    error: float  # standard error; NaN where the number is at the edge of what is possible
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.error):
            bound = f"at least {self.low:.4g}" if self.estimate > self.low else f"at most {self.high:.4g}"
            return f"{self.estimate:.4g} ({bound})"
        return f"{self.estimate:.4g} ± {self.error:.2g} ({self.low:.4g} to {self.high:.4g})"


class Drop(NamedTuple):
    """A part that may be missing: the point's entries then, and what its absence may cost."""

    part: str
    entries: tuple[tuple[int, float], ...]
    allowed: float


class Model(NamedTuple):
    """Which numbers there are, by name, in the order of a point; None for one that is not asked for."""

    names: tuple[str | None, ...]
    drops: tuple[Drop, ...]


class Fit(NamedTuple):
    """The best point, and what it says."""

    law: Law  # one
    found: Filtered
    value: float  # log L
    constants: dict[str, Constant]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]


class _Stand(NamedTuple):
    """A peak (one point), and what is free there."""

    peak: Place
    free: Bools  # (p,)
    dropped: tuple[Drop, ...]


def contexts_model(periods: tuple[float, ...], returns: bool = True) -> Model:
    """A level that may walk and may return, a fast part that may be new at every moment, cycles."""
    cycles = [f"cycle {period:g}" for period in periods]
    drops = [Drop("level.walk", ((W, -np.inf),), ONE_SIDED), Drop("fast.time", ((TAU, -np.inf),), ONE_SIDED)]
    drops += [Drop(name, ((Q + 1 + k, -np.inf),), ONE_SIDED) for k, name in enumerate(cycles)]
    return Model(("level.walk", "level.time" if returns else None, "fast.time", None, *cycles), tuple(drops))


def errors_model(returns: bool = True) -> Model:
    """A bias that may walk and may return, an error with a time constant, white: one of these at least."""
    drops = (
        Drop("bias.walk", ((W, -np.inf),), ONE_SIDED),
        Drop("white", ((Q, -np.inf),), ONE_SIDED),
        Drop("error", ((Q, np.inf), (TAU, -np.inf)), PAIR),
    )
    return Model(("bias.walk", "bias.time" if returns else None, "error.time", "white.share"), drops)


def law_at(points: Array) -> Law:
    """The laws of points (B, p)."""
    with np.errstate(over="ignore"):
        white = 1 / (1 + np.exp(-points[:, Q]))
        walk, slow, time = np.exp(points[:, [W, SLOW, TAU]]).T
        return Law(walk, np.maximum(slow, APART * time), time, white, np.exp(points[:, Q + 1 :]))


def fit(model: Model, given: Series) -> Fit:
    """The law of a series."""

    def value(points: Array) -> Array:
        return likelihood(filtered(law_at(points), given))

    box = _box(given, len(model.names))
    full = _highest(value, _starts(model, given, box), box)
    stand, notes = _chosen(value, full, model, box)
    if model.names[SLOW] is not None:
        stand = _returning(value, stand, box)
    if stand.free[SLOW]:
        full = _enlarged(value, stand, full, box)
    law = law_at(stand.peak.at)
    constants = _kept(value, model, stand, full, box) | _gone(value, model, stand, full, box)
    dropped = tuple(drop.part for drop in stand.dropped)
    return Fit(law, filtered(law, given), float(stand.peak.value[0]), constants, dropped, notes)


def _chosen(value: Function, stand: _Stand, model: Model, box: Box) -> tuple[_Stand, tuple[str, ...]]:
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


def _returning(value: Function, stand: _Stand, box: Box) -> _Stand:
    """With a slow part that returns to zero in the place of a walk or of none, where that is called for."""
    walks = bool(stand.free[W])
    free, starts = stand.free.copy(), np.repeat(stand.peak.at, 2, 0)
    free[[W, SLOW]] = True
    starts[:, SLOW] = box.high[SLOW] - np.log([60, 600])  # a third of the time there is, and a thirtieth
    if not walks:
        starts[:, W] = np.log(0.4) - starts[:, SLOW]  # a fifth as large as what is fast
    peak = _top(climb(value, starts, np.tile(free, (2, 1)), box))
    gone = tuple(drop for drop in stand.dropped if drop.entries[0][0] != W)
    if 2 * (peak.value[0] - stand.peak.value[0]) > (ONE_SIDED if walks else PAIR):
        return _Stand(peak, free, gone)
    return stand._replace(dropped=(*stand.dropped, Drop("return", ((SLOW, np.inf),), ONE_SIDED)))


def _without(value: Function, stand: _Stand, model: Model, box: Box) -> list[_Stand]:
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
        _Stand(_top(Place(*(part[3 * k : 3 * k + 3] for part in peaks))), free[k, 0], (*stand.dropped, drop))
        for k, drop in enumerate(drops)
    ]


def _enlarged(value: Function, stand: _Stand, full: _Stand, box: Box) -> _Stand:
    """All that was free in the beginning, and is now."""
    free = stand.free | full.free
    starts = np.where(stand.free, stand.peak.at, full.peak.at)
    return _Stand(climb(value, starts, free[None], box), free, ())


def _kept(value: Function, model: Model, stand: _Stand, full: _Stand, box: Box) -> dict[str, Constant]:
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


def _gone(value: Function, model: Model, stand: _Stand, full: _Stand, box: Box) -> dict[str, Constant]:
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


def _beyond(value: Function, full: _Stand, place: int, side: float, box: Box) -> float:
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


def _box(given: Series, size: int) -> Box:
    steps = given.steps[given.steps > 0]
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(given.first)[1:]))
    low, high = np.full(size, np.log(1e-6)), np.full(size, np.log(1e4))
    low[W], high[W] = np.log(1e-4 / span), np.log(1e4 / np.median(steps))
    low[SLOW], high[SLOW] = np.log(np.median(steps)), np.log(20 * span)
    low[TAU], high[TAU] = np.log(steps.min() / 8), np.log(20 * span)
    low[Q], high[Q] = -9.0, 9.0
    return Box(low, high)


def _starts(model: Model, given: Series, box: Box) -> Array:
    """Points on a grid, of time constants from a step to a good part of all the time there is."""
    usual, longest = np.log(np.median(given.steps[given.steps > 0])), box.high[SLOW] - np.log(60)
    whites = [-np.inf] if model.names[Q] is None else [-3.0, -1.0, 1.0]
    grid = [
        [walk - usual, np.inf, tau, white, *[-2.0] * (len(model.names) - Q - 1)]
        for walk in np.log([1e-5, 1e-3, 3e-2, 1.0])
        for tau in np.linspace(usual - 1, max(usual + 2, longest - 1), 6)
        for white in whites
    ]
    return np.array(grid)


def _highest(value: Function, grid: Array, box: Box) -> _Stand:
    free = np.isfinite(grid[0])
    best = grid[np.argsort(-value(grid))[:STARTS]]
    peaks = climb(value, best, np.tile(free, (STARTS, 1)), box)
    return _Stand(_top(peaks), free, ())


def _top(peaks: Place) -> Place:
    best = int(np.argmax(peaks.value))
    return Place(*(part[best : best + 1] for part in peaks))
