"""UCI Air Quality as a bandit and as a log.

`AirQuality` has the air of one street as contexts. `air_log` asks what each of its four cheap gas sensors
would be worth if it were better. Contexts and readings of the log are in standard deviations of the
calibration's hours, from their mean. The decision is made up: every hour one may act against one of the
gases, or wait. To act against a gas pays by how much it is above its mean over the log,

    r = c[gas] - mean + e,    e ~ N(0, reward_sd^2),    and to wait pays e,

so that the best arm is that of the highest gas, or to wait. The logger acts against the gas whose reading is
highest, or waits if all are below their mean of the calibration; with a probability of `epsilon` it draws
evenly. What is known of the noise is found from the first hours alone: sensors stand beside analysers for
some weeks, and then alone. Here the true contexts of all hours are known, so that what a sensor is worth can
be said without any log.
"""

import csv
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.channel import Channel
from unfog.lab.datasets.files import locate
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.simulation.plan import MOST_SEED
from unfog.validation import InputError
from unfog.worlds.record import LEVEL, Record, Recorded, calibrated

if TYPE_CHECKING:
    from unfog.evaluation.log import DecisionLog

ANALYSERS = ("CO(GT)", "C6H6(GT)", "NOx(GT)", "NO2(GT)")
SENSORS = ("PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)")
MISSING = -200.0
HOURS = 6941  # without a missing value
SCALES = ("log", "linear")
GASES = ("CO", "benzene", "NOx", "NO2")
WAIT = "wait"
ARMS = (WAIT, *GASES)
ERRORS = ("data", "gaussian")


@dataclass(frozen=True, kw_only=True, eq=False)
class AirQuality(Recorded):
    """UCI Air Quality as a bandit: an hour of city air, read by analysers and by cheap sensors beside them.

    Data: S. De Vito, E. Massera, M. Piga, L. Martinotto, G. Di Francia, *On field calibration of an
    electronic nose for benzene estimation in an urban pollution monitoring scenario*. Hourly means over a
    year; -200 stands for a missing value. The true context is what the analysers say of carbon monoxide,
    benzene, nitrogen oxides and nitrogen dioxide, the noisy one what the metal-oxide sensor for each says.
    (The fifth gas, non-methane hydrocarbons, is missing in 90 % of the hours.) Hours that lack one of the
    eight values are left out, and are gaps in time, which is counted in hours since the first row of the
    file.

    Such sensors answer to a concentration by a power law, so logarithms are taken of both sides: that makes
    lines of the sensors' curves, and the errors and contexts less skewed.

    The file is looked for when the data are first needed. `scale` is that of concentrations and readings,
    "log" or "linear". For the other fields see `Recorded`.

    >>> from unfog.lab.datasets.airquality import AirQuality
    >>> AirQuality(calibration=1000, scale="linear").dim  # the file is not needed yet
    4
    """

    scale: str = "log"
    dim: ClassVar[int] = len(ANALYSERS)

    def __post_init__(self) -> None:
        """Check every field; the data are not needed for it."""
        validation.count("calibration", self.calibration, self.dim + 1, HOURS - 1)
        super().__post_init__()
        validation.one_of("scale", self.scale, SCALES)

    def record(self) -> Record:
        """The complete hours, on the scale asked for, with their weeks."""
        record = read(locate("airquality"))
        logs = record._replace(true=np.log(record.true), raw=np.log(record.raw))
        return logs if self.scale == "log" else record


