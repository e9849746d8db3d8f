"""The figure of a sweep: final regret over what is swept, with 95 % intervals, an agent a line.

The first field of a grid is the axis, and each combination of the others has a panel. Numbers are joined by
lines, categories are not. A list of settings of several fields is one panel with the settings along its axis.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog.lab import sweep as sweeps
from unfog.lab.agent_look import TITLE, averaged, called, heading, places, style
from unfog.lab.dataset import flat
from unfog.lab.report import drawn
from unfog.lab.spec import Spec
from unfog.look import STYLE
from unfog.maths.arrays import Array

MOST_PANELS = 12
BESIDE = 4  # panels in a row
MOST_TICKS = 8  # numbers that are all written at the axis
MOST_WORDS = 30  # categories that are
ACROSS = 34  # letters of a panel's title
UPRIGHT = 3  # categories whose words stand side by side
MARKS = "osD^vPX*"
MOST_BARS = 20  # settings in a panel whose intervals have ends; of more they are pale lines
WORDS = {
    "actions": "actions K",
    "dim": "dimension d of contexts",
    "noise_cov": "noise covariance",
    "actual_noise_cov": "actual noise covariance (0: as told)",
    "context_cov": "context covariance",
    "bias_cov": "covariance of the bias",
    "prior_cov": "prior covariance of theta",
    "reward_var": "reward variance",
    "tails": "degrees of freedom of the noise (0: Gaussian)",
    "missing": "share of coordinates lost",
    "drift_cov": "covariance of the bias's step",
    "revealed": "share of true contexts shown",
    "late": "rounds until the true context is shown",
    "told_contexts": "true contexts told",
}


class Axis(NamedTuple):
    """What is along the horizontal axis of all panels."""

    label: str
    ticks: list[str]
    values: list[float] | None  # None for categories


class Panel(NamedTuple):
    """A panel: the places of its settings along the axis, and final regrets (settings, agents)."""

    title: str
    along: list[int]
    mean: Array
    half: Array


def figure(data: xr.Dataset, spec: Spec, title: str) -> Figure:
    """Small multiples on one scale, with one legend for all."""
    agents, axis, panels = _cut(data, spec)
    shown = panels[:MOST_PANELS]
    wide = min(len(shown), BESIDE)
    high = math.ceil(len(shown) / wide)
    size = (6.6, 3.6) if len(shown) == 1 else (2.3 * wide + 1.9, 2.3 * high + 1.0)
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=size, layout="constrained")
        every = list(chart.subplots(high, wide, squeeze=False, sharex=True, sharey=True).flat)
        for axes, panel in zip(every, shown, strict=False):
            _draw(axes, axis, panel, agents)
        for unused in every[len(shown) :]:
            unused.remove()
        for axes in every[max(0, len(shown) - wide) : len(shown)]:  # nothing below them
            axes.tick_params(labelbottom=True)
        lowest = min(float((panel.mean - panel.half).min()) for panel in shown)
        every[0].set_ylim(bottom=min(0.0, 1.05 * lowest))
        handles, names = every[0].get_legend_handles_labels()
        chart.legend(handles, names, loc="outside right center", fontsize=8, handlelength=2.8)
        chart.suptitle(heading(data, title, 40 + 22 * wide), fontsize=9, x=0.01, ha="left", parse_math=False)
        chart.supylabel("cumulative Bayesian regret, last round", fontsize=9)
        chart.supxlabel(f"{axis.label}\n", fontsize=9)
        chart.text(
            0.99, 0.01, _note(data, spec, len(shown), len(panels)), fontsize=7, color="0.35", ha="right"
        )
    return chart


def _note(data: xr.Dataset, spec: Spec, shown: int, panels: int) -> str:
    bars = "; bars: 95 % intervals" if data.sizes["trial"] > 1 else ""
    return averaged(data, spec) + bars + (f"; the first {shown} of {panels} panels" if shown < panels else "")


def _cut(data: xr.Dataset, spec: Spec) -> tuple[list[str], Axis, list[Panel]]:
    """The agents, the axis, and the panels with what is in them."""
    found = flat(data)
    ends = {line.label: (line.mean[-1], line.half_width[-1]) for line in drawn(found)}
    agents, settings, labels = found.agents, found.settings, found.labels
    if labels == [""]:  # a folder of an older version: the setting is in the names
        [(field, values)] = sweeps.values(spec.sweep).items()
        agents, settings = spec.run.agents, [{field: str(value)} for value in values]
        labels = [sweeps.label(setting) for setting in settings]
    finals = np.array([[ends[agent + label] for agent in agents] for label in labels])
    axis, along, titles = _laid_out(settings, spec)
    panels = []
    for title in dict.fromkeys(titles):
        own = [place for place, other in enumerate(titles) if other == title]
        own.sort(key=lambda place: along[place])
        panels.append(Panel(title, [along[i] for i in own], finals[own, :, 0], finals[own, :, 1]))
    return agents, axis, panels


def _laid_out(settings: Sequence[Mapping[str, str]], spec: Spec) -> tuple[Axis, list[int], list[str]]:
    """The axis, and for each setting its place there and the title of its panel."""
    field, *others = settings[0]
    if isinstance(spec.sweep, list) and others:
        ticks = [", ".join(setting.values()) for setting in settings]
        return (
            Axis(", ".join(map(_plain, settings[0])), ticks, None),
            list(range(len(settings))),
            [""] * len(settings),
        )
    ticks = list(dict.fromkeys(setting[field] for setting in settings))
    values = None
    if sweeps.numeric(sweeps.values(spec.sweep)[field]):
        ticks.sort(key=float)
        values = [float(tick) for tick in ticks]
    several = [other for other in others if len({setting[other] for setting in settings}) > 1]
    titles = [_title({other: setting[other] for other in several}) for setting in settings]
    along = {tick: place for place, tick in enumerate(ticks)}
    axis = Axis(WORDS.get(field, _plain(field)), ticks, values)
    return axis, [along[setting[field]] for setting in settings], titles


def _title(setting: Mapping[str, str]) -> str:
    """A panel's: a field a line, in words where they fit."""
    lines = [(f"{_plain(field)} = {value}", f"{field} = {value}") for field, value in setting.items()]
    return "\n".join(words if len(words) <= ACROSS else textwrap.fill(own, ACROSS) for words, own in lines)


