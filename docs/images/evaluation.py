"""Pictures of evaluation.md (guide, notebook): what sensors of Air Quality are said to be worth, and are.

python docs/images/evaluation.py        # some minutes; needs the data: see docs/guide/data.md
"""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unfog
from unfog.lab import evaluate
from unfog.lab.datasets.airquality import air_log
from unfog.maths.arrays import Array
from unfog.plotting import COLOURS, DPI, PAGE, STYLE, save

BLUE, BLACK, GREEN = (COLOURS[i] for i in (0, 2, 3))
SEEDS = range(6)
CASES: dict[str, dict[str, Any]] = {
    "errors as recorded": {},
    "errors drawn from the channel": {"errors": "gaussian", "hindsight": True},
}


class Answers(NamedTuple):
    """Of several logs: (logs, sensors) each."""

    names: list[str]
    said: Array
    error: Array  # as stated
    low: Array
    high: Array
    instead: Array
    beside: Array


def answers(**told: Any) -> tuple[Answers, xr.Dataset]:
    """What each log says, and what is true; and all that the first log says."""
    rows, first = [], None
    for seed in SEEDS:
        air = air_log(seed=seed, **told)
        worth = unfog.sensor_worth(air.log, alone="each", channel=air.channel)
        first = worth if first is None else first
        names = [str(name) for name in worth["sensor"].values]
        best = worth.sel(less=-1.0, curve=worth["used"])
        said = [best[f"worth{end}"].values for end in ("", "_se", "_low", "_high")]
        true = [air.values(beside=beside) for beside in (False, True)]
        rows.append([*said, *(np.array([one[name] - one["denoised"] for name in names]) for one in true)])
    assert first is not None
    return Answers(names, *np.array(rows).swapaxes(0, 1)), first


def figure(found: dict[str, Answers]) -> Figure:
    """A panel for each case: the logs' answers with their intervals, and the truth."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 3.2), dpi=DPI, layout="constrained")
        panels = chart.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axes, (name, one) in zip(panels, found.items(), strict=True):
            _panel(axes, one)
            axes.set_title(name, fontsize=9, loc="left")
        panels[0].set_ylabel("worth a decision, sensor without noise")
        panels[0].legend(loc="upper right", fontsize=8)
        note = f"{len(SEEDS)} logs of 5,941 hours; bars: 95 % intervals as stated; truth: mean over the logs"
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _panel(axes: Axes, one: Answers) -> None:
    at = np.arange(len(one.names))
    axes.axhline(0, color="0.8", linewidth=0.8)
    for place in range(len(SEEDS)):
        ends = np.stack([one.said - one.low, one.high - one.said])[:, place]
        label = "said by a log" if place == 0 else None
        where = at - 0.35 + 0.08 * place
        axes.errorbar(
            where, one.said[place], ends, fmt="o", color=BLUE, markersize=3, linewidth=0.8, label=label
        )
    for aside, true, mark, colour, does in (
        (0.2, one.instead, "D", BLACK, "replaces the old"),
        (0.34, one.beside, "s", GREEN, "is added to the old"),
    ):
        label = f"truth, new sensor {does}"
        axes.plot(at + aside, true.mean(axis=0), mark, color=colour, markersize=5, label=label)
    axes.set_xticks(at, one.names)


def main() -> None:
    """Both pictures, and the numbers of the tables."""
    folder, found = Path(__file__).parent, dict[str, Answers]()
    for name, told in CASES.items():
        found[name], first = answers(**told)
        one = found[name]
        print(f"{name}: said, between logs, as stated, instead, beside")
        stated = np.sqrt((one.error**2).mean(axis=0))
        parts = one.said.mean(axis=0), one.said.std(axis=0, ddof=1), stated, one.instead.mean(axis=0)
        for sensor, *row in zip(one.names, *parts, one.beside.mean(axis=0), strict=True):
            print(f"{sensor:8}", *(f"{number:+.3f}" for number in row))
        if not told:
            title = "Air Quality as a log: values with more noise, and with less"
            chart = evaluate.sensor(first, title)
            save(chart, folder, "evaluation-sensor", ("png",))
    save(figure(found), folder, "evaluation-air", ("png",))


if __name__ == "__main__":
    main()
