"""A ratio of two means over the same trials, and its standard error.

    r = mean(x) / mean(y),    se(r)^2 = var(x - r y) / (n mean(y)^2)

x and y are the regrets of two agents in the same n trials: the same theta, contexts, noise and luck with
rewards. The standard error is the delta method's; the variance has n - 1 in its denominator.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array


class Quotient(NamedTuple):
    """A ratio of means and its standard error."""

    value: float
    se: float


def quotient(other: Array, reference: Array) -> Quotient:
    """Of the regrets (trials,) of another to those of the reference, whose mean is positive.

    NaN where that mean is not; one trial alone has no standard error (NaN).
    """
    n, top, bottom = len(reference), float(other.mean()), float(reference.mean())
    if not bottom > 0:
        return Quotient(np.nan, np.nan)
    value = top / bottom
    if n < 2:
        return Quotient(value, np.nan)
    return Quotient(value, float((other - value * reference).std(ddof=1)) / np.sqrt(n) / bottom)
