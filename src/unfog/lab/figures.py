"""Figures of runs and sweeps, as publications print them. The statistics are those of `report.curves`.

A run is drawn as cumulative regret over rounds, an agent a curve. A sweep is drawn as final regret over what
is swept, an agent a line. Both have 95 % intervals. The first field of a grid is the axis, and each
combination of the others has a panel. A list of settings of several fields is one panel with the settings
along its axis.

Numeric values are placed to scale along the axis and joined by lines; categories stand side by side and are
not joined. A value that is not a number of the axis (`as told`, see lab/labels.py) is drawn at the number it
stands for if that is known, else to the right of all numbers.
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

from unfog.lab import labels
from unfog.lab import sweep as sweeps
from unfog.lab.labels import (
    FIRST,
    IN_ALL,
    SO_FAR,
    Look,
    averaged,
    called,
    heading,
    looks,
    narrow,
    ordered,
)
from unfog.lab.report import Curve, curves, drawn
from unfog.lab.results import OWN, flat
from unfog.lab.spec import Spec
from unfog.maths.arrays import Array, Ints
from unfog.plotting import COLUMN, DASHES, PAGE, add_note, add_title, new_figure, title_panel
from unfog.validation import check_keywords

MOST_SWEPT = 8  # values of a field that have a curve each
MOST_BANDS = 4  # bands that can be told apart where they overlap; with more curves, bars at a few rounds
BARS = 5  # bars of a curve
SHORT = 60  # letters of six names in one line of a page
LETTERS = {COLUMN: 50, PAGE: 105}  # of a line of a title
_SAMPLE: dict[str, Any] = {"handlelength": 2.7, "columnspacing": 1.0, "labelspacing": 0.3}

MOST_PANELS = 12
BESIDE = 3  # panels in a row
ACROSS = 30  # letters of a panel's title
MOST_BARS = 20  # settings in a panel whose intervals have ends; with more they are pale lines

MOST_TICKS = 8  # numbers that are all written at the axis
CLOSE = 0.15  # a share of the axis that a number takes
MOST_WORDS = 30  # categories that are all written
UPRIGHT = 3  # categories whose words stand side by side


class Axis(NamedTuple):
    """The horizontal axis of all panels."""

    label: str
    ticks: dict[str, str]  # by value as text, in their order: what is written there
    values: list[float] | None  # None for categories
    apart: bool = False  # whether the last one is none of the numbers, and not joined to them


class Panel(NamedTuple):
    """A panel: the positions of its settings along the axis, and final regrets (settings, agents)."""

    title: str
    along: list[int]
    mean: Array
    half: Array


@check_keywords
def figure(data: xr.Dataset, title: str | None = None, *, width: float | None = None) -> Figure:
    """Mean cumulative regret over rounds, one curve an agent, with 95 % intervals.

    Of a sweep the final regret over what is swept; of one agent and a few values of one field a curve each.
    It is one column of a printed page wide where the legend fits into it, else two; or `width` inches.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> unfog.figure(result).axes[0].get_ylabel()
    'reward lost so far (regret)'
    """
    spec = Spec.model_validate_json(data.attrs["spec"])
    if _is_single_setting(data):
        spec = spec.model_copy(update={"sweep": {}})
    if spec.sweep and not _fits_one_panel(spec):
        return sweep_figure(data, spec, spec.title if title is None else title, width)
    lines, trials = curves(data), data.sizes["trial"]
    legend_beside = not spec.sweep and ((width or 0) >= PAGE or not narrow(line.label for line in lines))
    wide = width or (PAGE if legend_beside else COLUMN)
    with new_figure(wide, 3.0) as chart:
        axes = chart.subplots()
        draw(axes, lines, spec.sweep)
        _add_legend(axes, spec.sweep, legend_beside)
        letters = LETTERS[PAGE if wide >= PAGE else COLUMN]
        add_title(chart, heading(data, spec.title if title is None else title, letters))
        intervals = f"; {_interval_kind(len(lines))}: 95 % intervals"
        add_note(chart, averaged(data, spec) + (intervals if trials > 1 else ""))
    return chart


def _is_single_setting(data: xr.Dataset) -> bool:
    """Whether this is one setting of a sweep, taken out of it."""
    return set(data["regret"].dims) <= set(OWN)


def _fits_one_panel(spec: Spec) -> bool:
    """Whether a sweep has so little to show that all of its curves go into one panel."""
    values = sweeps.values(spec.sweep)
    return len(spec.run.agents) == 1 and len(values) == 1 and len(sweeps.labels(spec.sweep)) <= MOST_SWEPT


def panels(runs: Sequence[xr.Dataset]) -> Figure:
    """Several runs side by side with one legend, as wide as a printed page."""
    with new_figure(max(PAGE, 2.3 * len(runs)), 2.9) as chart:
        row = chart.subplots(1, len(runs), squeeze=False)[0]
        handles = dict[str, Any]()
        for axes, data in zip(row, runs, strict=True):
            spec = Spec.model_validate_json(data.attrs["spec"])
            draw(axes, curves(data), spec.sweep)
            title_panel(axes, heading(data, spec.title, 32))
            axes.set_xlabel(f"round\n{averaged(data, spec)}")
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        for axes in row[1:]:
            axes.set_ylabel("")
        names = sorted(handles, key=lambda name: name != called(FIRST))
        per_row = 6 if len("".join(names)) <= SHORT else 5
        chart.legend(
            [handles[name] for name in names], names, loc="outside upper left", ncols=per_row, **_SAMPLE
        )
        if any(data.sizes["trial"] > 1 for data in runs):
            kinds = sorted({_interval_kind(len(curves(data))) for data in runs})
            add_note(chart, f"{' and '.join(kinds)}: 95 % intervals")
    return chart


def draw(axes: Axes, lines: Sequence[Curve], swept: sweeps.Sweep | None = None) -> None:
    """Draw curves with their intervals on these axes, the highest one first."""
    styled_lines = list(zip(lines, _line_styles(lines, swept or {}), strict=True))
    if not swept:
        styled_lines.sort(key=lambda pair: -pair[0].mean[-1])
    for index, (line, (label, look)) in enumerate(styled_lines):
        marks = _mark_indices(len(line.rounds), index / len(lines))
        mark: dict[str, Any] = {
            "marker": look.mark,
            "markersize": 2.2 + look.width,
            "markevery": marks.tolist(),
        }
        axes.plot(line.rounds, line.mean, label=label, **mark, **look.line())
        if len(lines) <= MOST_BANDS:
            _draw_band(axes, line, look)
        else:
            _draw_bars(axes, line, look, marks)
    axes.set(xlabel="round", ylabel=SO_FAR)
    axes.set_xlim(0, 1.03 * lines[0].rounds[-1])
    axes.set_ylim(bottom=0)


def _line_styles(lines: Sequence[Curve], swept: sweeps.Sweep) -> list[tuple[str, Look]]:
    """The label and look of each curve: the agent's, or for a single agent a shade for each swept value."""
    names = [line.label for line in lines]
    if not swept:
        return [(called(name), look) for name, look in looks(names).items()]
    [(field, values)] = sweeps.values(swept).items()
    texts = dict(zip(sweeps.labels(swept), sweeps.spelled(values), strict=True))
    # A colour map whose shades colour-blind readers can tell apart, and which works in grey.
    shades = mpl.colormaps["cividis"](np.linspace(0.0, 0.8, len(texts)))
    styles = list[tuple[str, Look]]()
    for index, (label, text) in enumerate(texts.items()):
        look = Look(mpl.colors.to_hex(shades[index]), DASHES[index % len(DASHES)], "o")
        styles += [(labels.value(field, text), look)] * any(name.endswith(label) for name in names)
    return styles


