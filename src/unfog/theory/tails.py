"""What a mean over trials hides: quantiles of regret, and how many trials have stopped learning.

An agent that has settled on the wrong arm loses as much in every further round: its regret grows linearly. A
trial counts as such where its regret in the last quarter of the rounds is positive and at least `LINEAR` of
that in the quarter before. Regret that grows like sqrt(t) has 0.84 there, and one that grows like ln t 0.71.
A trial is noisy, so half of them or so pass for linear where losses have become small and steady: the share
is to be read beside the 99 % quantile, which is far above the median where some trials have locked in.
"""

import numpy as np

from unfog.maths.arrays import Array

QUANTILES = {"q50": 0.5, "q99": 0.99}
LINEAR = 0.9


def quantiles(values: Array) -> dict[str, float]:
    """The quantiles of final regrets (trials,), interpolated between trials where they fall between two."""
    return {name: float(np.quantile(values, level)) for name, level in QUANTILES.items()}


def linear_share(half: Array, before: Array, end: Array) -> float:
    """The share of trials whose regret grows linearly, from totals (trials,) where each quarter ends."""
    last, previous = end - before, before - half
    return float(((last > 0) & (last >= LINEAR * previous)).mean())
