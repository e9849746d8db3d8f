"""Pictures of what policies would have earned on a log, and of what a better sensor would be worth.

They hold no statistics: what is drawn are numbers of `unfog.evaluate` and `unfog.sensor_worth`.
"""

import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from unfog.lab.agent_look import LOOKS
from unfog.plotting import COLOURS, DASHES, DPI, PAGE, STYLE

BLUE, BLACK, GREEN, PINK, SKY, RED = (COLOURS[i] for i in (0, 2, 3, 4, 5, 6))
RUNGS: dict[str, tuple[str, Any]] = {  # colour and dash
    "naive": (LOOKS["naive"].colour, LOOKS["naive"].dash),
    "denoised": (BLUE, DASHES[5]),
    "perfect": (PINK, DASHES[3]),
    "denoised, known": (SKY, DASHES[4]),
    "true": (GREEN, DASHES[10]),
}
NAME = 34  # letters of a line of a policy's name
ACROSS = 3  # panels beside each other


def figure(found: xr.Dataset, title: str | None = None) -> Figure:
    """Values by the first estimator with intervals, and how many effective rounds they rest on."""
    about, names = found.attrs, [textwrap.fill(str(one), NAME) for one in found["policy"].values]
    lines = sum(name.count("\n") + 1 for name in names)
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 1.5 + 0.26 * lines), dpi=DPI, layout="constrained")
        value, rounds = chart.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        _values(value, found)
        places = np.arange(len(names))
        rounds.barh(places, found["effective"].values, color=BLUE, alpha=0.5, height=0.55)
        rounds.axvline(about["rounds"], color="0.5", linewidth=0.8, linestyle=":")
        rounds.xaxis.set_major_locator(MaxNLocator(2))
        rounds.xaxis.set_major_formatter("{x:,.0f}")
        rounds.set(xlabel="effective rounds", xlim=(0, 1.02 * about["rounds"]))
        value.set_yticks(places, names, parse_math=False)
        value.set_ylim(len(names) - 0.5, -0.5)
        value.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, borderaxespad=0.2)
        said = f"What policies would have earned: {about['source']}" if title is None else title
        chart.suptitle(textwrap.fill(said, 90), fontsize=8.5, x=0.01, ha="left", parse_math=False)
        note = (
            f"{about['rounds']:,} rounds; bars: {100 * about['level']:.4g} % intervals, {about['intervals']}"
        )
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _values(axes: Axes, found: xr.Dataset) -> None:
    """A dot and a bar for each policy; a line where the logger was."""
    name = str(found["estimator"].values[0])
    one = found.sel(estimator=name)
    mean = one["value"].values
    ends = np.stack([mean - one["low"].values, one["high"].values - mean])
    places = np.arange(len(mean))
    axes.axvline(found.attrs["earned"], color=BLACK, linewidth=1.0, linestyle=DASHES[1], label="earned")
    axes.errorbar(
        mean, places, xerr=ends, fmt="o", color=BLUE, markersize=4, capsize=2.5, label=f"value by {name}"
    )
    axes.set_xlabel("reward a round")
    axes.grid(axis="y", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def sensor(worth: xr.Dataset, title: str | None = None) -> Figure:
    """The value over the noise, measured and extrapolated, with the ladder: a panel for each sensor."""
    about, names = worth.attrs, [str(one) for one in worth["sensor"].values]
    across = min(len(names), ACROSS)
    down = -(-len(names) // across)
    with mpl.rc_context(STYLE):
        chart = Figure(
            figsize=(PAGE, 1.0 + (2.0 if across > 1 else 2.4) * down), dpi=DPI, layout="constrained"
        )
        panels = chart.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, name in zip(panels, names, strict=False):
            _levels(axes, worth.sel(sensor=name))
            _rungs(axes, worth)
            said = f"{name} {'sensors' if name == names[0] else 'alone'}"
            axes.set_title(textwrap.fill(said, 40), fontsize=8.5, loc="left", parse_math=False)
            axes.set_xlabel("noise, as a multiple of today's", fontsize=7.5)
            axes.xaxis.set_tick_params(labelbottom=True)
        for axes in panels[len(names) :]:
            axes.remove()
        panels[0].set_ylabel("reward a round")
        chart.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        said = f"What a better sensor would be worth: {about['source']}" if title is None else title
        chart.suptitle(textwrap.fill(said, 90), fontsize=8.5, x=0.01, ha="left", parse_math=False)
        bars = f"{about['rounds']:,} rounds; bars: {100 * about['interval']:.4g} % intervals"
        note = f"{bars}; points share their rounds, so that differences are surer"
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _levels(axes: Axes, one: xr.Dataset) -> None:
    """Measured from 1 on, and what the curve says from there down to no noise."""
    more, value = 1 + one["level"].values, one["value"].values
    ends = np.stack([value - one["value_low"].values, one["value_high"].values - value])
    axes.errorbar(more, value, ends, fmt="o-", color=BLACK, markersize=3.5, capsize=2.5, label="measured")
    chosen = one.sel(curve=one["used"].item())
    less = np.append(1 + one["less"].values, more[0])
    low, mean, high = (
        np.append(chosen[f"expected{end}"].values, one[f"value{end}"].values[0])
        for end in ("_low", "", "_high")
    )
    axes.plot(less, mean, color=RED, linestyle=DASHES[1], linewidth=1.4, label="extrapolated")
    axes.fill_between(less, low, high, color=RED, alpha=0.12, linewidth=0)


def _rungs(axes: Axes, worth: xr.Dataset) -> None:
    """The ladder as levels across the panel."""
    for rung in map(str, worth["rung"].values):
        level, (colour, dash) = float(worth["ladder"].sel(rung=rung)), RUNGS[rung]
        axes.axhline(level, color=colour, linestyle=dash, linewidth=1.0, label=rung)
