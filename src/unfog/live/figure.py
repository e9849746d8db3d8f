"""Whether a live problem works, at a glance: the diagnostics of live/inspection.py in six panels."""

from typing import TYPE_CHECKING, Any

import numpy as np

from unfog.maths.arrays import Array
from unfog.plotting import COLOURS, add_title, new_figure, title_panel

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, GREY, RED = COLOURS[0], COLOURS[7], COLOURS[6]
MOST_NAMES = 8  # names that fit below a panel
MOST_LETTERS = 36  # letters that fit below a panel without rotation
LONGEST = 12  # letters of a name below a panel
LONGEST_UNIT = 34  # letters of the unit in a title
TITLE = 9  # points


def figure(data: "xr.Dataset", title: str = "") -> "Figure":
    """Draw bias, readings, coverage, arms, rewards, and pending decisions."""
    with new_figure(9.6, 5.4, dpi=None) as chart:
        panels = _draw_bias, _draw_readings, _draw_coverage, _draw_shares, _draw_rewards, _draw_pending
        for draw, axes in zip(panels, chart.subplots(2, 3).flat, strict=True):
            draw(axes, data)
        if title:
            add_title(chart, title, 10)
        if data.attrs["alarm"]:
            alarms = "\n".join(data.attrs["alarm"][:MOST_NAMES])
            chart.supxlabel(alarms, fontsize=8, color=RED, x=0.01, ha="left", parse_math=False)
    return chart


def _draw_bias(axes: "Axes", data: "xr.Dataset") -> None:
    """Draw the bias in standard deviations of contexts, since steps and hours do not fit one axis."""
    unit = f": {_shorten(data.attrs['bias_label'], LONGEST_UNIT)}" if data.attrs["bias_label"] else ""
    title_panel(axes, f"bias{unit}", TITLE)
    if _draw_if_empty(axes, data.bias.values, "no bias is learnt"):
        return
    is_one_unit = bool(np.isnan(data.bias_units_sd.values).all())
    sd, scale = (data.bias_sd if is_one_unit else data.bias_units_sd).values, data.context_sd.values
    axes.axhline(0, color=GREY, linewidth=0.8)
    _draw_dots(axes, data.bias.values / scale, 2 * sd / scale, data.coordinate.values)
    axes.set_ylabel("deviations of true contexts", fontsize=8)
    bars = f"as believed; bars: two deviations{'' if is_one_unit else ' between units'}"
    axes.text(0.98, 0.97, bars, transform=axes.transAxes, fontsize=7, ha="right", va="top")
    axes.margins(y=0.15)


def _draw_readings(axes: "Axes", data: "xr.Dataset") -> None:
    title_panel(axes, "spread of readings against the channel's", TITLE)
    if _draw_if_empty(axes, data.z_mean_square.values, "no reading is expected"):
        return
    alarmed = (data.e_value.values >= data.attrs["alarm_at"]) & (data.attrs["alarmed"] > 0)
    axes.axhline(1, color=GREY, linewidth=0.8)
    overall, recent = np.sqrt(data.z_mean_square.values), np.sqrt(data.z_mean_square_lately.values)
    positions = np.arange(len(overall))
    for colour, where in ((BLUE, ~alarmed), (RED, alarmed)):
        axes.plot(positions[where], overall[where], "o", color=colour, markersize=5)
        axes.plot(positions[where], recent[where], "o", color=colour, markersize=5, markerfacecolor="white")
    axes.set_ylim(0, max(2.0, 1.1 * float(np.nanmax([overall, recent]))))
    axes.set_ylabel("ratio of deviations", fontsize=8)
    axes.text(0.98, 0.97, "open: of late", transform=axes.transAxes, fontsize=7, ha="right", va="top")
    _label_ticks(axes, data.coordinate.values)


def _draw_coverage(axes: "Axes", data: "xr.Dataset") -> None:
    """Draw the coverage of reward intervals; for rewards of 0 or 1 a reliability diagram instead."""
    count = data.in_bin.values
    binary = count.sum() > 0
    title_panel(
        axes, "rewards of 1: predicted and observed" if binary else "rewards in their intervals", TITLE
    )
    x, y = (
        (data.predicted.values, data.observed.values) if binary else (data.level.values, data.coverage.values)
    )
    if _draw_if_empty(axes, y, "no reward yet"):
        return
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    axes.scatter(x, y, s=8 + 60 * count / count.sum() if binary else 25, color=BLUE, zorder=3)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.set_xlabel("predicted probability" if binary else "level", fontsize=8)
    axes.set_ylabel("share", fontsize=8)


def _draw_shares(axes: "Axes", data: "xr.Dataset") -> None:
    title_panel(axes, f"arms of {data.attrs['decisions']:,} decisions", TITLE)
    if _draw_if_empty(axes, data.share.values, "no decision yet"):
        return
    axes.bar(np.arange(data.sizes["arm"]), data.share.values, color=BLUE, width=0.7)
    axes.set_ylabel("share", fontsize=8)
    _label_ticks(axes, data.arm.values)


def _draw_rewards(axes: "Axes", data: "xr.Dataset") -> None:
    title_panel(axes, "mean reward, with two standard errors", TITLE)
    if _draw_if_empty(axes, data.reward_mean.values, "no reward yet"):
        return
    _draw_dots(axes, data.reward_mean.values, 2 * data.reward_error.values, data.arm.values)


def _draw_pending(axes: "Axes", data: "xr.Dataset") -> None:
    rate, count = data.attrs["join_rate"], data.attrs["pending"]
    in_time = "" if np.isnan(rate) else f"; {100 * rate:.0f} % came in time"
    title_panel(axes, f"rewards: {count:,} to come{in_time}", TITLE)
    axes.bar(np.arange(data.sizes["age"]), data.waiting.values, color=BLUE, width=0.7)
    axes.set_ylim(0, max(1.0, 1.1 * float(data.waiting.values.max())))
    axes.locator_params(axis="y", integer=True)
    axes.set_ylabel("decisions", fontsize=8)
    _label_ticks(axes, [age if age == "longer" else f"< {age}" for age in data.age.values])


def _draw_if_empty(axes: "Axes", values: Array, text: str) -> bool:
    """Whether there is nothing to draw; if so, write this text instead."""
    if not np.isnan(values).all():
        return False
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=GREY)
    axes.set_axis_off()
    return True


def _draw_dots(axes: "Axes", values: Array, errors: Array, names: Any) -> None:
    style: dict[str, Any] = {"fmt": "o", "color": BLUE, "markersize": 4, "capsize": 2.5, "linewidth": 1.2}
    axes.errorbar(np.arange(len(values)), values, np.nan_to_num(errors), **style)
    _label_ticks(axes, names)


def _shorten(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _label_ticks(axes: "Axes", names: Any) -> None:
    """Write names below the axis, as many as fit: every so many of them, and long ones shortened."""
    step = -(-len(names) // MOST_NAMES)
    short = [_shorten(str(name), LONGEST) for name in names]
    is_wide = max(map(len, short)) * len(short[::step]) > MOST_LETTERS
    rotation: dict[str, Any] = {"rotation": 30, "ha": "right"} if is_wide else {}
    axes.set_xticks(np.arange(len(short))[::step], short[::step], fontsize=8, parse_math=False, **rotation)
    axes.set_xlim(-0.6, len(short) - 0.4)
