"""A few numbers of a problem for those who watch many: what waits, for how long, and whether readings fit."""

from typing import NamedTuple

import numpy as np

from unfog.channel import innovations
from unfog.live.state import State


class Vitals(NamedTuple):
    """Of one problem, now."""

    pending: int  # decisions whose reward may still come
    oldest: float  # how long the oldest of them waits: seconds
    innovation: float | None  # mean square of readings in deviations, of late: 1 if the channel is as told


def vitals(state: State, now: float) -> Vitals:
    """From what is remembered."""
    times = [found.time for found in state.open.values() if not found.settled]
    oldest = max(now - min(times), 0.0) if times else 0.0
    return Vitals(len(times), oldest, _innovation(state))


def _innovation(state: State) -> float | None:
    found = state.watch.readings
    if found is None:
        return None
    squares = innovations.moments(found.lately).mean_square
    seen = squares[np.isfinite(squares)]
    return float(seen.mean()) if seen.size else None
