"""The picture of one sensor for a while: read, denoised with a band, true, and when the truth was shown."""

from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from unfog.maths.arrays import Array, Bools
from unfog.plotting import COLOURS, DPI, PAGE, STYLE

BLUE, ORANGE, BLACK, RED = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[6]


class Stretch(NamedTuple):
    """One coordinate of one trial, in whichever units: (n,) each."""

    at: Array
    noisy: Array
    true: Array
    middle: Array  # of the belief
    low: Array
    high: Array  # its band
    shown: Bools


def figure(
    seen: Stretch,
    title: str = "",
    *,
    unit: str = "",
    time: str = "time",
    gap: float = np.inf,
    logs: bool = False,
) -> Figure:
    """Above, what was read and what is true; below, what the agent made of it, on the same scale.

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
    """With what is not a number in the middle of every gap."""
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