def _interval_kind(number: int) -> str:
    """How intervals are drawn for this many curves."""
    return "bands" if number <= MOST_BANDS else "bars"


def _mark_indices(number: int, aside: float) -> Ints:
    """Indices of the rounds with marks and bars; shifted for each curve, so that bars stand side by side."""
    last = (number - 1) * (1 - 0.12 * aside)
    return np.unique(np.linspace(last / BARS, last, BARS).round().astype(int))


def _draw_band(axes: Axes, line: Curve, look: Look) -> None:
    """Draw a curve's interval as a light fill with thin edges."""
    ends = line.mean - line.half_width, line.mean + line.half_width
    axes.fill_between(
        line.rounds, *ends, facecolor=(look.colour, 0.13), edgecolor=(look.colour, 0.55), linewidth=0.4
    )


def _draw_bars(axes: Axes, line: Curve, look: Look, marks: Ints) -> None:
    """Draw a curve's intervals as bars at a few rounds."""
    bars: dict[str, Any] = {"fmt": "none", "ecolor": look.colour, "elinewidth": 1.0, "capsize": 1.8}
    axes.errorbar(line.rounds[marks], line.mean[marks], line.half_width[marks], zorder=look.above, **bars)


def _add_legend(axes: Axes, swept: sweeps.Sweep, beside: bool) -> None:
    """Add a legend: the recommended agent first, then by where curves end; for a sweep, values in order."""
    handles, names = axes.get_legend_handles_labels()
    order = sorted(range(len(names)), key=lambda i: names[i] != called(FIRST))
    where: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (-0.14, 1.0),
        "ncols": 2,
        "borderaxespad": 0.1,
    }
    if beside:
        where = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    if swept:
        [field] = sweeps.fields(swept)
        where |= {"title": labels.plain(field), "alignment": "left", "title_fontsize": 8, "ncols": 4}
    axes.legend([handles[i] for i in order], [names[i] for i in order], **_SAMPLE, **where)


