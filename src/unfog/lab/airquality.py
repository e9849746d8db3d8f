"""UCI Air Quality as a bandit."""

import csv
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import ClassVar

import numpy as np

from unfog import validation
from unfog.lab.datasets import locate
from unfog.validation import InputError
from unfog.worlds.record import Record, Recorded

ANALYSERS = ("CO(GT)", "C6H6(GT)", "NOx(GT)", "NO2(GT)")
SENSORS = ("PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)")
MISSING = -200.0
HOURS = 6941  # without a missing value
SCALES = ("log", "linear")


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

    The air of one street as contexts; the file is looked for when the data are first needed.

    `scale` is that of concentrations and readings, "log" or "linear". For the other fields see `Recorded`.

    >>> from unfog.lab.airquality import AirQuality
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
        found = read(locate("airquality"))
        logs = found._replace(true=np.log(found.true), raw=np.log(found.raw))
        return logs if self.scale == "log" else found


def read(path: Path) -> Record:
    """The complete hours of the file: concentrations, readings, their weeks and hours since the first."""
    columns = (*ANALYSERS, *SENSORS)
    allowed = f"a table with the columns Date, Time, {', '.join(columns)}"
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = [
                (_hour(row["Date"], row["Time"]), *(float(row[name]) for name in columns))
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


def _hour(day: str, clock: str) -> float:
    """The number of an hour; those of a day follow its first."""
    hour = time.fromisoformat(clock.zfill(8))
    return 24.0 * date.fromisoformat(day).toordinal() + hour.hour + hour.minute / 60 + hour.second / 3600
