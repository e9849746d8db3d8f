"""The store's own clock: seconds since 1970 that never go back, whatever is done to the machine's clock.

What the wall says is read once, when the store is opened; from then on time is what has passed since, by a
clock that nobody can set. Where the last event of a problem is later than the wall, time stands still for it
until the wall has caught up: no decision expires early because a clock was set back. For other problems it
does not: a log that comes from a clock that is fast must not let their decisions expire.
"""

import time
from collections.abc import Callable


class Clock:
    """Time for one store."""

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        """`wall` may be given, for tests and simulations."""
        self._last, self._wall = 0.0, wall
        self._start, self._since = time.time(), passing()

    def now(self) -> float:
        """The time."""
        wall = self._start + passing() - self._since if self._wall is None else float(self._wall())
        self._last = max(self._last, wall)
        return self._last


def passing() -> float:
    """Seconds that pass also while the machine sleeps, where there is such a clock."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.monotonic()
