"""The picture of a check: the posterior's two widest directions, and every learner's mean and spread."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from unfog.lab.agent_look import looks
from unfog.lab.nuts import Comparison, Reference
from unfog.lab.posterior import Check
from unfog.maths.arrays import Array
from unfog.plotting import COLOURS, DASHES, DPI, PAGE, STYLE

CLOUD = 2000  # draws of NUTS shown
LEVEL = 0.9  # of the ellipses
REACH = 3.3  # posterior standard deviations that the panel of ellipses shows
FLOOR, CEILING = 1e-3, 1e3  # ratios of spread beyond are shown there
_GREY = "0.45"  # NUTS
_KNOWN = ("lmc", "lmc:temperature=1", "pg", "laplace", "adf", "sites")
_SHADES = [colour for colour in COLOURS if colour != "#7F7F7F"]


def figure(found: Check, title: str) -> Figure:
    """Three panels: ellipses, means, spreads; the learners' names are the legend of all."""
    rows = len(found.comparisons)
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, max(2.9, 1.4 + 0.34 * rows)), dpi=DPI, layout="constrained")
        cloud, means, spreads = chart.subplots(1, 3, width_ratios=(1.25, 1, 1))
        _ellipses(cloud, found.references[0], found.comparisons)
        _means(means, found.comparisons)
        _spreads(spreads, found.comparisons)
        chart.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
        chart.suptitle(title, fontsize=8.5, x=0.01, ha="left", parse_math=False)
        chains, draws, _ = found.references[0].draws.shape
        data = f"data: {found.rounds:,} rounds played by {found.agent}, seed {found.seed}"
        note = f"{data}; NUTS: {chains} × {draws:,} draws; learners: {found.chains:,} draws each, as used"
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _style(name: str) -> dict[str, Any]:
    """Of a learner: the same in whichever company."""
    if name in _KNOWN:
        place = _KNOWN.index(name)
        return {"color": _SHADES[place], "linestyle": DASHES[place]}
    look = looks([name])[name]
    return {"color": look.colour, "linestyle": look.dash}


def _ellipses(axes: Axes, reference: Reference, learners: list[Comparison]) -> None:
    """NUTS's draws along their two widest axes, and an ellipse of everyone's mean and covariance there."""
    widest = reference.axes[:, [-1, -2]]
    draws = reference.draws.reshape(-1, len(widest)) @ widest
    shown = draws[:: max(1, len(draws) // CLOUD)]
    axes.scatter(shown[:, 0], shown[:, 1], s=3, color="0.8", linewidths=0, rasterized=True)
    axes.plot(*ellipse(draws), color=_GREY, linewidth=3.5, alpha=0.55)
    for learner in learners:
        axes.plot(*ellipse(learner.draws @ widest), linewidth=1.3, **_style(learner.learner))
    middle, reach = draws.mean(0), REACH * draws.std(0).max()
    axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))
    axes.set_aspect("equal")
    axes.set(xlabel="θ along its first principal axis", ylabel="along its second")
    axes.set_title(f"{LEVEL:.0%} ellipses; grey: NUTS".replace("%", " %"), fontsize=8, loc="left")


def ellipse(draws: Array) -> Array:
    """The outline (2, points) that holds `LEVEL` of a Gaussian with the moments of these draws, (n, 2)."""
    turn = np.linspace(0, 2 * np.pi, 181)
    values, vectors = np.linalg.eigh(np.cov(draws.T))
    root = vectors * np.sqrt(np.maximum(values, 0))  # of a single point they may be anything about zero
    radius = np.sqrt(-2 * np.log1p(-LEVEL))
    outline: Array = draws.mean(0)[:, None] + radius * root @ np.stack([np.cos(turn), np.sin(turn)])
    return outline


def _means(axes: Axes, learners: list[Comparison]) -> None:
    """Named rows, each with a sample of the learner's line."""
    _strip(axes, {learner.learner: learner.shifts for learner in learners})
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(learners)), [learner.learner for learner in learners])
    axes.tick_params(axis="y", length=0, pad=31)
    for index, learner in enumerate(learners):
        line = {"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, "linewidth": 1.3, **_style(learner.learner)}
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate("", (-0.02, index), (-24, 0), arrowprops=line, annotation_clip=False, **place)
    edge = 1.08 * max(0.3, *(float(np.abs(learner.shifts).max()) for learner in learners))
    axes.set(xlabel="(mean − NUTS's) / s.d.", xlim=(-edge, edge))
    axes.set_title("means,\na dot a coordinate", fontsize=8, loc="left")


def _spreads(axes: Axes, learners: list[Comparison]) -> None:
    """The same rows on a log axis; their medians in figures."""
    values = {one.learner: np.clip(one.spreads, FLOOR, CEILING) for one in learners}
    _strip(axes, values)
    axes.axvline(1, color=_GREY, linewidth=0.8, zorder=0)
    axes.set_yticks([])
    everyone = np.concat(list(values.values()))
    axes.set_xscale("log")
    low, high = min(0.3, everyone.min()) / 1.6, max(2.0, everyone.max()) * 1.6
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if high < 300 * low else (1,)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    for index, learner in enumerate(learners):
        style: dict[str, Any] = {
            "color": _style(learner.learner)["color"],
            "va": "center",
            "annotation_clip": False,
        }
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(percent(float(np.median(learner.spreads))), (1, index), (4, 0), **style, **place)
    axes.set(xlabel="s.d. / NUTS's")
    axes.set_title("spreads,\nand their medians", fontsize=8, loc="left")


def percent(share: float) -> str:
    """A share with two figures or more: 3.0 %, 94 %, 123 %."""
    return f"{100 * share:.{0 if share >= 0.0995 else 1}f} %"


def _strip(axes: Axes, rows: Mapping[str, Array]) -> None:
    """A row of dots for each learner, side by side so that they do not hide each other."""
    for index, (name, values) in enumerate(rows.items()):
        lanes = index + np.linspace(-0.25, 0.25, len(values))
        axes.scatter(values, lanes, s=11, color=_style(name)["color"], alpha=0.7, linewidths=0)
    axes.set_ylim(len(rows) - 0.45, -0.55)
