"""How beliefs went: samples over time of the bias, and of what readings were like, of a problem and units.

Every so many decisions a sample is taken. Where there is no more room, every second one is dropped, and from
then on samples are taken half as often: so many of them cover the whole past, evenly, however long it is.
They are folded from decisions as beliefs are, so that a replay has the same ones, and kept in arrays, which a
snapshot writes as they are. Values are in the agent's units.

    of the problem   the bias of its units, as each was last sampled: the mean over the first that came, and
                     the root of the mean variance; mean squares of z of late, and e-values
    of a unit        its bias and how uncertain that is; of the first units, as many as there is room for
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unfog.channel import innovations
from unfog.channel.innovations import Innovations
from unfog.live.mind import Law
from unfog.maths.arrays import Array

MOST, MOST_EACH = 512, 64  # samples of a problem, and of each unit; even, since every second one is dropped
MOST_UNITS, MOST_VALUES = 1000, 2**20  # units that have samples of their own, and numbers in all of these
FIRST_EVERY = 4  # decisions from one sample to the next, to begin with: a sample takes 20 us

Bias: TypeAlias = Callable[[], Law | None]
"""Says what is believed of a unit's bias: mean and variance, (d,) each; None: the agent says nothing."""


class Series:
    """Samples of several things, each thinned by itself."""

    def __init__(self, most: int, width: int) -> None:
        """None yet, each of so many numbers."""
        self._most, self._rows = most, np.zeros((1, most, width))
        self._seen, self._every, self._count = list[int](), list[int](), list[int]()

    def join(self) -> None:
        """One more thing to take samples of."""
        if len(self._seen) == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        for counts, first in ((self._seen, 0), (self._every, FIRST_EVERY), (self._count, 0)):
            counts.append(first)

    def is_due(self, which: int) -> bool:
        """Once more it happened: whether a sample is to be taken."""
        found = self._seen[which] % self._every[which] == 0
        self._seen[which] += 1
        return found

    def add(self, which: int) -> Array:
        """One more sample: where it is to be written."""
        rows = self._rows[which]
        if self._count[which] == self._most:
            half = self._most // 2
            rows[:half] = rows[::2].copy()
            rows[half:] = 0.0
            self._count[which], self._every[which] = half, 2 * self._every[which]
        self._count[which] += 1
        return rows[self._count[which] - 1]

    def seen(self, which: int) -> int:
        """How often it happened."""
        return self._seen[which]

    def rows(self, which: int) -> Array:
        """The samples, oldest first."""
        return self._rows[which, : self._count[which]].copy()

    def content(self) -> list[Any]:
        """All of it, in nested values that do not change any more."""
        used = self._rows[: len(self._seen), : max(self._count, default=0)].copy()
        return [used, *map(list, (self._seen, self._every, self._count))]

    def fill(self, content: list[Any]) -> None:
        """As it was."""
        used, self._seen, self._every, self._count = content
        self._rows = np.zeros((max(len(used), 1), *self._rows.shape[1:]))
        self._rows[: len(used), : used.shape[1]] = used


class Track(NamedTuple):
    """Samples over time, n of them."""

    number: Array  # (n,)  of the decision after which it was taken
    time: Array  # (n,)
    bias: Array  # (n, d)  not a number where there is none
    bias_sd: Array  # (n, d)
    z_square: Array | None = None  # (n, d)  of late
    e_value: Array | None = None  # (n, d)
    e_value_of_all: Array | None = None  # (n,)


