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

from unfog.lab import field_words
from unfog.lab import sweep as sweeps
from unfog.lab.agent_look import IN_ALL, TITLE, Look, averaged, called, heading, looks, narrow, ordered
from unfog.lab.dataset import flat
from unfog.lab.report import drawn
from unfog.lab.spec import Spec
from unfog.lab.sweep_axis import Axis, axis_of, scale
from unfog.maths.arrays import Array
from unfog.plotting import COLUMN, DPI, PAGE, STYLE

MOST_PANELS = 12
BESIDE = 3  # panels in a row
ACROSS = 30  # letters of a panel's title
MOST_BARS = 20  # settings in a panel whose intervals have ends; of more they are pale lines


class Panel(NamedTuple):
    """A panel: the places of its settings along the axis, and final regrets (settings, agents)."""

    title: str
    along: list[int]
    mean: Array
    half: Array


def figure(data: xr.Dataset, spec: Spec, title: str, width: float | None = None) -> Figure:
    """Small multiples on one scale, with one legend for all; as wide as they need, or `width` inches."""
    agents, axis, panels = cut(data, spec)
    shown = panels[:MOST_PANELS]
    wide = 2 if len(shown) == 4 else min(len(shown), BESIDE)
    high = math.ceil(len(shown) / wide)
    slim = len(shown) == 1 and axis.values is not None and narrow(agents) and (width or 0) < PAGE
    size = width or (COLUMN if slim else PAGE), 3.0 if len(shown) == 1 else 1.0 + 1.9 * high
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=size, dpi=DPI, layout="constrained")
        every = list(chart.subplots(high, wide, squeeze=False, sharex=True, sharey=True).flat)
        for axes, panel in zip(every, shown, strict=False):
            draw(axes, axis, panel, agents)
        for unused in every[len(shown) :]:
            unused.remove()
        for axes in every[max(0, len(shown) - wide) : len(shown)]:  # nothing below them
            axes.tick_params(labelbottom=True)
        lowest = min(float((panel.mean - panel.half).min()) for panel in shown)
        every[0].set_ylim(bottom=min(0.0, 1.05 * lowest))
        _legend(chart, every[0], agents, slim)
        words = heading(data, title, 50 if slim else 100)
        chart.suptitle(words, fontsize=8.5, x=0.01, ha="left", parse_math=False)
        chart.supylabel(IN_ALL, fontsize=8.5)
        chart.supxlabel(f"{axis.label}\n", fontsize=8.5)
        chart.text(
            0.99, 0.01, _note(data, spec, len(shown), len(panels)), fontsize=7, color="0.35", ha="right"
        )
    return chart


def _legend(chart: Figure, axes: Axes, agents: Sequence[str], slim: bool) -> None:
    """The recommended agent first; over the axes where there is one column, else beside them."""
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    names = [called(agent) for agent in ordered(agents)]
    handles = [found[name] for name in names]
    if slim:
        where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.14, 1.0), "ncols": 2}
        axes.legend(handles, names, borderaxespad=0.1, handlelength=2.7, **where)
    else:
        chart.legend(handles, names, loc="outside right center", handlelength=2.7)


def _note(data: xr.Dataset, spec: Spec, shown: int, panels: int) -> str:
    bars = "; bars: 95 % intervals" if data.sizes["trial"] > 1 else ""
    return averaged(data, spec) + bars + (f"; the first {shown} of {panels} panels" if shown < panels else "")


def cut(data: xr.Dataset, spec: Spec) -> tuple[list[str], Axis, list[Panel]]:
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
        ticks = [", ".join(field_words.value(*one) for one in setting.items()) for setting in settings]
        label = ", ".join(map(field_words.plain, settings[0]))
        axis = Axis(label, {str(place): tick for place, tick in enumerate(ticks)}, None)
        return axis, list(range(len(settings))), [""] * len(settings)
    axis = axis_of(field, list(dict.fromkeys(setting[field] for setting in settings)), spec)
    several = [other for other in others if len({setting[other] for setting in settings}) > 1]
    titles = _titles([{other: setting[other] for other in several} for setting in settings])
    along = {text: place for place, text in enumerate(axis.ticks)}
    return axis, [along[setting[field]] for setting in settings], titles


def _titles(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Of panels: fields in words with their values, each field broken alike in all panels."""
    said = [field_words.values(one) for one in settings]
    broken = {field for one in said for field, text in one.items() if len(_line(field, text, " ")) > ACROSS}
    return [
        "\n".join(_line(field, text, "\n" if field in broken else " ") for field, text in one.items())
        for one in said
    ]


def _line(field: str, text: str, between: str) -> str:
    """A field in words and its value, beside it or below."""
    words = [f"{field_words.plain(field)} =", text]
    return between.join(words if between == " " else (textwrap.fill(one, ACROSS) for one in words))


def draw(axes: Axes, axis: Axis, panel: Panel, agents: Sequence[str]) -> None:
    """One panel: an agent's final regrets with their intervals, joined where the axis has numbers."""
    at = np.asarray(panel.along if axis.values is None else [axis.values[i] for i in panel.along], float)
    gap = len(at) - 1 if axis.apart and len(at) > 1 else len(at)  # what is apart is joined to nothing
    at, mean, half = (
        np.insert(one, gap, np.nan, axis=0)[: len(at) + axis.apart] for one in (at, panel.mean, panel.half)
    )
    for agent, (name, look) in enumerate(looks(agents).items()):
        aside = 0.0 if axis.values else 0.5 * ((agent + 0.5) / len(agents) - 0.5)
        error = half[:, agent] if panel.half.any() else None
        _points(axes, at + aside, mean[:, agent], error, look, called(name), joined=axis.values is not None)
    axes.set_title(panel.title, **TITLE)
    scale(axes, axis)


def _points(
    axes: Axes, at: Array, mean: Array, half: Array | None, look: Look, label: str, *, joined: bool
) -> None:
    """Marks with bars; bars of many settings are pale and have no ends."""
    crowded = len(at) > MOST_BARS
    told: dict[str, Any] = look.line() | ({} if joined else {"linestyle": "none"})
    size = (2.0 if crowded else 4.0) + (look.width > 2)
    bars = axes.errorbar(
        at,
        mean,
        half,
        label=label,
        marker=look.mark,
        markersize=size,
        elinewidth=1.0,
        capsize=0 if crowded else 2,
        **told,
    )
    for bar in bars[2]:
        bar.set(linestyle="-", alpha=0.3 if crowded else 1.0)
