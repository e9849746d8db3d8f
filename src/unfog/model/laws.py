"""The laws that a series may follow, as points: which numbers there are, and which parts may be missing.

A point holds logarithms of the walk, of its time constant, of that of the fast part, the logit of the white
share, and logarithms of the sizes of cycles. A part that is missing has infinite entries. The edges of the
box are as good as that.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array
from unfog.maths.ascent import Box
from unfog.model.series import Law, Series

W, SLOW, TAU, Q = 0, 1, 2, 3  # places in a point; sizes of cycles follow
ONE_SIDED, PAIR = 2.706, 5.991  # chi-squared: 90 % of one, 95 % of two
APART = 2.0  # times as slow as what is fast is the slow part at least


class Drop(NamedTuple):
    """A part that may be missing: the point's entries then, and what its absence may cost."""

    part: str
    entries: tuple[tuple[int, float], ...]
    allowed: float


class Model(NamedTuple):
    """Which numbers there are, by name, in the order of a point; None for one that is not asked for."""

    names: tuple[str | None, ...]
    drops: tuple[Drop, ...]


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


def box_of(given: Series, size: int) -> Box:
    """From what is as good as nothing in the time there is to what is as good as endless."""
    steps = given.steps[given.steps > 0]
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(given.first)[1:]))
    low, high = np.full(size, np.log(1e-6)), np.full(size, np.log(1e4))
    low[W], high[W] = np.log(1e-4 / span), np.log(1e4 / np.median(steps))
    low[SLOW], high[SLOW] = np.log(np.median(steps)), np.log(20 * span)
    low[TAU], high[TAU] = np.log(steps.min() / 8), np.log(20 * span)
    low[Q], high[Q] = -9.0, 9.0
    return Box(low, high)


def starts_of(model: Model, given: Series, box: Box) -> Array:
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
