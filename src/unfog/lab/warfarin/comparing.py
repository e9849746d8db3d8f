"""What comes of each way to dose, over many random orders of the same patients.

Intervals are over orders: they say how sure a difference is for these patients, whoever comes first and
whatever the errors are. They do not say how much another hospital's patients would differ.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.lab.warfarin import doses
from unfog.lab.warfarin.errors import Errors
from unfog.lab.warfarin.policies import POLICIES, D, Scene, scene
from unfog.lab.warfarin.record import Patients
from unfog.maths.arrays import Array, Ints, pick
from unfog.validation import InputError, one_of

LAST = 1000  # patients, by whom an agent has learnt most of what it will
NO_ERRORS = Errors()


class Outcome(NamedTuple):
    """Of one way to dose, a number for each order (B,).

    >>> import numpy as np
    >>> from unfog.lab import warfarin
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> found = warfarin.compare(people, policies=["naive"], orders=4, apart=200)["naive"]
    >>> found.wrong.shape, float(found.less(found).wrong.sum())
    ((4,), 0.0)
    """

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
    """What came of each policy, over so many random orders of these patients, `apart` of whom calibrate.

    >>> import numpy as np
    >>> from unfog.lab import warfarin
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> found = warfarin.compare(people, policies=["naive", "denoised"], orders=4, apart=200)
    >>> sorted(found)
    ['denoised', 'naive']
    """
    validation.count("orders", orders, 2)
    validation.count("apart", apart, 10 * D)
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
    """Of the mean of a number for each order (B,).

    >>> import numpy as np
    >>> from unfog.lab import warfarin
    >>> print(warfarin.interval(np.array([0.31, 0.29, 0.30, 0.32])))
    0.3050 ± 0.0127
    """
    return Interval(float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values))))
