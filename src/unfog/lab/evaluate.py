"""`unfog.evaluate`: what would other policies have earned on this log? With its table and figures.

The summary, the table and the figures estimate nothing: every number is one of the datasets of
`unfog.evaluate` and, for the figure of sensors, of `unfog.sensor_worth`. Intervals are symmetric, so a
half-width is enough to give one.
"""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unfog import live
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.evaluate import DEFAULT_POLICIES, evaluate_policies
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.policies import Tick, silent
from unfog.evaluation.readers import Columns, read
from unfog.lab.labels import LOOKS
from unfog.lab.tables import NOTHING, columns, digits, fill, notes, plus_minus
from unfog.live.errors import StoreLockedError
from unfog.plotting import COLOURS, DASHES, PAGE, add_note, add_title, new_figure, title_panel
from unfog.simulation.plan import MOST_SEED
from unfog.validation import InputError, check_keywords, count

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPORT = (
    "or evaluate what its holder has: in Python the open store itself, else a file .ndjson with what"
    " store.export(name) gives, or `unfog live export` with the --url of a service"
)
LEGEND = (
    "value: what the policy earns in a round. gain: that less what was earned, paired round by round."
    " effective: as many rounds that were drawn by the policy itself would say as much. largest: the largest"
    " weight of a round. without: rounds in which it may take an arm that could not be drawn."
)

BLUE, BLACK, GREEN, PINK, SKY, RED = (COLOURS[i] for i in (0, 2, 3, 4, 5, 6))
RUNGS: dict[str, tuple[str, Any]] = {  # colour and dash
    "naive": (LOOKS["naive"].colour, LOOKS["naive"].dash),
    "denoised": (BLUE, DASHES[5]),
    "perfect": (PINK, DASHES[3]),
    "denoised, known": (SKY, DASHES[4]),
    "true": (GREEN, DASHES[10]),
}
NAME = 34  # letters of a line of a policy's name
ACROSS = 3  # panels beside each other


@check_keywords
def evaluate(
    log: Any,
    policies: Any = DEFAULT_POLICIES,
    *,
    estimators: str | Sequence[str] | None = None,
    intervals: str = "adaptive",
    level: float = 0.95,
    channel: Any = None,
    features: Any = "per_arm",
    actions: Any = None,
    seed: int = 0,
    columns: Columns | Mapping[str, Any] | str | PathLike[str] | None = None,
    problem: str | None = None,
    arms: Sequence[str] | None = None,
    coordinates: Sequence[str] | None = None,
    probability: float | None = None,
    tick: Tick = silent,
) -> "xr.Dataset":
    """Values of policies on a log of decisions, with intervals and what they rest on.

    `log`: a live store or problem, a path (.unfog, .ndjson, .json, .csv), a data frame, obp's feedback.
    `policies`: names (logger, uniform, always:ARM, fitted, fitted-noisy, agents of the catalogue), or a
    mapping from names to these, or to functions of noisy contexts (n, d), or to tables. A function or a table
    gives names of arms (n,), or probabilities (n, K); integers for arms only if `arms` gives their order.
    `estimators`: dr, snips, ips, clipped, switch, dm; replay for agents that learn.
    `intervals`: "adaptive" for loggers that may have learnt, "plain" for those that have not.
    `channel`: what is known of the noise, as `unfog.calibrate(...).channel` says it; without it, pairs in the
    log are used. `features` and `actions` are those of arms: an intercept and slopes for each, unless told.
    `columns`, `problem`, `arms`, `coordinates`, `probability`: how to read the log (evaluation/readers).

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> steps, sent = rng.normal(7000, 2000, 1000), rng.integers(0, 2, 1000)
    >>> log = {
    ...     "steps": steps + rng.normal(-800, 1200, 1000),  # what was read
    ...     "arm": np.where(sent, "send", "wait"),
    ...     "reward": sent * np.where(steps < 6500, 0.5, -0.4) + rng.normal(0, 1, 1000),
    ... }
    >>> found = unfog.evaluate(
    ...     log, ["always:send", "fitted"], columns={"context": ["steps"]}, probability=0.5
    ... )
    >>> found.value.sel(estimator="dr").round(2).values.tolist()  # mean reward of each policy
    [-0.02, 0.13]
    """
    decisions = read_log(
        log, columns=columns, problem=problem, arms=arms, coordinates=coordinates, probability=probability
    )
    context = make_context(decisions, channel, features, actions, seed, has_arm_order=arms is not None)
    return evaluate_policies(
        context, policies, estimators=estimators, intervals=intervals, level=level, tick=tick
    )


def read_log(log: Any, **options: Any) -> DecisionLog:
    """Read a log from anything `unfog.evaluate` accepts, including the file of a live store."""
    return read(log, opener=_open_store, **options)


