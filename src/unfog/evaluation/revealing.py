"""Does it hang on the arm, or on what was paid, which true contexts became known?

The model of rewards may use a true context in the very round it belongs to: the arm was drawn from the noisy
context, and given that has nothing to do with the true one. That is so only if *whether* the true context is
known has nothing to do with the arm or the reward either. Where patients are looked at again because they did
badly, a known context says how they did, and doubly robust estimates are off.

Arms drawn in rounds whose truth is known must come up as often as their probabilities say (checks.py). What
was paid beyond what the reading explains must be alike, in mean and in size, where the truth is known and
where it is not. A false alarm costs little: the model then goes by readings alone.
"""

import numpy as np

from unfog.evaluation.checks import by_arm, by_weight
from unfog.evaluation.log import Log
from unfog.maths.arrays import Array

LEAST = 30  # rounds of either kind
FAR = 3.5  # standard errors: chance alone gives one in 2,000


def suspicion(log: Log, surprise: Array) -> str:
    """What speaks against using true contexts, empty where nothing does; `surprise` (n,) is by readings."""
    known = np.zeros(log.rounds, bool) if log.true is None else ~np.isnan(log.true).all(axis=1)
    if min(known.sum(), (~known).sum()) < LEAST:
        return ""
    there = log.rows(np.flatnonzero(known))
    arms = by_weight(there) if log.probabilities is None else by_arm(there)
    if not arms.fits:
        return "Which true contexts are known hangs on the arm that was drawn."
    for values in (surprise, surprise**2):
        one, other = values[known], values[~known]
        error = np.sqrt(one.var() / len(one) + other.var() / len(other))
        if abs(one.mean() - other.mean()) > FAR * error:
            return "Which true contexts are known hangs on what was paid."
    return ""
