"""HeartSteps as a bandit."""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from unfog import validation
from unfog.lab.datasets.files import locate
from unfog.maths.arrays import Array, Ints
from unfog.maths.linalg import recurrence
from unfog.maths.random import generator
from unfog.validation import InputError
from unfog.worlds.measurement import check_share
from unfog.worlds.record import Record, Recorded

STEPS = ("sum_step.log", "jbsteps30pre.log")
LOCATION = "other.location"
COLUMNS = (*STEPS, LOCATION, "dosage")
DECISIONS = 7158  # without a missing value
BETWEEN = 1000.0
FAINT = 0.1  # noise of the columns that are not step counts
NOTE = "HeartSteps: contexts are real, the channel and the rewards are synthetic"


@dataclass(frozen=True, kw_only=True, eq=False)
class HeartSteps(Recorded):
    """HeartSteps as a bandit: real contexts of a trial of activity suggestions, seen through a synthetic
    channel.

    Data: P. Klasnja and others, *Efficacy of Contextually Tailored Suggestions for Physical Activity: A
    Micro-randomized Optimization Trial of HeartSteps*. 37 people carried a tracker and a phone for six weeks;
    five times a day it was decided whether to send a suggestion. The true context is what the cleaned file
    says at such a moment: yesterday's steps and those of the last half hour, both as logarithms, whether the
    person was somewhere else than at home or work, and how many suggestions there were of late (dosage).

    There is no pair of noisy and true, and no clock. Errors are made, once for all trials, of what such
    trials report, in standard deviations of a column (s): steps are under-reported until the tracker has
    synchronised,

        noisy = true - under s + bias of the person + AR(1) error + white,

    where the error keeps exp(-1 / error_time) from one decision to the next; location and dosage have white
    noise of a tenth, and the location is lost at random. Time is the number of the decision within a person;
    from one person to the next it goes on by `BETWEEN`. Rewards are simulated: what people did is not used.

    Fields of the channel are in standard deviations of a column; for the others see `Recorded`.

    `under`, `bias`, `error` and `white` are about step counts: by how much they are too low on average, and
    the spreads of the three parts of the error; `lost` is the share of decisions whose location is missing.

    >>> from unfog.lab.datasets.heartsteps import HeartSteps
    >>> HeartSteps(lost=0.4).lost  # the file is not needed yet
    0.4
    """

    under: float = 0.5
    bias: float = 0.7
    error: float = 0.5
    error_time: float = 3.0
    white: float = 0.3
    lost: float = 0.2
    dim: ClassVar[int] = len(COLUMNS)
    note: str = field(init=False, repr=False, default=NOTE)

    def __post_init__(self) -> None:
        """Check every field; the data are not needed for it."""
        for name in ("under", "bias", "error"):
            validation.not_negative(name, vars(self)[name])
        validation.positive("error_time", self.error_time)
        validation.positive("white", self.white)
        check_share("lost", self.lost, 0.99)
        validation.count("calibration", self.calibration, self.dim + 1, DECISIONS - 1)
        super().__post_init__()

    def record(self) -> Record:
        """The decisions of all people, one after the other, with their noisy contexts."""
        true, people, times = read(locate("heartsteps"))
        return Record(true, true + true.std(axis=0) * self._draw_errors(people, times), people, times)

    def _draw_errors(self, people: Ints, times: Array) -> Array:
        """Draw the errors (n, d), in standard deviations; NaN where a location is lost."""
        rng, steps = generator(0, 0, "heartsteps"), len(STEPS)
        errors = FAINT * rng.standard_normal((len(people), len(COLUMNS)))
        biases = self.bias * rng.standard_normal((people[-1] + 1, steps))
        persistence = np.exp(-np.diff(times, prepend=times[0] - np.inf) / self.error_time)
        fresh = self.error * np.sqrt(1 - persistence**2)[:, None] * rng.standard_normal((len(people), steps))
        white = self.white * rng.standard_normal((len(people), steps))
        errors[:, :steps] = biases[people] - self.under + recurrence(persistence, fresh) + white
        is_lost = rng.random(len(people)) < self.lost
        errors[is_lost, COLUMNS.index(LOCATION)] = np.nan
        return errors


def read(path: Path) -> tuple[Array, Ints, Array]:
    """Contexts (n, d) of the complete decisions, people numbered from 0, and times that never go back."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = [
                (float(row["user"]), *(float("nan" if row[name] == "NA" else row[name]) for name in COLUMNS))
                for row in csv.DictReader(file)
            ]
    except (KeyError, TypeError, ValueError) as error:
        allowed = f"a table with the columns user, {', '.join(COLUMNS)}"
        raise InputError("data", f"{path.name} cannot be read ({error!r})", allowed) from None
    values = np.array(table).reshape(-1, 1 + len(COLUMNS))
    starts = np.flatnonzero(np.diff(values[:, 0], prepend=np.nan) != 0)
    people = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    times = np.arange(len(values)) + BETWEEN * people
    is_complete = np.asarray(np.isfinite(values).all(axis=1))
    if not is_complete.any():
        raise InputError("data", f"{path.name} has no complete decision", "some")
    return values[is_complete, 1:], people[is_complete], times[is_complete].astype(np.float64)