def sweep_figure(data: xr.Dataset, spec: Spec, title: str, width: float | None = None) -> Figure:
    """Small multiples on one scale, with one legend for all; as wide as they need, or `width` inches."""
    agents, axis, panels = cut(data, spec)
    drawn_panels = panels[:MOST_PANELS]
    across = 2 if len(drawn_panels) == 4 else min(len(drawn_panels), BESIDE)
    down = math.ceil(len(drawn_panels) / across)
    is_narrow = len(drawn_panels) == 1 and axis.values is not None and narrow(agents) and (width or 0) < PAGE
    height = 3.0 if len(drawn_panels) == 1 else 1.0 + 1.9 * down
    with new_figure(width or (COLUMN if is_narrow else PAGE), height) as chart:
        all_axes = list(chart.subplots(down, across, squeeze=False, sharex=True, sharey=True).flat)
        for axes, panel in zip(all_axes, drawn_panels, strict=False):
            draw_panel(axes, axis, panel, agents)
        for unused in all_axes[len(drawn_panels) :]:
            unused.remove()
        for axes in all_axes[max(0, len(drawn_panels) - across) : len(drawn_panels)]:  # nothing below them
            axes.tick_params(labelbottom=True)
        lowest = min(float((panel.mean - panel.half).min()) for panel in drawn_panels)
        all_axes[0].set_ylim(bottom=min(0.0, 1.05 * lowest))
        _add_sweep_legend(chart, all_axes[0], agents, is_narrow)
        add_title(chart, heading(data, title, 50 if is_narrow else 100))
        chart.supylabel(IN_ALL, fontsize=8.5)
        chart.supxlabel(f"{axis.label}\n", fontsize=8.5)
        chart.text(
            0.99,
            0.01,
            _format_note(data, spec, len(drawn_panels), len(panels)),
            fontsize=7,
            color="0.35",
            ha="right",
        )
    return chart


def _add_sweep_legend(chart: Figure, axes: Axes, agents: Sequence[str], is_narrow: bool) -> None:
    """Add a legend, the recommended agent first: above the axes of a narrow figure, else beside them."""
    by_name = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    names = [called(agent) for agent in ordered(agents)]
    handles = [by_name[name] for name in names]
    if is_narrow:
        where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.14, 1.0), "ncols": 2}
        axes.legend(handles, names, borderaxespad=0.1, handlelength=2.7, **where)
    else:
        chart.legend(handles, names, loc="outside right center", handlelength=2.7)