@contextmanager
def _open_store(path: Path) -> Iterator[live.Store]:
    """Open an existing store; an empty file is refused, since opening it would turn it into a store.

    Nothing but SQLite may open the file, not even to read it: this process could lose its lock
    (live/sqlite_file.py).
    """
    if not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists():
        raise InputError("log", f"{path.name} is empty", "a live store, as unfog.live.open makes it")
    try:
        store = live.open(path)
    except StoreLockedError as error:
        raise StoreLockedError(f"{error}; {EXPORT}") from None
    with store:
        yield store


def make_context(
    log: DecisionLog,
    channel: Any,
    features: Any,
    actions: Any,
    seed: int,
    *,
    has_arm_order: bool = False,
) -> EvaluationContext:
    """The log with the channel, features and actions the caller gave, checked."""
    seed = count("seed", seed, 0, MOST_SEED)
    return EvaluationContext(log, channel, features, actions, seed, has_arm_order=has_arm_order)


def summary(result: "xr.Dataset") -> dict[str, Any]:
    """All numbers, for programs; null where a number is missing."""
    policy_fields = [str(name) for name, x in result.items() if x.dims == ("policy",)]
    estimator_fields = [str(name) for name, x in result.items() if x.dims == ("policy", "estimator")]
    policies = {}
    for policy in result["policy"].values:
        row = result.sel(policy=policy)
        estimates = {
            str(name): {
                field: plain(row[field].sel(estimator=name).values.tolist()) for field in estimator_fields
            }
            for name in result["estimator"].values
        }
        values = {field: plain(row[field].values.tolist()) for field in policy_fields}
        policies[str(policy)] = {**values, "estimators": estimates}
    return {**plain(result.attrs), "policies": policies}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: NaN and infinities become null."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(result: "xr.Dataset") -> str:
    """Values by the first estimator with what they rest on; the other estimators; what to know."""
    first, *others = [str(name) for name in result["estimator"].values]
    names = [str(name) for name in result["policy"].values]
    places = digits((result["high"] - result["low"]).values / 2)
    rows = [_row_cells(result.sel(policy=name), first, places) for name in names]
    titles = [f"value by {first}", "gain", "effective", "largest", "without"]
    parts = [_format_header(result, places), columns("policy", names, titles, rows)]
    if others:
        cells = [[_value_cell(result.sel(policy=name), other, places) for other in others] for name in names]
        parts.append(columns("policy", names, others, cells))
    footnotes = notes([*_replay_notes(result), *result.attrs["notes"]])
    return "\n\n".join([*parts, fill(LEGEND), footnotes])


def _format_header(result: "xr.Dataset", places: int) -> str:
    attrs = result.attrs
    size = f"{attrs['rounds']:,} rounds, {len(attrs['arms'])} arms"
    earned = f"{attrs['earned']:,.{places}f} earned a round"
    intervals = f"± is the {100 * attrs['level']:.4g} % interval, {attrs['intervals']}"
    return "\n".join([fill(f"{attrs['source']}: {size}, {earned}"), intervals])


def _value_cell(row: "xr.Dataset", estimator: str, places: int) -> str:
    cell = row.sel(estimator=estimator)
    return plus_minus(float(cell["value"]), float(cell["high"] - cell["low"]) / 2, places)


def _row_cells(row: "xr.Dataset", estimator: str, places: int) -> list[str]:
    """The cells of a policy's row."""
    cell, without = row.sel(estimator=estimator), float(row["unsupported"])
    return [
        _value_cell(row, estimator, places),
        plus_minus(float(cell["gain"]), float(cell["gain_high"] - cell["gain_low"]) / 2, places, "+"),
        f"{float(row['effective']):,.0f}",
        _format_weight(float(row["largest_weight"])),
        NOTHING if math.isnan(without) else f"{without:.1%}",
    ]


def _format_weight(largest: float) -> str:
    return f"{largest:.3g}" if largest < 1000 else f"{largest:,.0f}"


def _replay_notes(result: "xr.Dataset") -> list[str]:
    """The note on how many rounds replay rests on."""
    if "replay" not in result["estimator"].values:
        return []
    rounds = result["rounds"].sel(estimator="replay")
    counts = [f"{int(x):,} of {x['policy'].values!s}" for x in rounds if x > 0]
    return [f"replay rests on the rounds that count: {', '.join(counts)}."] if counts else []


