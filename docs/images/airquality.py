"""How far the sensors are from the channel that agents are told of: docs/images/airquality.png.

python docs/images/airquality.py        # needs the data: see docs/guide/data.md
"""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter, MonthLocator
from matplotlib.figure import Figure
from scipy.special import ndtri

from unfog.channel.calibration import Calibration
from unfog.lab.datasets.airquality import AirQuality
from unfog.maths.arrays import Array, Ints
from unfog.plotting import COLOURS, DPI, PAGE, STYLE
from unfog.worlds.record import calibrated

CALIBRATION = 1000
START = date(2004, 3, 10)
GASES = ("carbon monoxide", "benzene", "nitrogen oxides", "nitrogen dioxide")
BLUE, RED, BLACK = COLOURS[0], COLOURS[6], COLOURS[2]
REACH = 7.0  # standard deviations that the panels of quantiles show


def figure(found: Calibration, errors: Array, weeks: Ints) -> Figure:
    """Two panels a sensor: its error over the year, and its error's quantiles."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 7.0), dpi=DPI, layout="constrained")
        panels = chart.subplots(4, 2, width_ratios=(2.3, 1), sharex="col")
        for gas, (time, law) in enumerate(panels):
            _over_time(time, found, errors[:, gas], weeks, gas)
            _quantiles(law, found, errors[:, gas], gas)
        chart.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
        panels[0, 1].legend(loc="upper left", fontsize=7, handlelength=1.6)
        panels[3, 0].xaxis.set_major_locator(MonthLocator(interval=2))  # type: ignore[no-untyped-call]
        panels[3, 0].xaxis.set_major_formatter(DateFormatter("%b %Y"))  # type: ignore[no-untyped-call]
        panels[3, 1].set_xlabel("normal quantile")
        note = "errors in standard deviations of the true log-concentration during calibration"
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _over_time(axes: Axes, found: Calibration, error: Array, weeks: Ints, gas: int) -> None:
    """Weekly means with the middle 90 % of the hours, and the prior of a bias."""
    names = np.unique(weeks)
    days: list[Any] = [START + timedelta(days=7 * int(week) + 3) for week in names]
    parts = [error[weeks == week] for week in names]
    low, high = np.array([np.quantile(part, [0.05, 0.95]) for part in parts]).T
    prior = 1.96 * np.sqrt(found.bias_cov[gas, gas])
    end: Any = START + timedelta(days=7 * int(weeks[CALIBRATION]) + 6)
    axes.axvspan(days[0] - timedelta(days=3), end, color="0.88", linewidth=0, label="calibration")
    axes.axhspan(-prior, prior, color=BLUE, alpha=0.25, linewidth=0, label="95 % of the bias prior")
    axes.vlines(days, low, high, color="0.6", linewidth=1.0, label="middle 90 % of a week's hours")
    axes.plot(days, [part.mean() for part in parts], "o", color=RED, markersize=3.2, label="a week's mean")
    axes.axhline(0, color=BLACK, linewidth=0.6)
    axes.set_xlim(days[0] - timedelta(days=5), days[-1] + timedelta(days=5))
    axes.set_ylabel("noisy − true")
    axes.set_title(GASES[gas], fontsize=9, loc="left")


def _quantiles(axes: Axes, found: Calibration, error: Array, gas: int) -> None:
    """Errors against the normal law that agents assume of them: noise and bias together."""
    scale = np.sqrt(found.noise_cov[gas, gas] + found.bias_cov[gas, gas])
    for label, part, colour in (
        ("calibration", error[:CALIBRATION], BLUE),
        ("later hours", error[CALIBRATION:], RED),
    ):
        shares = (np.arange(len(part)) + 0.5) / len(part)
        axes.plot(ndtri(shares), np.sort(part) / scale, color=colour, linewidth=1.5, label=label)
    axes.plot([-4, 4], [-4, 4], color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)), label="as assumed")
    axes.set(xlim=(-3.8, 3.8), ylim=(-REACH, REACH))
    axes.set_ylabel("error / its assumed s.d.", fontsize=7.5)


def main() -> None:
    """Draw it beside this file."""
    record = AirQuality(calibration=CALIBRATION).record()
    found, contexts, noisy = calibrated(record, CALIBRATION)
    chart = figure(found, noisy - contexts, record.groups)
    with mpl.rc_context(STYLE):
        chart.savefig(Path(__file__).with_suffix(".png"), dpi=DPI)


if __name__ == "__main__":
    main()