def _format_note(data: xr.Dataset, spec: Spec, drawn_count: int, total: int) -> str:
    bars = "; bars: 95 % intervals" if data.sizes["trial"] > 1 else ""
    first = f"; the first {drawn_count} of {total} panels" if drawn_count < total else ""
    return averaged(data, spec) + bars + first


def cut(data: xr.Dataset, spec: Spec) -> tuple[list[str], Axis, list[Panel]]:
    """The agents, the axis, and the panels with what is in them."""
    flat_run = flat(data)
    ends = {line.label: (line.mean[-1], line.half_width[-1]) for line in drawn(flat_run)}
    agents = flat_run.agents
    finals = np.array([[ends[agent + label] for agent in agents] for label in flat_run.labels])
    axis, along, titles = _lay_out(flat_run.settings, spec)
    panels = []
    for title in dict.fromkeys(titles):
        members = [index for index, other in enumerate(titles) if other == title]
        members.sort(key=lambda index: along[index])
        panels.append(Panel(title, [along[i] for i in members], finals[members, :, 0], finals[members, :, 1]))
    return agents, axis, panels


def _lay_out(settings: Sequence[Mapping[str, str]], spec: Spec) -> tuple[Axis, list[int], list[str]]:
    """The axis, and for each setting its position there and the title of its panel."""
    field, *others = settings[0]
    if isinstance(spec.sweep, list) and others:
        ticks = [", ".join(labels.value(*pair) for pair in setting.items()) for setting in settings]
        label = ", ".join(map(labels.plain, settings[0]))
        axis = Axis(label, {str(index): tick for index, tick in enumerate(ticks)}, None)
        return axis, list(range(len(settings))), [""] * len(settings)
    axis = axis_of(field, list(dict.fromkeys(setting[field] for setting in settings)), spec)
    varying = [other for other in others if len({setting[other] for setting in settings}) > 1]
    titles = _panel_titles([{other: setting[other] for other in varying} for setting in settings])
    along = {text: index for index, text in enumerate(axis.ticks)}
    return axis, [along[setting[field]] for setting in settings], titles


def _panel_titles(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The titles of panels: fields in words with their values, each field broken the same way everywhere."""
    in_words = [labels.values(setting) for setting in settings]
    broken = {
        field
        for setting in in_words
        for field, text in setting.items()
        if len(_title_line(field, text, " ")) > ACROSS
    }
    return [
        "\n".join(
            _title_line(field, text, "\n" if field in broken else " ") for field, text in setting.items()
        )
        for setting in in_words
    ]


def _title_line(field: str, text: str, between: str) -> str:
    """A field in words and its value, beside it or below."""
    words = [f"{labels.plain(field)} =", text]
    return between.join(words if between == " " else (textwrap.fill(part, ACROSS) for part in words))


def draw_panel(axes: Axes, axis: Axis, panel: Panel, agents: Sequence[str]) -> None:
    """One panel: an agent's final regrets with their intervals, joined where the axis has numbers."""
    at = np.asarray(panel.along if axis.values is None else [axis.values[i] for i in panel.along], float)
    # A special value is not joined to the numbers.
    gap = len(at) - 1 if axis.apart and len(at) > 1 else len(at)
    at, mean, half = (
        np.insert(values, gap, np.nan, axis=0)[: len(at) + axis.apart]
        for values in (at, panel.mean, panel.half)
    )
    for agent, (name, look) in enumerate(looks(agents).items()):
        aside = 0.0 if axis.values else 0.5 * ((agent + 0.5) / len(agents) - 0.5)
        error = half[:, agent] if panel.half.any() else None
        _draw_points(
            axes, at + aside, mean[:, agent], error, look, called(name), joined=axis.values is not None
        )
    title_panel(axes, panel.title)
    scale(axes, axis)


def _draw_points(
    axes: Axes, at: Array, mean: Array, half: Array | None, look: Look, label: str, *, joined: bool
) -> None:
    """Draw marks with bars; bars of many settings are pale and have no caps."""
    crowded = len(at) > MOST_BARS
    line_style: dict[str, Any] = look.line() | ({} if joined else {"linestyle": "none"})
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
        **line_style,
    )
    for bar in bars[2]:
        bar.set(linestyle="-", alpha=0.3 if crowded else 1.0)


