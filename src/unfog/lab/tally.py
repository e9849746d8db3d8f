"""How far a sweep is: what is finished of each setting, and how long the rest will take.

Settings differ in how long they take, so time is counted in the engine's estimates: with c the estimated
seconds of what was played so far in e seconds, whatever is estimated at x takes e x / c.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from unfog.lab.prepare import Plan
from unfog.maths.arrays import Array


class Row(NamedTuple):
    """A setting."""

    label: str
    done: int  # trials
    left: float | None  # seconds until it is finished; None where that is not known yet


class Tally:
    """A `Progress` that hears of single settings; it says nothing by itself."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is done."""
        work = plan.work
        self.name, self.labels, self.trials = (
            plan.spec.name,
            [one.strip() for one in plan.labels],
            work.trials,
        )
        self._costs = np.zeros(len(self.labels))
        for piece in work.pieces:
            self._costs[piece.setting] += work.seconds(piece)
        self._clock, self._began = clock, clock()
        self._done, self._found = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        self._rounds, self._total = 0, work.total
        self._told = False  # of what was there already

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        self._rounds, self._total = done, total

    def settings(self, done: Sequence[int]) -> None:
        """Trials of each setting that are finished; the first time, those that were there already."""
        self._done = np.array(done, float)
        if not self._told:
            self._told, self._found, self._began = True, self._done, self._clock()

    @property
    def finished(self) -> int:
        """Settings of which all trials are there."""
        return int((self._done == self.trials).sum())

    @property
    def share(self) -> float:
        """Of the agent-rounds, those that are done."""
        return self._rounds / self._total

    def left(self) -> float | None:
        """Seconds until all is finished."""
        ends = self._ends()
        return None if ends is None else float(ends[-1])

    def _ends(self) -> Array | None:
        """Seconds until each setting is finished, one after the other as they are played.

        What is under way counts as far as it is, at what the rest costs on average.
        """
        rest = np.cumsum(self._costs * (1 - self._done / self.trials))
        finished = self._done.sum() / (self.trials * len(self.labels)) * self._total
        open_ = max(self._total - finished, 1)
        under_way = rest[-1] * max(self._rounds - finished, 0) / open_
        spent = self._costs @ (self._done - self._found) / self.trials + under_way
        if not spent > 0:
            return None
        pace = (self._clock() - self._began) / spent
        return np.maximum(rest - under_way, 0) * pace

    def rows(self, most: int) -> list[Row]:
        """Settings, at most so many: those that are under way, then those to come, then finished ones."""
        ends, open_ = self._ends(), self._done < self.trials
        order = [*np.flatnonzero(open_ & (self._done > 0)), *np.flatnonzero(open_ & (self._done == 0))]
        order += [*np.flatnonzero(~open_)[::-1]]
        return [
            Row(self.labels[i], int(self._done[i]), None if ends is None else float(ends[i]) * bool(open_[i]))
            for i in order[:most]
        ]

    def line(self) -> str:
        """All of it in a line."""
        several = f", {self.finished} of {len(self.labels)} settings" if len(self.labels) > 1 else ""
        left = self.left()
        return f"{self.name}: {self.share:.0%} done{several}" + (f", {spell(left)} left" if left else "")


def spell(seconds: float) -> str:
    """A length of time, roughly."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
