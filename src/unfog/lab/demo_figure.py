"""The picture of the clinic of lab/demo.py: biases, rewards, arms, and what is waited for."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog.lab import demo
from unfog.lab.agent_look import Look, looks
from unfog.lab.demo import Played
from unfog.lab.demo_story import Z, chances, worth
from unfog.maths.arrays import Array
from unfog.plotting import COLOURS, DASHES, DPI, PAGE, STYLE


def figure(found: Played) -> Figure:
    """Four panels."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 5.4), dpi=DPI, layout="constrained")
        panels = chart.subplots(2, 2)
        for axes, draw in zip(panels.flat, (_bias, _rewards, _arms, _pending), strict=True):
            draw(axes, found)
        words = f"{demo.PATIENTS} simulated patients, {len(found.rows.sent):,} decisions, seed {found.seed}"
        chart.supxlabel(words, fontsize=7, color="0.35", x=0.99, ha="right")
    return chart


def _bias(axes: Axes, found: Played) -> None:
    """Day by day, with bands of 95 %."""
    days = np.arange(1, len(found.tracks) + 1)
    for colour, patient, track in zip(COLOURS, found.followed, found.tracks.swapaxes(0, 1), strict=False):
        mean, sd = track.T
        axes.plot(days, mean, color=colour, linewidth=1.4, label=demo.unit(patient))
        axes.fill_between(days, mean - Z * sd, mean + Z * sd, color=colour, alpha=0.15, linewidth=0)
        axes.axhline(found.bias[patient, 0], color=colour, linestyle=(0, (2, 2)), linewidth=1)
    _legend_above(axes)
    axes.set(xlabel="day", ylabel="steps")
    axes.set_title(
        "bias of four step counters:\nbelieved (95 %), and true (dashed)", fontsize=8.5, loc="left"
    )


def _rewards(axes: Axes, found: Played) -> None:
    """Running means of what decisions are worth in truth: of rewards as paid there would be noise alone."""
    ways = {name: worth(found.rows, send) for name, send in chances(found).items()}
    ways["the best there is"] = found.rows.worth.max(1)
    number = np.arange(1, len(found.rows.sent) + 1)
    for name, each in ways.items():
        mean = each.cumsum() / number
        later = slice(demo.A_DAY - 1, None)  # the first day's are too few to be a mean
        axes.plot(number[later] / demo.A_DAY, mean[later], label=name, **_way(name).line())
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    _legend_above(axes)
    axes.set(xlabel="day", ylabel="worth of a decision")
    axes.set_title("mean reward so far, in truth", fontsize=8.5, loc="left")


def _way(name: str) -> Look:
    """Of a way to decide: an agent's own look, or that of one of the two ways that are no agents."""
    dash = {"a coin": DASHES[2], "the best there is": DASHES[0]}.get(name)
    return (
        looks([name])[name] if dash is None else Look("0.45" if name == "a coin" else "0.0", dash, "o", 1.0)
    )


def _legend_above(axes: Axes) -> None:
    """In a row over the curves, which leave room for it."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))
    axes.legend(fontsize=7, loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.4)


def _arms(axes: Axes, found: Played) -> None:
    """How often a suggestion was sent, by how much it was worth more than waiting."""
    gain = found.rows.worth[:, 0] - found.rows.worth[:, 1]
    edges = np.quantile(gain, np.linspace(0, 1, 9))
    places = np.clip(np.searchsorted(edges, gain, side="right") - 1, 0, 7)
    middle = np.array([gain[places == i].mean() for i in range(8)])
    for name, send in chances(found).items():
        shares: Array = np.array([send[places == i].mean() for i in range(8)])
        look = _way(name)
        axes.plot(middle, shares, marker=look.mark, markersize=3.5, label=name, **look.line())
    axes.axvline(0, color="0.7", linewidth=0.8)
    axes.set(ylim=(0, 1), xlabel="what a suggestion is worth more than waiting", ylabel="share sent")
    axes.legend(fontsize=7, loc="upper left")
    sent = found.diagnostics.share.values
    title = ", ".join(f"{arm} {100 * x:.0f} %" for arm, x in zip(demo.ARMS, sent, strict=True))
    axes.set_title(f"arms: {title};\nsent where it pays?", fontsize=8.5, loc="left")


def _pending(axes: Axes, found: Played) -> None:
    """By age, at the end."""
    data = found.diagnostics
    ages = [str(age) if age == "longer" else f"< {age}" for age in data.age.values]
    bars = axes.bar(ages, data.waiting.values, color=COLOURS[0], width=0.6)
    axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_ylabel("decisions")
    axes.locator_params(axis="y", integer=True)
    came = 100 * data.attrs["join_rate"]
    axes.set_title(
        f"rewards awaited at the end, by age;\n{came:.0f} % came in time", fontsize=8.5, loc="left"
    )