class Tracks:
    """Those of one problem."""

    def __init__(self, dim: int) -> None:
        """Before the first decision."""
        self._dim, self._places = dim, dict[str, int]()
        self._room = min(MOST_UNITS, max(1, MOST_VALUES // (MOST_EACH * (2 + 2 * dim))))
        self._all, self._each = Series(MOST, 4 + 5 * dim), Series(MOST_EACH, 2 + 2 * dim)
        self._last = np.zeros((1, 2, dim))  # of each unit: mean and variance of its bias
        self._now = [0.0, 0.0]  # number and time of the last decision
        self._all.join()

    def decided(self, number: int, time: float, unit: str, bias: Bias, readings: Innovations | None) -> None:
        """A decision was made on a reading of a unit, of whose bias this was believed then."""
        self._now = [float(number), time]
        place, whole = self._place(unit), self._all.is_due(0)
        own = place >= 0 and self._each.is_due(place)
        if place >= 0 and (own or whole):
            self._last[place] = np.nan if (law := bias()) is None else law
            if own:
                row = self._each.add(place)
                row[0], row[1], row[2:] = number, time, self._last[place].reshape(-1)
        if whole:
            self._write(self._all.add(0), readings)

    def _place(self, unit: str) -> int:
        """Of a unit; -1 where it has none."""
        place = self._places.get(unit, -1)
        if place < 0 and len(self._places) < self._room:
            place = self._places[unit] = len(self._places)
            self._each.join()
            if place == len(self._last):
                self._last = np.concatenate((self._last, np.zeros_like(self._last)))
        return place

    def _write(self, row: Array, readings: Innovations | None) -> Array:
        """A sample of the problem: sums, of which means are made when somebody looks."""
        units, parts = len(self._places), row[4:].reshape(5, self._dim)
        row[:2], row[2] = self._now, units
        np.add.reduce(self._last[:units], axis=0, out=parts[:2])
        if readings is None:
            row[3] = parts[2:] = np.nan
        else:
            row[3], parts[2:4] = readings.readings, readings.lately[::2]
            np.add.reduce(readings.evidence, axis=-1, out=parts[4])
        return row

    def whole(self, readings: Innovations | None) -> Track:
        """That of the problem; its last sample is what holds now, after the last decision."""
        rows = self._all.rows(0)
        rows = _with(rows, self._write(np.empty(4 + 5 * self._dim), readings)) if len(rows) else rows
        mean, variance, seen, squares, evidence = rows[:, 4:].reshape(-1, 5, self._dim).swapaxes(0, 1)
        units, each = rows[:, 2:3], innovations.e_values_of(evidence, rows[:, 3])
        with np.errstate(invalid="ignore"):  # nothing by nothing
            z_square, bias, bias_sd = squares / seen, mean / units, np.sqrt(variance / units)
        return Track(rows[:, 0], rows[:, 1], bias, bias_sd, z_square, each, each.mean(-1))

    def of(self, unit: str, law: Law | None) -> Track:
        """That of a unit; its last sample is what is believed now, after the last decision of all units."""
        place, known = self._places.get(unit), np.full((2, self._dim), np.nan) if law is None else law
        before = np.empty((0, 2 + 2 * self._dim)) if place is None else self._each.rows(place)
        rows = _with(before, np.concatenate((self._now, *known)))
        mean, variance = np.split(rows[:, 2:], 2, axis=1)
        return Track(rows[:, 0], rows[:, 1], mean, np.sqrt(variance))

    def decisions(self, unit: str) -> int | None:
        """How many a unit had, where that is known."""
        place = self._places.get(unit)
        return None if place is None else self._each.seen(place)

    def content(self) -> dict[str, Any]:
        """All of it, in nested values that do not change any more."""
        last = self._last[: max(len(self._places), 1)].copy()
        return {
            "places": list(self._places),
            "all": self._all.content(),
            "each": self._each.content(),
            "last": last,
            "now": self._now,
        }

    def fill(self, content: dict[str, Any]) -> None:
        """As it was."""
        self._places = {unit: place for place, unit in enumerate(content["places"])}
        self._all.fill(content["all"])
        self._each.fill(content["each"])
        self._last, self._now = content["last"], content["now"]


def _with(rows: Array, now: Array) -> Array:
    """Samples, the last of which is that of now; it takes the place of one of the same decision."""
    before = rows[rows[:, 0] < now[0]]
    return np.concatenate((before, now[None]))
