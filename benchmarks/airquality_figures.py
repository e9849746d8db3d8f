"""Beliefs about contexts in the trials of a run, and the two figures of benchmarks/airquality.py.

`track` replays an agent in the trials that a run with the same seed has, and keeps what it believes about
every context beside the reading and the truth. `stretch_figure` draws one coordinate of one trial: read,
denoised with its band, true, and when the truth was shown. `share_figure` draws what reference readings are
worth: regret and context error over the share of true contexts revealed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from unfog import validation
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.lab.labels import Look, looks
from unfog.maths.arrays import Array, Bools
from unfog.plotting import COLOURS, DPI, PAGE, STYLE
from unfog.simulation import MOST_SEED
from unfog.simulation.player import played
from unfog.worlds.problem import Problem

MOST_CELLS = 10**8  # trials x rounds x coordinates that are kept
BESIDE = 2.0  # the share 0 is drawn at the least positive share divided by this
BLUE, ORANGE, BLACK, RED = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[6]


class Track(NamedTuple):
    """Trials side by side, round by round."""

    at: Array  # (trials, rounds)  the time, or the number of the round
    noisy: Array  # (trials, rounds, d)
    true: Array  # (trials, rounds, d)
    mean: Array  # (trials, rounds, d)  of the belief
    deviation: Array  # (trials, rounds, d)  its standard deviation
    shown: Bools  # (trials, rounds, d)  whether the true one was shown at once, after the reward

    def squared_error(self) -> Array:
        """Of the denoised contexts, a mean over rounds and coordinates: (trials,)."""
        found: Array = ((self.mean - self.true) ** 2).mean((-2, -1))
        return found

    def covered(self, width: float = 1.96) -> Array:
        """Share of the true coordinates that are within so many standard deviations: (trials,)."""
        found: Array = (np.abs(self.mean - self.true) <= width * self.deviation).mean((-2, -1))
        return found

    def readings(self) -> Array:
        """In how many rounds a true context was shown, or some of it: (trials,)."""
        return self.shown.any(-1).sum(-1).astype(float)


def track(problem: Problem, agent: str, *, rounds: int = 1000, trials: int = 20, seed: int = 0) -> Track:
    """Follow an agent through the trials that a run with this seed has.

    Beliefs are those of the decision, before anything was shown of the round's true context.
    """
    dim = len(problem.knowledge().context_mean)
    validation.count("rounds", rounds, most=MOST_CELLS // dim)
    validation.count("trials", trials, most=MOST_CELLS // dim // rounds)
    validation.count("seed", seed, 0, MOST_SEED)
    [row] = select_rows([agent], "agent", Catalogue(problem.rewards.kind))
    shape = trials, dim
    found = []
    for t, (emission, decision) in enumerate(played(problem, row, rounds, range(trials), seed)):
        belief, known = decision.context, decision.known
        seen = np.zeros(shape, bool) if known is None else ~np.isnan(known)
        deviation = np.sqrt(np.diagonal(belief.cov, axis1=-2, axis2=-1))
        at = np.full(trials, float(t)) if emission.at is None else emission.at
        each = emission.noisy, emission.context, belief.mean, deviation, seen
        found.append((at, *(np.broadcast_to(one, shape) for one in each)))
    return Track(*(np.stack(part, 1) for part in zip(*found, strict=True)))


class Stretch(NamedTuple):
    """One coordinate of one trial, in whichever units: (n,) each."""

    at: Array
    noisy: Array
    true: Array
    middle: Array  # of the belief
    low: Array
    high: Array  # its band
    shown: Bools


def stretch_figure(
    seen: Stretch,
    title: str = "",
    *,
    unit: str = "",
    time: str = "time",
    gap: float = np.inf,
    logs: bool = False,
) -> Figure:
    """Draw what was read and what is true above, and what the agent made of it below, on the same scale.

    Lines are broken where nothing was read for longer than `gap`.
    """
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 4.4), dpi=DPI, layout="constrained")
        above, below = chart.subplots(2, 1, sharex=True, sharey=True)
        whole = _broken(seen, gap)
        for axes in (above, below):
            axes.plot(whole.at, whole.true, color=BLACK, linewidth=0.8, label="true", zorder=3)
            axes.set_ylabel(unit)
        above.plot(whole.at, whole.noisy, color=ORANGE, linewidth=1.0, label="as read")
        band = whole.low, whole.high
        below.fill_between(whole.at, *band, color=BLUE, alpha=0.25, linewidth=0, label="95 % band")
        below.plot(whole.at, whole.middle, color=BLUE, linewidth=1.0, label="denoised")
        dots = seen.at[seen.shown], seen.true[seen.shown]
        below.plot(*dots, "o", color=RED, markersize=4.5, label="true value shown", zorder=4)
        if logs:
            _logarithmic(above)
        above.set_xlim(seen.at[0], seen.at[-1])
        for axes in (above, below):
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8, borderaxespad=0)
        below.set_xlabel(time)
        chart.suptitle(title, fontsize=8.5, x=0.01, ha="left", parse_math=False)
    return chart


def _broken(seen: Stretch, gap: float) -> Stretch:
    """Insert a NaN in the middle of every gap, where lines break."""
    after = np.flatnonzero(np.diff(seen.at) > gap) + 1
    at = np.insert(seen.at, after, (seen.at[after] + seen.at[after - 1]) / 2)
    lines = seen.noisy, seen.true, seen.middle, seen.low, seen.high
    noisy, true, middle, low, high = (np.insert(one, after, np.nan) for one in lines)
    return Stretch(at, noisy, true, middle, low, high, np.insert(seen.shown, after, False))


def _logarithmic(axes: Axes) -> None:
    """A scale of ratios, with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())


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


def share_figure(shares: Sequence[float], panels: Sequence[Panel], title: str = "", note: str = "") -> Figure:
    """Draw a panel for each quantity, over shares in increasing order; the share 0 stands apart."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(max(PAGE, PAGE / 2 * len(panels)), 3.2), dpi=DPI, layout="constrained")
        for axes, panel in zip(chart.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _panel(axes, shares, panel)
        chart.suptitle(title, fontsize=8.5, x=0.01, ha="left", parse_math=False)
        chart.supxlabel(note, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _panel(axes: Axes, shares: Sequence[float], panel: Panel) -> None:
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
    axes.set_xticks(places, [_in_words(share) for share in shares], rotation=60, fontsize=7)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_title(panel.name, fontsize=8.5, loc="left")
    axes.set_xlabel("true contexts shown")
    axes.legend(fontsize=8)


def _curve(axes: Axes, shares: Sequence[float], places: Sequence[float], panel: Panel, own: Look) -> None:
    """Draw the estimates with their intervals, joined, except that the share 0 is joined to nothing."""
    mean, half = np.array(panel.curve).T
    gap = [place for place, share in enumerate(shares) if share > 0][:1] if 0.0 in shares else []
    at, mean, half = (np.insert(np.asarray(one, float), gap, np.nan) for one in (places, mean, half))
    bars: dict[str, Any] = {"marker": own.mark, "markersize": 4.5, "capsize": 2.5, "label": panel.agent}
    for bar in axes.errorbar(at, mean, half, **bars, **own.line())[2]:
        bar.set(linestyle="-")


def _in_words(share: float) -> str:
    """A share in words."""
    return {0.0: "none", 1.0: "all"}.get(share, f"1 in {1 / share:g}" if share else "none")
