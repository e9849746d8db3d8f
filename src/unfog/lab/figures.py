"""Figures as publications print them. They hold no statistics: `report.curves` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog.files import writing
from unfog.lab import sweep as sweeps
from unfog.lab import sweep_figure
from unfog.lab.agent_look import EDGE, TITLE, averaged, called, heading, places, style
from unfog.lab.dataset import OWN
from unfog.lab.report import Curve, curves
from unfog.lab.spec import Spec
from unfog.look import STYLE

MOST_INSIDE = 8  # curves whose legend fits into the axes
FORMATS = ("svg", "pdf", "png")


def figure(data: xr.Dataset, title: str | None = None) -> Figure:
    """Mean cumulative regret over rounds, one curve an agent, with 95 % bands.

    Of a sweep the final regret over what is swept; of one agent and a few values of one field a curve each.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> unfog.figure(result).axes[0].get_ylabel()
    'cumulative Bayesian regret'
    """
    spec = Spec.model_validate_json(data.attrs["spec"])
    if _single(data, spec):
        spec = spec.model_copy(update={"sweep": {}})
    if spec.sweep and not _few(spec):
        return sweep_figure.figure(data, spec, spec.title if title is None else title)
    lines, trials = curves(data), data.sizes["trial"]
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(5.2, 3.6) if len(lines) <= MOST_INSIDE else (8.4, 4.2), layout="constrained")
        axes = chart.subplots()
        draw(axes, lines, _label_of(spec), swept=bool(spec.sweep))
        axes.set_title(heading(data, spec.title if title is None else title), **TITLE)
        bands = "; bands: 95 % intervals" if trials > 1 else ""
        note = averaged(data, spec) + bands
        chart.supxlabel(note, **EDGE)
    return chart


def panels(runs: Sequence[xr.Dataset]) -> Figure:
    """Several runs side by side, with the rules of `figure`."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(4.2 * len(runs), 3.6), layout="constrained")
        for axes, data in zip(chart.subplots(1, len(runs), squeeze=False)[0], runs, strict=True):
            spec = Spec.model_validate_json(data.attrs["spec"])
            draw(axes, curves(data), _label_of(spec), swept=bool(spec.sweep))
            axes.set_title(heading(data, spec.title, 50), **TITLE)
            axes.set_xlabel(f"round t\n{averaged(data, spec)}")
        if any(data.sizes["trial"] > 1 for data in runs):
            chart.supxlabel("bands: 95 % intervals", **EDGE)
    return chart


def _single(data: xr.Dataset, spec: Spec) -> bool:
    """Whether this is one setting of a sweep, taken out of it."""
    return set(data["regret"].dims) <= set(OWN) and {*data["agent"].values} <= {*spec.run.agents}


def _few(spec: Spec) -> bool:
    """Whether a sweep has so little to show that all of its curves go into one panel."""
    values = sweeps.values(spec.sweep)
    return len(spec.run.agents) == 1 and len(values) == 1 and len(sweeps.labels(spec.sweep)) <= MOST_INSIDE


def _label_of(spec: Spec) -> dict[str, str]:
    """What a curve is called: the agent, or in a sweep of one agent the value that is swept."""
    names, labels = spec.run.agents, sweeps.labels(spec.sweep)
    if labels == [""]:
        return {name: called(name) for name in names}
    symbol = {"actions": "K", "dim": "d"}
    found = dict[str, str]()
    for label, setting in zip(labels, sweeps.settings(spec.sweep), strict=True):
        words = ", ".join(f"{symbol.get(field, field)} = {value}" for field, value in setting.items())
        found |= {name + label: f"{called(name) + ', ' if len(names) > 1 else ''}{words}" for name in names}
    return found


def draw(
    axes: Axes,
    lines: list[Curve],
    labels: dict[str, str],
    swept: bool = False,
    legend: bool = True,
    inside: bool = True,
) -> None:
    """The curves on given axes; the legend in the order of their ends, or of the values swept."""
    for place, line in zip(places([line.label for line in lines]), lines, strict=True):
        colour, dash = style(place)
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
