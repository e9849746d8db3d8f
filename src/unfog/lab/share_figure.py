"""The picture of what reference readings are worth: regret and context error over the share revealed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog.lab.labels import Look, looks
from unfog.plotting import DPI, PAGE, STYLE

BESIDE = 2.0  # by which factor none at all stands to the left of the least share


class Estimate(NamedTuple):
    """A mean over trials, with the half-width of its 95 % interval."""

    mean: float
    half_width: float


class Panel(NamedTuple):
    """One quantity."""

    name: str
    curve: Sequence[Estimate]  # one for each share
    bands: Mapping[str, Estimate]  # whom to compare with: an agent's name, and after a comma what it is shown
    agent: str = "temporal"  # whose curve it is


def figure(shares: Sequence[float], panels: Sequence[Panel], title: str = "", note: str = "") -> Figure:
    """A panel for each quantity, over shares in increasing order; none at all has a place of its own."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(max(PAGE, PAGE / 2 * len(panels)), 3.2), dpi=DPI, layout="constrained")
        for axes, panel in zip(chart.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, shares, panel)
        chart.suptitle(title, fontsize=8.5, x=0.01, ha="left", parse_math=False)
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _draw(axes: Axes, shares: Sequence[float], panel: Panel) -> None:
    least = min(share for share in shares if share > 0)
    places = [share or least / BESIDE for share in shares]
    seen = looks([panel.agent, *(name.partition(",")[0] for name in panel.bands)])
    for name, level in panel.bands.items():
        look = seen[name.partition(",")[0]]
        axes.axhline(level.mean, color=look.colour, linestyle=look.dash, linewidth=look.width, label=name)
        ends = level.mean - level.half_width, level.mean + level.half_width
        axes.axhspan(*ends, color=look.colour, alpha=0.15, linewidth=0)
    _curve(axes, shares, places, panel, seen[panel.agent])
    axes.set_xscale("log")
    axes.set_xticks(places, [_called(share) for share in shares], rotation=60, fontsize=7)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_title(panel.name, fontsize=8.5, loc="left")
    axes.set_xlabel("true contexts shown")
    axes.legend(fontsize=8)


def _curve(axes: Axes, shares: Sequence[float], places: Sequence[float], panel: Panel, own: Look) -> None:
    """The estimates with their intervals, joined; none at all is no share, and joined to nothing."""
    mean, half = np.array(panel.curve).T
    gap = [place for place, share in enumerate(shares) if share > 0][:1] if 0.0 in shares else []
    at, mean, half = (np.insert(np.asarray(one, float), gap, np.nan) for one in (places, mean, half))
    bars: dict[str, Any] = {"marker": own.mark, "markersize": 4.5, "capsize": 2.5, "label": panel.agent}
    for bar in axes.errorbar(at, mean, half, **bars, **own.line())[2]:
        bar.set(linestyle="-")


def _called(share: float) -> str:
    """A share in words."""
    return {0.0: "none", 1.0: "all"}.get(share, f"1 in {1 / share:g}" if share else "none")
