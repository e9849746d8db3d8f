"""Means over independent trials with their standard errors and intervals; ratios of two paired means.

    r = mean(x) / mean(y),    se(r)^2 = var(x - r y) / (n mean(y)^2)

x and y are the regrets of two agents in the same n trials: the same theta, contexts, noise and luck with
rewards. The standard error is the delta method's. Variances have n - 1 in their denominators.
"""

from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array


def normal_reach(level: float = 0.95) -> float:
    """How many standard deviations about its mean hold a Gaussian with this probability: 1.96 for 95 %."""
    return NormalDist().inv_cdf((1 + level) / 2)


class Estimate(NamedTuple):
    """A mean and its standard error, which is NaN where it is not known.

    >>> from unfog.maths.statistics import Estimate
    >>> tuple(round(end, 2) for end in Estimate(mean=10.0, se=1.0).interval())
    (8.04, 11.96)
    """

    mean: float
    se: float

    def half_width(self, level: float = 0.95) -> float:
        """How far the normal interval reaches to either side."""
        return normal_reach(level) * self.se

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The normal interval."""
        half = self.half_width(level)
        return self.mean - half, self.mean + half


def standard_error(values: Array) -> Array:
    """The standard error of the mean over the first axis, (n, ...); NaN where n is 1."""
    n = len(values)
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(n))


def estimate(values: Array) -> Estimate:
    """Mean and standard error over trials, (trials,); one trial alone has no standard error (NaN).

    >>> import numpy as np
    >>> from unfog.maths.statistics import estimate
    >>> estimate(np.array([9.0, 10.0, 11.0, 10.0])).mean
    10.0
    """
    return Estimate(float(values.mean()), float(standard_error(values)))


def jackknife_error(left_out: Array) -> float:
    """The standard error of an estimate, from the estimates (n,) that leave out one of n parts at a time."""
    return float(np.sqrt((len(left_out) - 1) * ((left_out - left_out.mean()) ** 2).mean()))


def binomial_p_value(count: int, number: int, share: float) -> float:
    """The probability of a count at least as far off on its side, twice; by the normal law beyond 1,000.

    >>> round(binomial_p_value(8, 10, 0.5), 4)  # 2 (45 + 10 + 1) / 1024
    0.1094
    """
    is_low = count < number * share
    if number > 1000:
        reach = (abs(count - number * share) - 0.5) / sqrt(number * share * (1 - share))
        return min(1.0, 2 * NormalDist().cdf(-reach))
    tail = range(count + 1) if is_low else range(count, number + 1)
    chances = [lgamma(number + 1) - lgamma(k + 1) - lgamma(number - k + 1) for k in tail]
    logs = [x + k * log(share) + (number - k) * log1p(-share) for x, k in zip(chances, tail, strict=True)]
    return min(1.0, 2 * sum(exp(x) for x in logs))


def wilson_interval(share: float, count: int, level: float = 0.95) -> tuple[float, float]:
    """E. B. Wilson's interval of a probability, from the share of ones among `count` values of 0 or 1."""
    reach = normal_reach(level)
    square = reach**2 / count
    centre = (share + square / 2) / (1 + square)
    half = reach * sqrt((share * (1 - share) + square / 4) / count) / (1 + square)
    return max(centre - half, 0.0), min(centre + half, 1.0)


class Quotient(NamedTuple):
    """A ratio of means and its standard error."""

    value: float
    se: float


def quotient(other: Array, reference: Array) -> Quotient:
    """The mean regret of `other` (trials,) divided by that of the reference.

    NaN if the latter is not positive; one trial alone has no standard error (NaN).
    """
    top, bottom = float(other.mean()), float(reference.mean())
    if not bottom > 0:
        return Quotient(np.nan, np.nan)
    value = top / bottom
    return Quotient(value, float(standard_error(other - value * reference) / bottom))


class Pool(NamedTuple):
    """Mean and squared deviations over the trials so far, to which groups of trials are joined.

    The pairwise formula of T. F. Chan, G. H. Golub and R. J. LeVeque, *Updating formulae and a pairwise
    algorithm for computing sample variances*.
    """

    trials: int
    mean: Array
    spread: Array  # sum of squared deviations from the mean

    def joined(self, count: int, group: Array) -> "Pool":
        """The pool with `count` more trials, whose mean and squared deviations are `group` (..., 2)."""
        n, shift = self.trials, group[..., 0] - self.mean
        spread = self.spread + group[..., 1] + shift**2 * (n * count / (n + count))
        return Pool(n + count, self.mean + shift * (count / (n + count)), spread)

    @property
    def se(self) -> Array:
        """The standard error of the mean."""
        return np.asarray(np.sqrt(self.spread / max(self.trials - 1, 1) / self.trials))
