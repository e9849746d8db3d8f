"""When to ask for a true context: where it is worth most, within a budget.

Every round adds a share of a reading to the credit, and a question takes one. It is asked where the credit
allows it and a true context is worth more than a level that is learnt on the way: a round that is worth more
raises the level by a factor, one that is not lowers it, by so much that in the long run the share of rounds
above it is the share that can be paid (H. Robbins, S. Monro, *A Stochastic Approximation Method*). Credit is
kept up to `MOST` readings, so that a question is put off for a better one; what could not be kept is asked.

The level begins at the worth of the second question: before the first next to nothing is known, and that one
is worth many times any other.
"""

import numpy as np

from unfog.maths.arrays import Array

MOST = 2.0
FIRST = 2  # the question whose worth the level begins with
RATE = 0.5  # of the level's logarithm, for a round above it


class Asking:
    """The questions of a batch of trials."""

    def __init__(self, share: float, trials: int) -> None:
        """With credit for one question, which the first round asks."""
        self._share = share
        self._credit, self._level = np.ones(trials), np.zeros(trials)
        self.asked = np.zeros(trials)

    def next(self, worth: Array) -> Array:
        """1 where to ask, 0 where not, for what a true context is worth now: (trials,)."""
        above = worth >= self._level
        able = (self._credit >= 1) & (self._share > 0)
        ask = (able & (above | (self._credit + self._share > MOST))).astype(float)
        moved = self._level * np.exp(RATE * (above - self._share))
        self.asked = self.asked + ask
        begins = (ask > 0) & (self.asked == FIRST)
        self._level = np.where(begins, worth, moved)
        self._credit = self._credit - ask + self._share
        return ask
