"""Figures as publications print them. They hold no statistics: `report.curves` does."""

import itertools
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog.agents.catalogue import AGENTS, EVERY
from unfog.files import writing
from unfog.lab.report import Curve, curves
from unfog.lab.spec import Spec
from unfog.look import COLOURS, DASHES, STYLE

MOST_INSIDE = 8  # curves whose legend fits into the axes
_TITLE: dict[str, Any] = {"fontsize": 9, "loc": "left", "parse_math": False}
FORMATS = ("svg", "pdf", "png")


def figure(data: xr.Dataset, title: str | None = None) -> Figure:
    """Mean cumulative regret over rounds, one curve an agent, with 95 % bands.

    Where several agents are swept, a panel for each value.
    """
    spec = Spec.model_validate_json(data.attrs["spec"])
    lines, trials = curves(data), data.sizes["trial"]
    if spec.sweep and len(spec.run.agents) > 1:
        return _by_value(data, spec, lines, title)
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(5.2, 3.6) if len(lines) <= MOST_INSIDE else (8.4, 4.2), layout="constrained")
        axes = chart.subplots()
        draw(axes, lines, _label_of(spec), swept=bool(spec.sweep))
        axes.set_title(_heading(data, spec.title if title is None else title), **_TITLE)
        bands = "; bands: 95 % intervals" if trials > 1 else ""
        note = _averaged(data, spec) + bands
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _by_value(data: xr.Dataset, spec: Spec, lines: list[Curve], title: str | None) -> Figure:
    """A panel for each value that is swept, on one scale, with one legend for all."""
    [(field, values)] = spec.sweep.items()
    labels = {name: _called(name) for name in spec.run.agents}
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(2.3 * len(values) + 2.6, 3.4), layout="constrained")
        row = chart.subplots(1, len(values), squeeze=False, sharey=True)[0]
        for axes, value in zip(row, values, strict=True):
            end = f" {field}={value}"
            own = [
                one._replace(label=one.label.removesuffix(end)) for one in lines if one.label.endswith(end)
            ]
            draw(axes, own, labels, legend=value == values[-1], inside=False)
            axes.set_title(f"{field} = {value}", **_TITLE)
            axes.label_outer()
        row[0].set_ylim(0, 1.02 * max((line.mean + line.half_width).max() for line in lines))
        chart.suptitle(
            _heading(data, spec.title if title is None else title, 100), fontsize=9, x=0.01, ha="left"
        )
        bands = "; bands: 95 % intervals" if data.sizes["trial"] > 1 else ""
        chart.supxlabel(_averaged(data, spec) + bands, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _heading(data: xr.Dataset, title: str, width: int = 70) -> str:
    """A title, with what must be said of the data."""
    said = [data.attrs["note"]] if "note" in data.attrs else []
    return "\n".join([*said, textwrap.fill(title, width)])


def panels(runs: Sequence[xr.Dataset]) -> Figure:
    """Several runs side by side, with the rules of `figure`."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(4.2 * len(runs), 3.6), layout="constrained")
        for axes, data in zip(chart.subplots(1, len(runs), squeeze=False)[0], runs, strict=True):
            spec = Spec.model_validate_json(data.attrs["spec"])
            draw(axes, curves(data), _label_of(spec), swept=bool(spec.sweep))
            axes.set_title(_heading(data, spec.title, 50), **_TITLE)
            axes.set_xlabel(f"round t\n{_averaged(data, spec)}")
        if any(data.sizes["trial"] > 1 for data in runs):
            chart.supxlabel("bands: 95 % intervals", fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _averaged(data: xr.Dataset, spec: Spec) -> str:
    trials = data.sizes["trial"]
    return f"mean of {trials} trial{'s'[: trials > 1]}, seed {spec.run.seed}"


def _label_of(spec: Spec) -> dict[str, str]:
    """What a curve is called: the agent, or in a sweep of one agent the value that is swept."""
    if not spec.sweep:
        return {name: _called(name) for name in spec.run.agents}
    [(field, values)] = spec.sweep.items()
    symbol = {"actions": "K", "dim": "d"}.get(field, field)
    many = len(spec.run.agents) > 1
    return {
        f"{name} {field}={value}": f"{_called(name) + ', ' if many else ''}{symbol} = {value}"
        for name in spec.run.agents
        for value in values
    }


def _called(name: str) -> str:
    """An agent's name in a legend: the row's, and the learner where that is named too."""
    labels = {row.name: row.label for row in EVERY.values() if row.label}
    row = max((row for row in labels if name == row or name.startswith(f"{row}-")), key=len, default=None)
    if row is None:
        return name
    return labels[row] if name == row else f"{labels[row]}, {name.removeprefix(f'{row}-')}"


def draw(
    axes: Axes,
    lines: list[Curve],
    labels: dict[str, str],
    swept: bool = False,
    legend: bool = True,
    inside: bool = True,
) -> None:
    """The curves on given axes; the legend in the order of their ends, or of the values swept."""
    for place, line in zip(_places([line.label for line in lines]), lines, strict=True):
        colour, dash = _style(place)
        label, alone = labels.get(line.label, line.label), len(line.rounds) == 1
        axes.plot(
            line.rounds,
            line.mean,
            color=colour,
            linestyle=dash,
            linewidth=1.4,
            label=label,
            marker="o" if alone else "",
        )
        low, high = line.mean - line.half_width, line.mean + line.half_width
        axes.fill_between(line.rounds, low, high, color=colour, alpha=0.15, linewidth=0)
    if legend:
        _legend(axes, lines, swept, inside and len(lines) <= MOST_INSIDE)
    axes.set(xlabel="round t", ylabel="cumulative Bayesian regret")
    axes.set_xlim(0, lines[0].rounds[-1])
    axes.set_ylim(bottom=0)


def _legend(axes: Axes, lines: list[Curve], swept: bool, inside: bool) -> None:
    handles, names = axes.get_legend_handles_labels()
    order = list(range(len(lines)))
    if not swept:
        order.sort(key=lambda i: -lines[i].mean[-1])
    where: dict[str, Any] = {"loc": "upper left"}
    if not inside:
        where = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "fontsize": 7}
    axes.legend([handles[i] for i in order], [names[i] for i in order], handlelength=2.8, **where)


def _places(labels: list[str]) -> list[int]:
    """A place in the list of styles for each label: a row's own, or the next that is free.

    There are fewer colours than rows: only those that come first have one of their own.
    """
    known = list(AGENTS)[: len(COLOURS)]
    taken = {known.index(label) for label in labels if label in known}
    free = (place for place in itertools.count() if place not in taken)
    return [known.index(label) if label in known else next(free) for label in labels]


def _style(place: int) -> tuple[str, Any]:
    """Colour and dash; past eight the dashes shift against the colours."""
    size = len(COLOURS)
    return COLOURS[place % size], DASHES[(place + place // size) % size]


def save(
    chart: Figure, folder: Path, stem: str, formats: tuple[str, ...] = FORMATS, *, dpi: int = 200
) -> list[Path]:
    """The figure in each format; equal data give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in formats:
        path = folder / f"{stem}.{kind}"
        temporary = folder / f".{stem}.{kind}.tmp"
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
        with mpl.rc_context(STYLE), writing(path):
            chart.savefig(temporary, format=kind, dpi=dpi, metadata=undated)
        temporary.replace(path)
        paths.append(path)
    return paths
