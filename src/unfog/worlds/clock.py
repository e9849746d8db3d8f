"""The time of the rows of a record, which goes on where the record is begun again.

A trial walks through the rows and comes from the last one to the first: the time between them is the whole
span of the record and then some, rounded up to weeks of hours, so that the hour of the day and the day of
the week stay what they were.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, Ints

GAP = 1000.0  # beyond the span of a record
WEEK = 168.0


class Clock(NamedTuple):
    """The times of the rows of a record."""

    times: Array  # (n,)  never going back

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.times)

    @property
    def lap(self) -> float:
        """From a row to the same row when its turn comes again: twice the span and the gap, in weeks."""
        twice = 2 * float(self.times[-1] - self.times[0]) + GAP
        return WEEK * -(-twice // WEEK)

    def read(self, first: Array | None, number: Ints | None) -> tuple[Ints | None, Array | None]:
        """Rows and times of rounds of these numbers, in trials that start at a row (...,)."""
        if first is None or number is None:
            return None, None
        xp = first.__array_namespace__()
        walked = xp.astype(first, xp.int64) + number
        row: Ints = walked % self.rows
        return row, xp.asarray(self.times)[row] + self.lap * (walked // self.rows)
