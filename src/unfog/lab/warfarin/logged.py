"""A log of doses as a cautious clinic would have kept it: the clinical algorithm, and a draw now and then.

With probability `floor` the arm is drawn evenly, else it is the one of the IWPC's clinical algorithm, fed
with the noisy context: every arm has at least floor / K. With a floor of 1 the log is a randomised trial.
As the right dose of every patient is known, so is the value of any policy on the same patients: what an
estimate from such a log can be held against.
"""

import numpy as np

from unfog.evaluation.log import Log
from unfog.lab.warfarin import doses, rules
from unfog.lab.warfarin.errors import Errors
from unfog.lab.warfarin.record import COORDINATES, Patients, patients
from unfog.maths.arrays import pick
from unfog.maths.random import generator
from unfog.validation import InputError, positive


def log(
    people: Patients | None = None,
    errors: Errors | None = None,
    *,
    floor: float = 1.0,
    reward: str = "bucket",
    seed: int = 0,
) -> Log:
    """Patients, all unless told, in a random order, with one dose each; the true context is the record.

    >>> import numpy as np
    >>> from unfog.lab import warfarin
    >>> rng = np.random.default_rng(0)
    >>> contexts = rng.normal(size=(600, len(warfarin.COORDINATES)))
    >>> people = warfarin.Patients(contexts, dose=rng.uniform(10, 70, 600))
    >>> found = warfarin.log(people, floor=0.2)
    >>> found.arms, found.noisy.shape
    (('low', 'medium', 'high'), (600, 11))
    """
    if positive("floor", floor) > 1:
        raise InputError("floor", floor, "a number greater than 0 and at most 1")
    source, people = generator(seed, 0, "warfarin-log"), patients() if people is None else people
    people = people.rows(source.permutation(len(people.dose)))
    noisy = (errors or Errors()).noisy(people.contexts, source)
    arms = len(doses.ARMS)
    usual = doses.bucket(rules.weekly_dose(rules.CLINICAL, noisy))
    probabilities = floor / arms + (1 - floor) * (usual[:, None] == np.arange(arms))
    arm = np.where(source.random(len(usual)) < floor, source.integers(arms, size=len(usual)), usual)
    paid = pick(doses.rewards(people.dose, reward), arm)
    return Log(
        coordinates=COORDINATES,
        arms=doses.ARMS,
        noisy=noisy,
        arm=arm,
        reward=paid,
        probability=pick(probabilities, arm),
        probabilities=probabilities,
        true=people.contexts,
        source="warfarin, IWPC",
    )
