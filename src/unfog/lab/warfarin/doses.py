"""Doses as arms, and what each would have been worth to a patient whose right dose is known.

Three arms: less than 21, 21 to 49, and more than 49 mg a week, as in the bandit that H. Bastani and M. Bayati
made of this record (docs/notebook/warfarin.md). Two rewards, each a stated function of the stable dose s:

    bucket   0 if the arm is the one that s falls into, -1 if not: as they have it
    graded   -|ln(dose of the arm / s)|, with 2, 5 and 8 mg a day for the three arms: 14, 35 and 56 a week

A patient is paid for every arm, so that any policy can be judged; a bandit is shown one arm's reward. A
mistake is severe if a patient who needs less than 21 mg is given more than 49, or the other way round: the
first may bleed, the second may clot.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints
from unfog.validation import one_of

ARMS = ("low", "medium", "high")
LOW, MEDIUM, HIGH = range(3)
EDGES = (21.0, 49.0)  # mg a week; both are medium
TYPICAL = (14.0, 35.0, 56.0)  # mg a week
REWARDS = ("bucket", "graded")


def bucket(dose: Array) -> Ints:
    """The arm that a weekly dose (...,) falls into."""
    found: Ints = (dose >= EDGES[0]).astype(np.intp) + (dose > EDGES[1])
    return found


def rewards(dose: Array, kind: str = "bucket") -> Array:
    """Of every arm, (..., K), to patients whose stable dose is this (...,)."""
    if one_of("reward", kind, REWARDS) == "graded":
        return -np.abs(np.log(np.array(TYPICAL) / dose[..., None]))
    return np.where(bucket(dose)[..., None] == np.arange(len(ARMS)), 0.0, -1.0)


class Mistakes(NamedTuple):
    """Of every decision, (...,)."""

    wrong: Bools  # another arm than the stable dose falls into
    severe: Bools  # low for high, or high for low


def mistakes(dose: Array, arm: Ints) -> Mistakes:
    """What is wrong with giving these arms (...,) to patients of these stable doses (...,)."""
    apart = np.abs(bucket(dose) - arm)
    return Mistakes(apart > 0, apart > 1)