def figure(result: "xr.Dataset", title: str | None = None) -> "Figure":
    """Values by the first estimator with intervals, and how many effective rounds they rest on."""
    from matplotlib.ticker import MaxNLocator

    attrs, names = result.attrs, [textwrap.fill(str(name), NAME) for name in result["policy"].values]
    lines = sum(name.count("\n") + 1 for name in names)
    with new_figure(PAGE, 1.5 + 0.26 * lines) as chart:
        value, rounds = chart.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        _draw_values(value, result)
        places = np.arange(len(names))
        rounds.barh(places, result["effective"].values, color=BLUE, alpha=0.5, height=0.55)
        rounds.axvline(attrs["rounds"], color="0.5", linewidth=0.8, linestyle=":")
        rounds.xaxis.set_major_locator(MaxNLocator(2))
        rounds.xaxis.set_major_formatter("{x:,.0f}")
        rounds.set(xlabel="effective rounds", xlim=(0, 1.02 * attrs["rounds"]))
        value.set_yticks(places, names, parse_math=False)
        value.set_ylim(len(names) - 0.5, -0.5)
        value.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, borderaxespad=0.2)
        heading = f"What policies would have earned: {attrs['source']}" if title is None else title
        add_title(chart, textwrap.fill(heading, 90))
        level = f"{100 * attrs['level']:.4g} % intervals, {attrs['intervals']}"
        add_note(chart, f"{attrs['rounds']:,} rounds; bars: {level}")
    return chart


def _draw_values(axes: "Axes", result: "xr.Dataset") -> None:
    """A dot and a bar for each policy; a line at what the logger earned."""
    name = str(result["estimator"].values[0])
    row = result.sel(estimator=name)
    mean = row["value"].values
    ends = np.stack([mean - row["low"].values, row["high"].values - mean])
    places = np.arange(len(mean))
    axes.axvline(result.attrs["earned"], color=BLACK, linewidth=1.0, linestyle=DASHES[1], label="earned")
    axes.errorbar(
        mean, places, xerr=ends, fmt="o", color=BLUE, markersize=4, capsize=2.5, label=f"value by {name}"
    )
    axes.set_xlabel("reward a round")
    axes.grid(axis="y", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def sensor(worth: "xr.Dataset", title: str | None = None) -> "Figure":
    """The value over the noise, measured and extrapolated, with the ladder: a panel for each sensor."""
    attrs, names = worth.attrs, [str(name) for name in worth["sensor"].values]
    across = min(len(names), ACROSS)
    down = -(-len(names) // across)
    with new_figure(PAGE, 1.0 + (2.0 if across > 1 else 2.4) * down) as chart:
        panels = chart.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, name in zip(panels, names, strict=False):
            _draw_levels(axes, worth.sel(sensor=name))
            _draw_ladder(axes, worth)
            panel_title = f"{name} {'sensors' if name == names[0] else 'alone'}"
            title_panel(axes, textwrap.fill(panel_title, 40))
            axes.set_xlabel("noise, as a multiple of today's", fontsize=7.5)
            axes.xaxis.set_tick_params(labelbottom=True)
        for axes in panels[len(names) :]:
            axes.remove()
        panels[0].set_ylabel("reward a round")
        chart.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        heading = f"What a better sensor would be worth: {attrs['source']}" if title is None else title
        add_title(chart, textwrap.fill(heading, 90))
        bars = f"{attrs['rounds']:,} rounds; bars: {100 * attrs['interval']:.4g} % intervals"
        add_note(chart, f"{bars}; points share their rounds, so that differences are surer")
    return chart


def _draw_levels(axes: "Axes", curve: "xr.Dataset") -> None:
    """The measured values from 1 on, and the curve's extrapolation from there down to no noise."""
    more, value = 1 + curve["level"].values, curve["value"].values
    ends = np.stack([value - curve["value_low"].values, curve["value_high"].values - value])
    axes.errorbar(more, value, ends, fmt="o-", color=BLACK, markersize=3.5, capsize=2.5, label="measured")
    used_curve = curve.sel(curve=curve["used"].item())
    less = np.append(1 + curve["less"].values, more[0])
    low, mean, high = (
        np.append(used_curve[f"expected{end}"].values, curve[f"value{end}"].values[0])
        for end in ("_low", "", "_high")
    )
    axes.plot(less, mean, color=RED, linestyle=DASHES[1], linewidth=1.4, label="extrapolated")
    axes.fill_between(less, low, high, color=RED, alpha=0.12, linewidth=0)


def _draw_ladder(axes: "Axes", worth: "xr.Dataset") -> None:
    """The ladder, as horizontal lines across the panel."""
    for rung in map(str, worth["rung"].values):
        level, (colour, dash) = float(worth["ladder"].sel(rung=rung)), RUNGS[rung]
        axes.axhline(level, color=colour, linestyle=dash, linewidth=1.0, label=rung)
