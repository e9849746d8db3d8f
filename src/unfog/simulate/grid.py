"""Which rounds are stored: as many as fit, always with the last and with those that its last quarters need.

Whether a trial's regret still grows is seen by comparing the last quarter of its rounds with the one before:
the rounds at which these begin and end are stored for every trial, however coarse the rest.
"""

import numpy as np

from unfog.maths.arrays import Ints
from unfog.validation import InputError

MOST_POINTS = 1000
MOST_CELLS = 32_000_000  # stored numbers in a run: 256 MB
MOST_STORED = 2**28  # 2 GB, where points are asked for
MOST_MOMENTS = MOST_CELLS // 4  # numbers that moments over trials take, 64 MB
FINE_ENOUGH = 100  # points that make a curve
CURVES = 8  # losses of an agent, at most


def stored_rounds(rounds: int, trials: int, agents: int, points: int | None = None) -> Ints:
    """Every round where that is affordable, otherwise evenly spaced ones and the ends of quarters.

    They are as many as `points` at most. Who asks for one or two gets evenly spaced ones alone.
    """
    if points is None:
        points = min(MOST_POINTS, max(3, MOST_CELLS // (CURVES * trials * agents)))
    even, ends = _even(rounds, min(points, rounds)), np.asarray(quarters(rounds) or (), np.intp)
    if points < len(ends):
        return even
    found = np.union1d(even, ends)
    return found if len(found) <= points else np.union1d(_even(rounds, max(1, points - 2)), ends)


def _even(rounds: int, points: int) -> Ints:
    return np.unique(np.ceil(np.arange(1, points + 1) * (rounds / points) - 1e-9).astype(np.intp))


def quarters(rounds: int) -> tuple[int, int, int] | None:
    """The rounds after which the last two quarters begin and end, of equal length; none where that is 0."""
    length = rounds // 4
    return (rounds - 2 * length, rounds - length, rounds) if length else None


def refuse_too_much(grid: Ints, trials: int, agents: int) -> None:
    """No run stores more than two gigabytes, not even one that is told how many points to keep."""
    each = CURVES * len(grid) * agents
    if each * trials > MOST_STORED:
        where = f"{trials} with {len(grid)} stored rounds of {agents} agents"
        raise InputError("trials", where, f"at most {MOST_STORED // each}, or fewer points")


def curve_rounds(rounds: int, grid: Ints, agents: int = 1) -> Ints:
    """The rounds of the moments over trials: where single trials are stored too coarsely to draw a curve.

    With very many agents, those of all settings counted, they are fewer, or none where that gains nothing.
    """
    points = min(MOST_POINTS, MOST_MOMENTS // (2 * CURVES * agents))
    fine = len(grid) >= min(rounds, FINE_ENOUGH, points)
    return grid[:0] if fine else stored_rounds(rounds, 1, 1, points)