def read(path: Path) -> Record:
    """The complete hours of the file: concentrations, readings, their weeks and hours since the first."""
    columns = (*ANALYSERS, *SENSORS)
    allowed = f"a table with the columns Date, Time, {', '.join(columns)}"
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = [
                (_count_hours(row["Date"], row["Time"]), *(float(row[name]) for name in columns))
                for row in csv.DictReader(file)
            ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("data", f"{path.name} cannot be read ({error!r})", allowed) from None
    values = np.array(table).reshape(-1, 1 + len(columns))
    complete = values[(values != MISSING).all(axis=1)]
    if not len(complete) or complete.min() <= 0:
        raise InputError("data", f"{path.name} has {len(complete)} complete hours", "some, none below zero")
    days = complete[:, 0] // 24
    weeks = ((days - days[0]) // 7).astype(np.intp)
    return Record(complete[:, 1:5], complete[:, 5:], weeks, complete[:, 0] - values[0, 0])


def _count_hours(day: str, clock: str) -> float:
    """The time in hours, counted from the first day of the calendar."""
    hour = time.fromisoformat(clock.zfill(8))
    return 24.0 * date.fromisoformat(day).toordinal() + hour.hour + hour.minute / 60 + hour.second / 3600


class AirLog(NamedTuple):
    """A log, and the truth that it does not contain.

    >>> from unfog.lab.datasets.airquality import AirLog
    >>> AirLog._fields  # what `air_log()` gives
    ('log', 'channel', 'true')
    """

    log: "DecisionLog"
    channel: Channel  # as the calibration has it
    true: Array  # (n, 4)

    def values(self, *, beside: bool = False) -> dict[str, float]:
        """What the fitted policy truly earns per round, by what it sees: only readings (`denoised`), the true
        value of one gas and readings of the other three (by the gas's name), or all true values (`all`).

        With `beside`, a true value is added to the sensor's reading; otherwise it replaces the reading. The
        policy is fitted on the rewards of the log each time, without denoising: features have intercepts and
        slopes, so with readings alone denoising changes nothing that they could not learn.
        """
        indices_by_name = {
            "denoised": [],
            **{gas: [index] for index, gas in enumerate(GASES)},
            "all": [0, 1, 2, 3],
        }
        return {name: self._mean_reward(indices, beside) for name, indices in indices_by_name.items()}

    def _mean_reward(self, known_gases: list[int], beside: bool) -> float:
        # Imported here: runs import this module, and the code that evaluates logs must not be part of theirs.
        from unfog.evaluation.context import EvaluationContext
        from unfog.evaluation.policies import choose_best

        true_columns, names = self.true[:, known_gases], tuple(f"true {GASES[i]}" for i in known_gases)
        read_gases = [i for i in range(len(GASES)) if beside or i not in known_gases]
        log = self.log._replace(
            coordinates=(*(GASES[i] for i in read_gases), *names),
            noisy=np.concat([self.log.noisy[:, read_gases], true_columns], axis=1),
        )
        log_context = EvaluationContext(log)
        shares = choose_best(log_context.across.asked(log_context.seen), log)
        return float(np.vecdot(shares, scores(self.true)).mean())


def scores(true: Array) -> Array:
    """The mean reward of each arm, (n, 5)."""
    return _prepend_wait(true - true.mean(axis=0))


def _prepend_wait(gases: Array) -> Array:
    return np.concat([np.zeros((len(gases), 1)), gases], axis=1)


def air_log(
    *,
    calibration: int = 1000,
    hindsight: bool = False,
    errors: str = "data",
    epsilon: float = 0.25,
    reward_sd: float = 0.5,
    seed: int = 0,
) -> AirLog:
    """The hours after the first `calibration` ones as decisions.

    With `hindsight` the channel is that of the very hours of the log. `errors` are those of the record
    ("data"), or drawn from the channel ("gaussian"): then it is right, and what is left is the method's own.
    The record is the data set `airquality`; without its file no log can be made:

    >>> from unfog.lab.datasets.airquality import air_log
    >>> air_log(errors="none")
    Traceback (most recent call last):
    unfog.validation.InputError: errors: 'none'; allowed: data, gaussian
    """
    validation.one_of("errors", errors, ERRORS)
    if not 0 < validation.positive("epsilon", epsilon) <= 1:
        raise InputError("epsilon", epsilon, "a number above 0 and at most 1")
    record = AirQuality(calibration=calibration).record()
    fitted, contexts, noisy = calibrated(record, calibration, hindsight)
    true, channel = contexts[calibration:] - LEVEL, _centre(fitted.channel)
    rng = generator(validation.count("seed", seed, 0, MOST_SEED), 0, "air log")
    readings = noisy[calibration:] - LEVEL
    if errors == "gaussian":
        readings = true + rng.multivariate_normal(np.zeros(len(GASES)), channel.noise_cov, len(true))
    log = _draw_log(readings, true, epsilon, validation.positive("reward_sd", reward_sd), rng)
    return AirLog(log._replace(time=record.times[calibration:]), channel, true)


def _centre(channel: Channel) -> Channel:
    """The channel of readings whose known bias is removed and whose mean is subtracted."""
    sample = None if channel.sample is None else channel.sample - LEVEL
    nothing = np.zeros_like(channel.bias)
    return channel._replace(context_mean=channel.context_mean - LEVEL, bias=nothing, sample=sample)


def _draw_log(
    noisy: Array, true: Array, epsilon: float, reward_sd: float, rng: np.random.Generator
) -> "DecisionLog":
    """Draw arms from the readings, and rewards from the true contexts."""
    from unfog.evaluation.log import DecisionLog

    rows, number = np.arange(len(noisy)), len(ARMS)
    probabilities = np.full((len(noisy), number), epsilon / number)
    probabilities[rows, _prepend_wait(noisy).argmax(axis=1)] += 1 - epsilon
    arm = np.minimum((rng.random((len(noisy), 1)) > probabilities.cumsum(axis=1)).sum(axis=1), number - 1)
    reward = scores(true)[rows, arm] + reward_sd * rng.standard_normal(len(noisy))
    return DecisionLog(
        GASES, ARMS, noisy, arm, reward, probabilities[rows, arm], probabilities, source="Air Quality"
    )
