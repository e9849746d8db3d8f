"""The pictures of docs/evaluation.md: what sensors of Air Quality are said to be worth, and what they are.

python docs/images/evaluation.py        # needs the data: see docs/data.md
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unfog
from unfog.lab import evaluate_figure, figures
from unfog.lab.airquality_log import AirLog, air_log
from unfog.look import COLOURS, STYLE

BLUE, ORANGE, BLACK, GREEN = (COLOURS[i] for i in (0, 1, 2, 3))
CASES = {
    "errors as recorded": {},
    "errors drawn from the channel": {"errors": "gaussian", "hindsight": True},
}


def figure(found: dict[str, tuple[AirLog, xr.Dataset]]) -> Figure:
    """A panel for each case: the log's answer with its interval, and the truth."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(8.4, 3.6), layout="constrained")
        panels = chart.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axes, (name, (air, worth)) in zip(panels, found.items(), strict=True):
            _panel(axes, air, worth)
            axes.set_title(name, fontsize=9, loc="left")
        panels[0].set_ylabel("worth a decision, sensor without noise")
        panels[0].legend(loc="upper right", fontsize=8)
        note = "5,941 hours, seed 0; bars: 95 % intervals"
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _panel(axes: Axes, air: AirLog, worth: xr.Dataset) -> None:
    names = [str(one) for one in worth["sensor"].values]
    at = np.arange(len(names))
    answer = worth.sel(less=-1.0, curve=worth["used"])
    mean = answer["worth"].values
    ends = np.stack([mean - answer["worth_low"].values, answer["worth_high"].values - mean])
    axes.axhline(0, color="0.8", linewidth=0.8)
    axes.errorbar(at - 0.2, mean, ends, fmt="o", color=BLUE, markersize=5, capsize=3, label="said by the log")
    for beside, colour, mark, label, move in (
        (False, BLACK, "D", "true: instead of the sensor", 0.0),
        (True, GREEN, "s", "true: beside the sensor", 0.2),
    ):
        values = air.values(beside=beside)
        true = [values[name] - values["denoised"] for name in names]
        axes.plot(at + move, true, mark, color=colour, markersize=4.5, label=label)
    axes.set_xticks(at, names)


def main() -> None:
    """Both pictures, and the numbers of the table."""
    folder, found = Path(__file__).parent, {}
    for name, told in CASES.items():
        air = air_log(**told)
        worth = unfog.sensor_worth(air.log, alone="each", channel=air.channel)
        found[name] = air, worth
        answer = worth.sel(less=-1.0, curve=worth["used"])
        places, beside = air.values(), air.values(beside=True)
        print(name, worth["ladder"].values.round(3), worth["ladder_se"].values.round(3))
        for sensor in worth["sensor"].values:
            one = answer.sel(sensor=sensor)
            said = f"{one['worth'].item():+.3f} ({one['worth_se'].item():.3f}) {one['used'].item()}"
            slope = f"slope {one['slope'].item():.2f} ({one['slope_se'].item():.2f})"
            true = [values[str(sensor)] - values["denoised"] for values in (places, beside)]
            print(f"{sensor:8} {said} {slope} true {true[0]:+.3f} {true[1]:+.3f}")
    figures.save(figure(found), folder, "evaluation-air", ("png",), dpi=130)
    title = "Air Quality as a log: values with more noise, and with less"
    chart = evaluate_figure.sensor(found["errors as recorded"][1], title)
    figures.save(chart, folder, "evaluation-sensor", ("png",), dpi=110)


if __name__ == "__main__":
    main()
