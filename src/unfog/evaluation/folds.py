"""Which rounds a model of rewards is fitted on, and which it then speaks of: never the same ones.

    across    blocks of time; each is predicted by a model of all the others. For loggers that do not learn.
    forward   each block is predicted by a model of the blocks before it, the first by none. What a learning
              logger did in later rounds hangs on the rewards of earlier ones, so that a model which has seen
              later rounds has seen something of this one's reward, too.

Both go through the rounds in the order of time, and speak of each once.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Ints

BLOCKS = 5
STEPS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # where blocks begin
FIRST = 100  # rounds of the first block, if that is no more than a quarter: a model of few does more harm


class Fold(NamedTuple):
    """Rounds to learn from, and rounds to speak of."""

    train: Ints  # in the order of time
    test: Ints

    def learns(self, block: Ints) -> bool:
        """Whether it learns from the rounds that another fold speaks of: from all of them, or from none."""
        place = int(np.searchsorted(self.train, block[0]))
        return place < len(self.train) and bool(self.train[place] == block[0])


def across(rounds: int) -> Iterator[Fold]:
    """As many rounds in each block, or one more."""
    places = np.arange(rounds)
    for test in np.array_split(places, min(BLOCKS, rounds)):
        yield Fold(np.concat([places[: test[0]], places[test[-1] + 1 :]]), test)


def forward(rounds: int) -> Iterator[Fold]:
    """Shorter blocks first: a model of few rounds is soon replaced by one of more."""
    places, least = np.arange(rounds), min(FIRST, rounds // 4)
    ends = [end for end in (round(share * rounds) for share in STEPS) if end >= least]
    for start, end in pairwise([0, *ends]):
        if end > start:
            yield Fold(places[:start], places[start:end])
