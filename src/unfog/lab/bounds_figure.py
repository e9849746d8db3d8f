"""The picture of a study: regret and its bounds on log-log axes, a panel for each way to look at them."""

import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from unfog.lab.agent_look import SO_FAR, called, looks
from unfog.lab.bounds import Growth, Panel, Study
from unfog.lab.bounds_case import AT_RANDOM, BOUNDED
from unfog.maths.arrays import Array
from unfog.plotting import COLUMN, DASHES, DPI, PAGE, STYLE
from unfog.theory.bounds import Bound

THEORY = {
    1: "Theorem 1 says O(d √T), for a prior that narrows like 1/T: λ/σ² ≤ d/T",
    2: "Theorem 2 is said to be O(√(m T log T)), for λ/σ² ≤ 1; its estimation part grows like √T log T",
}
SYMBOLS = {"round": "t", "horizon": "T", "dim": "d", "actions": "K"}
AXES = {
    "round": "round t",
    "horizon": "rounds played: horizon T",
    "dim": "context dimension d",
    "actions": "number of arms K",
}
TITLES = {
    "round": "over rounds, one prior;\nfits: t ≥ T/10",
    "horizon": "over horizons,\nprior variance ∝ 1/T",
}
_BOUND_COLOURS = {"corrected": {1: "#009E73", 2: "#CC79A7"}, "printed": {1: "#003D2C", 2: "#5A2443"}}
_GREY = "0.45"
_FAINT = 0.3  # a bound where its conditions do not hold


def figure(found: Study) -> Figure:
    """The panels that there are, side by side, each with its legend below."""
    panels = [panel for panel in (found.fixed, found.tied, found.swept) if panel is not None]
    with mpl.rc_context(STYLE):
        height = 4.3 + 0.3 * len(found.fixed.agents)  # legends are below
        chart = Figure(figsize=(max(PAGE / 3 * len(panels), COLUMN), height), dpi=DPI, layout="constrained")
        row = chart.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(row, panels, strict=True):
            _draw(axes, panel)
            title = f"over {AXES.get(panel.axis, panel.axis)},\nafter {found.spec.run.rounds:,} rounds"
            axes.set_title(TITLES.get(panel.axis, title), fontsize=8, loc="left")
        row[0].set_ylabel(SO_FAR)
        chart.get_layout_engine().set(wspace=0.04, w_pad=0.06)  # type: ignore[union-attr, call-arg]
        width = max(42 * len(panels), 60)  # letters
        chart.suptitle(
            textwrap.fill(found.spec.title or found.spec.name, width),
            fontsize=8.5,
            x=0.01,
            ha="left",
            parse_math=False,
        )
        note = "\n".join(textwrap.fill(line, width) for line in _notes(found, panels))
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _notes(found: Study, panels: list[Panel]) -> list[str]:
    """What the theory says, and what was averaged."""
    r = found.spec.run
    bounds = [bound for panel in panels for growth in panel.agents for bound in growth.bounds.values()]
    faint = [] if all(bound.holds.all() for bound in bounds) else ["faint: a bound's conditions do not hold"]
    bands = ["bands and ±: 95 % intervals; EE where it is beyond them"] if r.trials > 1 else []
    averaged = f"mean of {r.trials} trial{'s'[: r.trials > 1]}, seed {r.seed}"
    theorems = sorted({BOUNDED[growth.agent].theorem for growth in found.fixed.agents})
    return [*(THEORY[number] for number in theorems), "; ".join([averaged, *bands, *faint])]


def _draw(axes: Axes, panel: Panel) -> None:
    """Bounds from the top down, then regret, then what it splits into."""
    axes.set(xscale="log", yscale="log", xlabel=AXES.get(panel.axis, panel.axis))
    symbol = SYMBOLS.get(panel.axis, "x")
    firsts = {BOUNDED[growth.agent].theorem: growth for growth in reversed(panel.agents)}
    for number, growth in sorted(firsts.items()):
        for version, dash, width in (("corrected", "-", 2.2), ("printed", DASHES[1], 1.0)):
            name = f"Theorem {number}, {version}: {_power(symbol, growth.slopes[version])}"
            look = {"color": _BOUND_COLOURS[version][number], "linestyle": dash, "linewidth": width}
            _bound(axes, growth.points, growth.bounds[version], name, look)
    first = panel.agents[0]
    name = f"at random, at most: {_power(symbol, first.slopes[AT_RANDOM])}"
    look = {"color": _GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.3}
    _bound(axes, first.points, first.bounds[AT_RANDOM], name, look)
    for index, growth in enumerate(panel.agents):
        _regret(axes, growth, symbol, 1.2 if index else 2.6)
    if "ee" in first.losses:
        _estimation(axes, first)
    _ticks(axes, panel)
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.17)}
    axes.legend(fontsize=7, handlelength=2.4, handletextpad=0.5, labelspacing=0.35, **below)


def _bound(axes: Axes, points: Array, bound: Bound, name: str, look: dict[str, Any]) -> None:
    """Full where its conditions hold, faint all along."""
    holds = np.asarray(bound.holds, bool)
    shown = holds.any()
    axes.plot(points, bound.total, alpha=_FAINT, label=None if shown else f"{name} (faint)", **look)
    if shown:
        axes.plot(points, np.where(holds, bound.total, np.nan), label=name, **look)


def _regret(axes: Axes, growth: Growth, symbol: str, width: float) -> None:
    """Mean and band; agents often do alike, so that the first line is broad and shows under the others."""
    look, (mean, half) = looks([growth.agent])[growth.agent], growth.band()
    power = _power(symbol, *(growth.interval() or (None,)))
    line = look.line() | {"linewidth": width, "marker": look.mark, "markersize": 1.5 + width}
    axes.plot(growth.points, mean, label=f"{called(growth.agent)}: {power}", **line)
    if half is not None:
        low = np.maximum(mean - half, mean / 10)  # a logarithm has no place for less than nothing
        axes.fill_between(growth.points, low, mean + half, color=look.colour, alpha=0.18, linewidth=0)


def _estimation(axes: Axes, growth: Growth) -> None:
    """What misjudged features cost in all, where it is more than chance; CB is the rest of regret."""
    mean, half = growth.band("ee")
    size = np.where(np.abs(mean) > (0 if half is None else half), np.abs(mean), np.nan)
    if not np.isnan(size).all():
        shown = mean[~np.isnan(size)]
        name = "EE1 + EE2" if (shown > 0).all() else "−(EE1 + EE2)" if (shown < 0).all() else "|EE1 + EE2|"
        look: dict[str, Any] = {"color": "0.25", "linestyle": DASHES[4], "linewidth": 0.9}
        axes.plot(growth.points, size, label=f"{name}, {called(growth.agent)}", **look)


def _power(symbol: str, value: float | None, half: float | None = None) -> str:
    """A power in a legend, with as many digits as its interval has."""
    if value is None:
        return "no fit"
    digits = 3 if half is not None and half < 0.0095 else 2
    spread = "" if half is None else f" ± {half:.{digits}f}"
    return f"${symbol}^{{{value:z.{digits}f}}}${spread}"


def _ticks(axes: Axes, panel: Panel) -> None:
    """Values of a field, and horizons, are few: each has its tick. Rounds and regret have decades."""
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.axis == "round":
        axes.xaxis.set_major_locator(LogLocator())
        return
    points = panel.agents[0].points
    axes.xaxis.set_major_locator(FixedLocator(points.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
