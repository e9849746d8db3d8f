"""Means with their 95 % intervals: of rewards, and of what another agent would have earned."""

from math import sqrt
from statistics import NormalDist
from typing import Any

from unfog.maths.arrays import Array

LEVEL = 0.95
REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)


FIELDS = ("mean", "low", "high", "count")


def mean(values: Array, *, binary: bool = False) -> dict[str, Any]:
    """Of independent values, by the standard error; None is what is not known.

    Where they are 0 or 1 it is E. B. Wilson's interval, which says something also where all came out alike.
    """
    count = len(values)
    if not count:
        return _said(None, None, None, 0)
    found = float(values.mean())
    if binary:
        square = REACH**2 / count
        centre = (found + square / 2) / (1 + square)
        reach = REACH * sqrt((found * (1 - found) + square / 4) / count) / (1 + square)
        return _said(found, max(centre - reach, 0.0), min(centre + reach, 1.0), count)
    if count == 1:
        return _said(found, None, None, 1)
    reach = REACH * float(values.std(ddof=1)) / sqrt(count)
    return _said(found, found - reach, found + reach, count)


def _said(*values: float | None) -> dict[str, Any]:
    return dict(zip(FIELDS, values, strict=True))


def weighted(rewards: Array, weights: Array) -> dict[str, Any]:
    """The mean of w r, by inverse propensity, and how many decisions its weights are worth."""
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    return {**mean(weights * rewards), "effective": effective}