def _plain(field: str) -> str:
    """A field in words, without what they explain."""
    return WORDS.get(field, field.replace("_", " ")).partition(" (")[0]


def _draw(axes: Axes, axis: Axis, panel: Panel, agents: Sequence[str]) -> None:
    joined, crowded = axis.values is not None, len(panel.along) > MOST_BARS
    at = np.asarray(panel.along if axis.values is None else [axis.values[i] for i in panel.along], float)
    for agent, place in enumerate(places(list(agents))):
        colour, dash = style(place)
        aside = 0.0 if joined else 0.5 * ((agent + 0.5) / len(agents) - 0.5)
        look: dict[str, Any] = {"linestyle": dash if joined else "none", "marker": MARKS[place % len(MARKS)]}
        bars = axes.errorbar(
            at + aside,
            panel.mean[:, agent],
            panel.half[:, agent] if panel.half.any() else None,
            color=colour,
            linewidth=1.4,
            elinewidth=1.0,
            capsize=0 if crowded else 2,
            markersize=2 if crowded else 3.5,
            label=called(agents[agent]),
            **look,
        )
        for bar in bars[2]:
            bar.set(linestyle="-", alpha=0.3 if crowded else 1.0)
    axes.set_title(panel.title, **TITLE)
    _scale(axes, axis)


def _scale(axes: Axes, axis: Axis) -> None:
    """Ticks at the values themselves where they are few; a logarithmic axis where they are far apart."""
    if axis.values is None:
        if len(axis.ticks) <= MOST_WORDS:
            slant = len(axis.ticks) > UPRIGHT and max(map(len, axis.ticks)) > 3
            slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if slant else {}
            axes.set_xticks(range(len(axis.ticks)), axis.ticks, fontsize=8, **slanted)
        axes.set_xlim(-0.6, len(axis.ticks) - 0.4)
        return
    ticks = dict(zip(axis.values, axis.ticks, strict=True))
    above = [value for value in axis.values if value > 0]
    if min(axis.values) >= 0 and _geometric(above):
        if len(above) == len(axis.values):
            axes.set_xscale("log")
        else:
            axes.set_xscale("symlog", linthresh=min(above), linscale=0.5)
        if len(ticks) > MOST_TICKS:
            wanted = np.geomspace(above[0], above[-1], MOST_TICKS // 2)
            ticks = {at: ticks[at] for at in (min(above, key=lambda v: abs(v - x)) for x in wanted)}
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()


def _geometric(values: Sequence[float]) -> bool:
    """Whether numbers in increasing order are spread more evenly by their ratios than by their distances."""
    if len(values) < 3:
        return False
    gaps, ratios = np.diff(values), np.diff(np.log(values))
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean() - 1e-9)
