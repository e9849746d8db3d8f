"""Figures as publications print them. They hold no statistics: `report.curves` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog._io import writing
from unfog.lab import field_words, sweep_figure
from unfog.lab import sweep as sweeps
from unfog.lab.agent_look import EDGE, FIRST, SO_FAR, TITLE, Look, averaged, called, heading, looks, narrow
from unfog.lab.dataset import OWN
from unfog.lab.report import Curve, curves
from unfog.lab.spec import Spec
from unfog.maths.arrays import Ints
from unfog.plotting import COLUMN, DASHES, DPI, PAGE, STYLE

MOST_SWEPT = 8  # values of a field that have a curve each
MOST_BANDS = 4  # bands that are told apart where they overlap; more curves have bars at a few rounds
BARS = 5  # bars of a curve
FORMATS = ("svg", "pdf", "png")
SHORT = 60  # letters of six names in one line of a page
LETTERS = {COLUMN: 50, PAGE: 105}  # of a line of a title


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
    if _single(data, spec):
        spec = spec.model_copy(update={"sweep": {}})
    if spec.sweep and not _few(spec):
        return sweep_figure.figure(data, spec, spec.title if title is None else title, width)
    lines, trials = curves(data), data.sizes["trial"]
    beside = not spec.sweep and ((width or 0) >= PAGE or not narrow(line.label for line in lines))
    wide = width or (PAGE if beside else COLUMN)
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(wide, 3.0), dpi=DPI, layout="constrained")
        axes = chart.subplots()
        draw(axes, lines, spec.sweep)
        _legend(axes, spec.sweep, beside)
        words = heading(
            data, spec.title if title is None else title, LETTERS[PAGE if wide >= PAGE else COLUMN]
        )
        chart.suptitle(words, fontsize=8.5, x=0.01, ha="left", parse_math=False)
        shown = f"; {_intervals(len(lines))}: 95 % intervals"
        note = averaged(data, spec) + (shown if trials > 1 else "")
        chart.supxlabel(note, **EDGE)
    return chart


def panels(runs: Sequence[xr.Dataset]) -> Figure:
    """Several runs side by side with one legend, as wide as a printed page."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(max(PAGE, 2.3 * len(runs)), 2.9), dpi=DPI, layout="constrained")
        row = chart.subplots(1, len(runs), squeeze=False)[0]
        handles = dict[str, Any]()
        for axes, data in zip(row, runs, strict=True):
            spec = Spec.model_validate_json(data.attrs["spec"])
            draw(axes, curves(data), spec.sweep)
            axes.set_title(heading(data, spec.title, 32), **TITLE)
            axes.set_xlabel(f"round\n{averaged(data, spec)}")
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        for axes in row[1:]:
            axes.set_ylabel("")
        names = sorted(handles, key=lambda name: name != called(FIRST))
        beside = 6 if len("".join(names)) <= SHORT else 5
        chart.legend(
            [handles[name] for name in names], names, loc="outside upper left", ncols=beside, **_SAMPLE
        )
        if any(data.sizes["trial"] > 1 for data in runs):
            shown = sorted({_intervals(len(curves(data))) for data in runs})
            chart.supxlabel(f"{' and '.join(shown)}: 95 % intervals", **EDGE)
    return chart


def _single(data: xr.Dataset, spec: Spec) -> bool:
    """Whether this is one setting of a sweep, taken out of it."""
    return set(data["regret"].dims) <= set(OWN) and {*data["agent"].values} <= {*spec.run.agents}


def _few(spec: Spec) -> bool:
    """Whether a sweep has so little to show that all of its curves go into one panel."""
    values = sweeps.values(spec.sweep)
    return len(spec.run.agents) == 1 and len(values) == 1 and len(sweeps.labels(spec.sweep)) <= MOST_SWEPT


def _looks(lines: Sequence[Curve], swept: sweeps.Sweep) -> list[tuple[str, Look]]:
    """What a curve is called and looks like: the agent's, or of one agent a shade for each value swept."""
    names = [line.label for line in lines]
    if not swept:
        return [(called(name), look) for name, look in looks(names).items()]
    [(field, values)] = sweeps.values(swept).items()
    texts = dict(zip(sweeps.labels(swept), sweeps.spelled(values), strict=True))
    shades = mpl.colormaps["cividis"](np.linspace(0.0, 0.8, len(texts)))  # apart for everybody, and in grey
    found = list[tuple[str, Look]]()
    for place, (label, text) in enumerate(texts.items()):
        look = Look(mpl.colors.to_hex(shades[place]), DASHES[place % len(DASHES)], "o")
        found += [(field_words.value(field, text), look)] * any(name.endswith(label) for name in names)
    return found


def draw(axes: Axes, lines: Sequence[Curve], swept: sweeps.Sweep | None = None) -> None:
    """The curves with their intervals on given axes, the highest one first."""
    each = list(zip(lines, _looks(lines, swept or {}), strict=True))
    if not swept:
        each.sort(key=lambda pair: -pair[0].mean[-1])
    for place, (line, (label, look)) in enumerate(each):
        few = _few_rounds(len(line.rounds), place / len(lines))
        mark: dict[str, Any] = {
            "marker": look.mark,
            "markersize": 2.2 + look.width,
            "markevery": few.tolist(),
        }
        axes.plot(line.rounds, line.mean, label=label, **mark, **look.line())
        if len(lines) <= MOST_BANDS:
            _band(axes, line, look)
        else:
            _bars(axes, line, look, few)
    axes.set(xlabel="round", ylabel=SO_FAR)
    axes.set_xlim(0, 1.03 * lines[0].rounds[-1])
    axes.set_ylim(bottom=0)


def _intervals(number: int) -> str:
    """How so many curves show them."""
    return "bands" if number <= MOST_BANDS else "bars"


def _few_rounds(number: int, aside: float) -> Ints:
    """Places of marks and bars, others for each curve, so that they stand side by side."""
    last = (number - 1) * (1 - 0.12 * aside)
    return np.unique(np.linspace(last / BARS, last, BARS).round().astype(int))


def _band(axes: Axes, line: Curve, look: Look) -> None:
    """A light fill with thin edges."""
    ends = line.mean - line.half_width, line.mean + line.half_width
    axes.fill_between(
        line.rounds, *ends, facecolor=(look.colour, 0.13), edgecolor=(look.colour, 0.55), linewidth=0.4
    )


def _bars(axes: Axes, line: Curve, look: Look, few: Ints) -> None:
    """Intervals at a few rounds."""
    bars: dict[str, Any] = {"fmt": "none", "ecolor": look.colour, "elinewidth": 1.0, "capsize": 1.8}
    axes.errorbar(line.rounds[few], line.mean[few], line.half_width[few], zorder=look.above, **bars)


_SAMPLE: dict[str, Any] = {"handlelength": 2.7, "columnspacing": 1.0, "labelspacing": 0.3}


def _legend(axes: Axes, swept: sweeps.Sweep, beside: bool) -> None:
    """The recommended agent first, then by where curves end; of a sweep the values in their order."""
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
        where |= {"title": field_words.plain(field), "alignment": "left", "title_fontsize": 8, "ncols": 4}
    axes.legend([handles[i] for i in order], [names[i] for i in order], **_SAMPLE, **where)


def save(
    chart: Figure, folder: Path, stem: str, formats: tuple[str, ...] = FORMATS, *, dpi: int = DPI
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
