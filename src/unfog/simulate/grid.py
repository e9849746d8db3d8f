"""Which rounds are stored: as many as fit, the last always among them."""

import numpy as np

from unfog.inputs import InputError
from unfog.maths.arrays import Ints

MOST_POINTS = 1000
MOST_CELLS = 32_000_000  # stored numbers in a run: 256 MB
MOST_STORED = 2**28  # 2 GB, where points are asked for
FINE_ENOUGH = 100  # points that make a curve
CURVES = 6  # losses of an agent, at most


def stored_rounds(rounds: int, trials: int, agents: int, points: int | None = None) -> Ints:
    """Every round where that is affordable, otherwise evenly spaced ones, the last always among them."""
    if points is None:
        points = min(MOST_POINTS, max(1, MOST_CELLS // (CURVES * trials * agents)))
    points = min(points, rounds)
    return np.unique(np.ceil(np.arange(1, points + 1) * (rounds / points) - 1e-9).astype(np.intp))


def refuse_too_much(grid: Ints, trials: int, agents: int) -> None:
    """No run stores more than two gigabytes, not even one that is told how many points to keep."""
    each = CURVES * len(grid) * agents
    if each * trials > MOST_STORED:
        where = f"{trials} with {len(grid)} stored rounds of {agents} agents"
        raise InputError("trials", where, f"at most {MOST_STORED // each}, or fewer points")


def curve_rounds(rounds: int, grid: Ints) -> Ints:
    """The rounds of the moments over trials: where single trials are stored too coarsely to draw a curve."""
    fine = len(grid) >= min(rounds, FINE_ENOUGH)
    return grid[:0] if fine else stored_rounds(rounds, 1, 1, MOST_POINTS)
