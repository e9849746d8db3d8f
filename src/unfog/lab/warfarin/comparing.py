"""What comes of each way to dose, over many random orders of the same patients.

Intervals are over orders: they say how sure a difference is for these patients, whoever comes first and
whatever the errors are. They do not say how much another hospital's patients would differ.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog import inputs
from unfog.inputs import InputError, one_of
from unfog.lab.warfarin import doses
from unfog.lab.warfarin.errors import Errors
from unfog.lab.warfarin.policies import POLICIES, D, Scene, scene
from unfog.lab.warfarin.record import Patients
from unfog.maths.arrays import Array, Ints, pick

LAST = 1000  # patients, by whom an agent has learnt most of what it will
NO_ERRORS = Errors()


class Outcome(NamedTuple):
    """Of one way to dose, a number for each order (B,)."""

    wrong: Array  # share of patients given another arm than their own
    severe: Array  # share given low for high, or high for low
    reward: Array  # mean
    wrong_late: Array  # share of `wrong` among the last patients

    def less(self, other: "Outcome") -> "Outcome":
        """The difference, order by order."""
        return Outcome(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def outcome(scene: Scene, arm: Ints) -> Outcome:
    """What came of giving these arms (B, n)."""
    wrong, severe = doses.mistakes(scene.dose, arm)
    late = wrong[:, -LAST:].mean(1)
    return Outcome(wrong.mean(1), severe.mean(1), pick(scene.paid, arm).mean(1), late)


def compare(
    patients: Patients,
    errors: Errors = NO_ERRORS,
    *,
    policies: Sequence[str] = tuple(POLICIES),
    orders: int = 50,
    apart: int = 1000,
    reward: str = "bucket",
    seed: int = 0,
) -> dict[str, Outcome]:
    """What came of each policy, over so many random orders of these patients, `apart` of whom calibrate."""
    inputs.count("orders", orders, 2)
    inputs.count("apart", apart, 10 * D)
    if apart >= len(patients.dose):
        raise InputError("apart", apart, f"fewer than the {len(patients.dose)} patients")
    for name in policies:
        one_of("policies", name, list(POLICIES))
    found = scene(patients, errors, orders=orders, apart=apart, reward=reward, seed=seed)
    return {name: outcome(found, POLICIES[name](found)) for name in policies}


class Interval(NamedTuple):
    """A mean over orders, and half the width of its 95 % interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.half:.4f}"


def interval(values: Array) -> Interval:
    """Of the mean of a number for each order (B,)."""
    return Interval(float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values))))
