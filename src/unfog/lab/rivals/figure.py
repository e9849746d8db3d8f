"""The picture of the ratios: a panel a problem, a row an agent, a logarithmic axis."""

from collections.abc import Sequence
from textwrap import fill

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from unfog.lab.rivals.report import label
from unfog.lab.rivals.table import Comparison, Outcome, Row
from unfog.plotting import COLOURS, DPI, STYLE

BLUE, ORANGE, BLACK, GREEN, RED = (COLOURS[i] for i in (0, 1, 2, 3, 6))
ACROSS = 5  # panels beside each other
SIDES = {"same": (BLUE, "o"), "less": (BLUE, "o"), "more": (ORANGE, "s"), "ours": (GREEN, "D")}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)


def figure(found: Comparison, title: str = "") -> Figure:
    """Ratios with their intervals, as published; tuned ones as small crosses below."""
    names = _names(found.outcomes)
    across = min(ACROSS, max(1, len(found.outcomes)))
    down = max(1, -(-len(found.outcomes) // across))
    wide = 1.8 + 1.55 * across  # inches: two columns of print for three panels, a page on its side for five
    size = (wide, 0.9 + down * (0.6 + 0.13 * len(names)))
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=size, dpi=DPI, layout="constrained")
        panels = chart.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, one in zip(panels, found.outcomes, strict=False):
            _panel(axes, one, names)
        for axes in panels[len(found.outcomes) :]:
            axes.axis("off")
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        handles = _legend(any(one.tuned for one in found.outcomes))
        beside = 3 if across == ACROSS else 2
        chart.legend(handles=handles, loc="outside lower center", ncols=beside, fontsize=7.5)
        said = title or "Regret as a ratio to ours on the same trials: right of the line ours is better"
        chart.suptitle(said, fontsize=10, x=0.01, ha="left", parse_math=False)
    return chart


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    """The rows: rivals in their order, then others of ours."""
    rows = [row for one in outcomes for row in one.rows]
    return list(dict.fromkeys(label(row) for mine in (False, True) for row in rows if _mine(row) is mine))


def _mine(row: Row) -> bool:
    return row.told == "ours"


def _panel(axes: Axes, one: Outcome, names: Sequence[str]) -> None:
    """One problem: dots with bars; where an agent does not play there is nothing."""
    axes.axvline(1, color="0.35", linewidth=0.9)
    for row in one.rows:
        colour, mark = SIDES[row.told]
        _dot(axes, row, names.index(label(row)), colour, mark)
    for row in one.tuned:
        _dot(axes, row, names.index(label(row)) + 0.3, RED if not _mine(row) else GREEN, "x")
    axes.set_xscale("log")
    _ticks(axes)
    axes.set_yticks(range(len(names)), names, fontsize=7, parse_math=False)
    ours = fill(f"to {', '.join(one.ours)}", 24)
    axes.set_title(f"{one.problem}\n{ours}", fontsize=7, loc="left", parse_math=False)
    axes.grid(axis="y", color="0.93", linewidth=0.7)
    axes.set_axisbelow(True)


def _dot(axes: Axes, row: Row, place: float, colour: str, mark: str) -> None:
    value, low, high = row.ratio
    if np.isnan(value):
        return
    ends = None if np.isnan(low) else [[value - low], [high - value]]
    hollow = "white" if row.told == "less" else colour
    size = 3.5 if mark != "x" else 3
    axes.errorbar(
        [value], [place], xerr=ends, fmt=mark, color=colour, mfc=hollow, markersize=size, elinewidth=0.9
    )


def _ticks(axes: Axes) -> None:
    """Plain numbers, a few of them."""
    low, high = axes.get_xlim()
    low, high = min(low, 0.8), max(high, 1.25)
    axes.set_xlim(low, high)
    inside = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(inside if len(inside) < 6 else [t for t in inside if t not in (0.2, 2, 5, 20, 50)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=7)


def _legend(tuned: bool) -> list[Line2D]:
    def entry(colour: str, mark: str, text: str, face: str | None = None) -> Line2D:
        return Line2D([], [], color=colour, marker=mark, linestyle="", mfc=face or colour, label=text)

    found = [
        entry(BLUE, "o", "told no more than ours"),
        entry(BLUE, "o", "ours is shown true contexts, it makes no use of them", "white"),
        entry(ORANGE, "s", "told more"),
        entry(GREEN, "D", "others of ours"),
    ]
    return [*found, entry(RED, "x", "tuned, both")] if tuned else found