def axis_of(field: str, texts: Sequence[str], spec: Spec) -> Axis:
    """The axis of one field, whose values are given as text."""
    label = labels.plain(field)
    special = [text for text in texts if labels.apart(field, text)]
    numbers = {text: float(text) for text in texts if text not in special} if _is_numeric(field, spec) else {}
    if not numbers:
        return Axis(label, {text: labels.value(field, text) for text in texts}, None)
    assumed = labels.assumed_value(field, spec.problem)
    is_known = assumed is not None and assumed not in numbers.values()
    positions = numbers | dict.fromkeys(
        special, float(assumed) if is_known and assumed is not None else _next_value(numbers)
    )
    order = sorted(positions, key=positions.__getitem__)
    ticks = {text: text if text in numbers else labels.value(field, text) for text in order}
    if is_known:
        ticks |= {text: f"{assumed:g}\n({ticks[text]})" for text in special}
    values = [positions[text] for text in order]
    if _scale_name(values) == "symlog":
        label += f"\n(logarithmic from {min(value for value in values if value > 0):g} on)"
    return Axis(label, ticks, values, bool(special) and not is_known)


def _is_numeric(field: str, spec: Spec) -> bool:
    return sweeps.numeric(sweeps.values(spec.sweep)[field])


def _next_value(numbers: Mapping[str, float]) -> float:
    """The number after these, continuing their steps or ratios."""
    values = sorted(numbers.values())
    if values[0] > 0 and geometric(values):
        return values[-1] * values[-1] / values[-2]
    return values[-1] + ((values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 1.0)


def scale(axes: Axes, axis: Axis) -> None:
    """Ticks at the values themselves where they are few; a logarithmic axis where they are far apart."""
    words = list(axis.ticks.values())
    if axis.values is None:
        if len(words) <= MOST_WORDS:
            slant = len(words) > UPRIGHT and max(map(len, words)) > 3
            slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if slant else {}
            axes.set_xticks(range(len(words)), words, **slanted)
        axes.set_xlim(-0.6, len(words) - 0.4)
        return
    ticks = dict(zip(axis.values, words, strict=True))
    above, law = [value for value in axis.values if value > 0], _scale_name(axis.values)
    if law != "linear":
        options: dict[str, Any] = {"linthresh": min(above), "linscale": 0.5} if law == "symlog" else {}
        axes.set_xscale(law, **options)
        if len(ticks) > MOST_TICKS:
            targets = np.geomspace(above[0], above[-1], MOST_TICKS // 2)
            ticks = {at: ticks[at] for at in (min(above, key=lambda v: abs(v - x)) for x in targets)}
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()


def _scale_name(values: Sequence[float]) -> str:
    """The scale of numbers in increasing order: `linear`, `log`, or `symlog` where 0 is among them."""
    above = [value for value in values if value > 0]
    if min(values) < 0 or not (geometric(above) or _is_crowded(values)):
        return "linear"
    return "log" if len(above) == len(values) else "symlog"


def _is_crowded(values: Sequence[float]) -> bool:
    """Whether the labels of two of these numbers, in increasing order, would overlap."""
    return bool(len(values) > 2 and np.diff(values).min() < CLOSE * (values[-1] - values[0]))


def geometric(values: Sequence[float]) -> bool:
    """Whether numbers in increasing order are spread more evenly by their ratios than by their distances."""
    if len(values) < 3:
        return False
    gaps, ratios = np.diff(values), np.diff(np.log(values))
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean() - 1e-9)
