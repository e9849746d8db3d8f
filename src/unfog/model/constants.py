"""Constants of one series by maximum likelihood: walk, time constants, white share, sizes of cycles.

Parts the data do not ask for are dropped (`unfog.model.selection`). Limits are of the profile likelihood at
95 %: on both sides for what is kept, on the one that is possible for what was dropped, and for both with all
that was dropped free again: a part too small to be seen still widens the limits of the others.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array
from unfog.maths.ascent import Box, Function, Search, limits
from unfog.model.laws import ONE_SIDED, SLOW, TAU, Model, Q, W, box_of, law_at, starts_of
from unfog.model.selection import Stand, chosen, enlarged, highest, returning
from unfog.model.series import Filtered, Law, Series, filtered, likelihood

ALONE = "{} is as large as can be: no other part shows beside it"
TWO_SIDED = 3.841  # chi-squared of one: 95 %


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


class Fit(NamedTuple):
    """The best point, and what it says."""

    law: Law  # one
    found: Filtered
    value: float  # log L
    constants: dict[str, Constant]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]


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
