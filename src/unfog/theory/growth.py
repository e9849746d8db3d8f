"""How fast something grows: the exponent b of a power law y = a x^b, with its standard error.

b is the slope of ln(mean y) over ln x by least squares. The mean is over trials, each of which has a value at
every x; the error is the jackknife's, which leaves one trial out at a time, so that it need not matter how
the values of a trial hang together. Where leaving one trial out leaves a mean that has no logarithm, there
is no error to be had. B. Efron and C. Stein, *The Jackknife Estimate of Variance*.
"""

import numpy as np

from unfog.maths.arrays import Array
from unfog.theory.regret import Estimate
from unfog.validation import InputError


def slope(points: Array, values: Array) -> Array:
    """The slope of ln y over ln x: points (n,), values (..., n) -> (...,)."""
    away = np.log(points) - np.log(points).mean()
    found: Array = np.log(values) @ away / (away @ away)
    return found


def exponent(points: Array, values: Array) -> Estimate:
    """Of the mean of values (trials, n) at points (n,).

    The standard error is NaN for one trial alone, and where the mean is above zero thanks to one trial alone.
    """
    x = np.asarray(points, dtype=np.float64)
    trials, mean = len(values), values.mean(0)
    if len(np.unique(x)) < 2 or (x <= 0).any():
        raise InputError("points", x.tolist(), "two or more different numbers above zero")
    if (mean <= 0).any():
        raise InputError("values", f"a mean of {mean.min():.3g}", "means above zero")
    found = float(slope(x, mean))
    others = (mean * trials - values) / max(trials - 1, 1)
    if trials == 1 or (others <= 0).any():
        return Estimate(found, float("nan"))
    rest = slope(x, others)
    return Estimate(found, float(np.sqrt((trials - 1) / trials * ((rest - rest.mean()) ** 2).sum())))
