"""Which parts a series has: the best law of all, and of fewer and fewer parts.

That whose absence costs the least of the likelihood goes first, while twice the cost is below what chance
alone exceeds one time in twenty at the edge of what is possible (S. G. Self and K.-Y. Liang, *Asymptotic
Properties of Maximum Likelihood Estimators and Likelihood Ratio Tests under Nonstandard Conditions*). In the
same way a walk that returns to zero is asked for once all else is settled, of more weight: taken for one by
mistake, a walk without end has limits that are wrong.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools
from unfog.maths.ascent import Box, Function, Place, climb
from unfog.model.laws import ONE_SIDED, PAIR, SLOW, TAU, Drop, Model, W

STARTS = 3  # of the best on a grid
UNTOLD = "pairs cannot tell {one} from {other} here: {one} is left out, and {other} kept"
FAR = 2.3  # a second start for what is left when a part goes: ten times as long, or as fast


class Stand(NamedTuple):
    """A peak (one point), and what is free there."""

    peak: Place
    free: Bools  # (p,)
    dropped: tuple[Drop, ...]


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
