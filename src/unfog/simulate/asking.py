"""When to ask for a true context: where it is worth most, within a budget.

Every round adds a share of a reading to the credit, and a question takes one. It is asked where the credit
allows it and a true context is worth more than a level that is learnt on the way: a question raises the level
by a factor, a round without one lowers it, by so much that in the long run the share of rounds in which the
worth is above the level is the share that can be paid (H. Robbins, S. Monro, *A Stochastic Approximation
Method*). Credit is kept up to `MOST` readings, so that questions are put off for better ones, not for ever.
"""

import numpy as np

from unfog.maths.arrays import Array

MOST = 2.0
RATE = 0.5  # of the level's logarithm, for each question


class Asking:
    """The questions of a batch of trials."""

    def __init__(self, share: float, trials: int) -> None:
        """With credit for one question, which the first round asks."""
        self._share = share
        self._credit, self._level = np.ones(trials), np.zeros(trials)
        self.asked = np.zeros(trials)

    def next(self, worth: Array) -> Array:
        """1 where to ask, 0 where not, for what a true context is worth now: (trials,)."""
        able = self._credit >= 1 if self._share else np.zeros(worth.shape, bool)
        ask = (able & (worth >= self._level)).astype(float)
        first = ask * (self.asked == 0)
        moved = self._level * np.exp(RATE * (ask - self._share))
        self._level = np.where(first > 0, worth, moved)
        self._credit = np.minimum(self._credit - ask + self._share, MOST)
        self.asked = self.asked + ask
        return ask
