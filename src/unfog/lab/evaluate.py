"""`unfog.evaluate`: what would other policies have earned on this log? With its table and figures.

The summary, the table and the figures estimate nothing: every number is one of the datasets of
`unfog.evaluate` and, for the figure of sensors, of `unfog.sensor_worth`. Intervals are symmetric, so that a
half-width says all of them.
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
from unfog.evaluation.context import Scene
from unfog.evaluation.evaluate import DEFAULT_POLICIES, evaluated
from unfog.evaluation.log import Log
from unfog.evaluation.policies import Tick, silent
from unfog.evaluation.readers import Columns, read
from unfog.lab.labels import LOOKS
from unfog.lab.tables import NOTHING, columns, digits, fill, notes, plus_minus
from unfog.live.errors import Held
from unfog.plotting import COLOURS, DASHES, PAGE, add_note, add_title, new_figure, title_panel
from unfog.simulation.plan import MOST_SEED
from unfog.validation import InputError, count

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
    mapping from names to these, to functions of noisy contexts (n, d), or to tables of probabilities (n, K).
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
    whole = read_log(
        log, columns=columns, problem=problem, arms=arms, coordinates=coordinates, probability=probability
    )
    scene = set_scene(whole, channel, features, actions, seed)
    return evaluated(scene, policies, estimators=estimators, intervals=intervals, level=level, tick=tick)


def read_log(log: Any, **told: Any) -> Log:
    """The log, whatever it is in; the file of a live store, too."""
    return read(log, opener=_opened, **told)


@contextmanager
def _opened(path: Path) -> Iterator[live.Store]:
    """A store that is there: to open an empty file would make a store of it.

    Nothing but SQLite may open the file, not even to look: this process could lose its lock
    (live/sqlite_file.py).
    """
    if not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists():
        raise InputError("log", f"{path.name} is empty", "a live store, as unfog.live.open makes it")
    try:
        store = live.open(path)
    except Held as error:
        raise Held(f"{error}; {EXPORT}") from None
    with store:
        yield store


def set_scene(log: Log, channel: Any, features: Any, actions: Any, seed: int) -> Scene:
    """The log with what is told besides, checked."""
    return Scene(log, channel, features, actions, count("seed", seed, 0, MOST_SEED))


def summary(found: "xr.Dataset") -> dict[str, Any]:
    """All numbers, for programs; null stands for what there is none of."""
    per = [str(name) for name, one in found.items() if one.dims == ("policy",)]
    by = [str(name) for name, one in found.items() if one.dims == ("policy", "estimator")]
    policies = {}
    for policy in found["policy"].values:
        one = found.sel(policy=policy)
        estimates = {
            str(name): {field: plain(one[field].sel(estimator=name).values.tolist()) for field in by}
            for name in found["estimator"].values
        }
        rests = {field: plain(one[field].values.tolist()) for field in per}
        policies[str(policy)] = {**rests, "estimators": estimates}
    return {**plain(found.attrs), "policies": policies}


def plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(found: "xr.Dataset") -> str:
    """Values by the first estimator with what they rest on; the other estimators; what to know."""
    first, *others = [str(name) for name in found["estimator"].values]
    names = [str(name) for name in found["policy"].values]
    places = digits((found["high"] - found["low"]).values / 2)
    rests = [_rests(found.sel(policy=name), first, places) for name in names]
    titles = [f"value by {first}", "gain", "effective", "largest", "without"]
    parts = [_head(found, places), columns("policy", names, titles, rests)]
    if others:
        cells = [[_value(found.sel(policy=one), other, places) for other in others] for one in names]
        parts.append(columns("policy", names, others, cells))
    said = notes([*_replayed(found), *found.attrs["notes"]])
    return "\n\n".join([*parts, fill(LEGEND), said])


def _head(found: "xr.Dataset", places: int) -> str:
    about = found.attrs
    size = f"{about['rounds']:,} rounds, {len(about['arms'])} arms"
    earned = f"{about['earned']:,.{places}f} earned a round"
    intervals = f"± is the {100 * about['level']:.4g} % interval, {about['intervals']}"
    return "\n".join([fill(f"{about['source']}: {size}, {earned}"), intervals])


def _value(one: "xr.Dataset", estimator: str, places: int) -> str:
    at = one.sel(estimator=estimator)
    return plus_minus(float(at["value"]), float(at["high"] - at["low"]) / 2, places)


def _rests(one: "xr.Dataset", estimator: str, places: int) -> list[str]:
    """The row of a policy."""
    at, without = one.sel(estimator=estimator), float(one["unsupported"])
    return [
        _value(one, estimator, places),
        plus_minus(float(at["gain"]), float(at["gain_high"] - at["gain_low"]) / 2, places, "+"),
        f"{float(one['effective']):,.0f}",
        _weight(float(one["largest_weight"])),
        NOTHING if math.isnan(without) else f"{without:.1%}",
    ]


def _weight(largest: float) -> str:
    return f"{largest:.3g}" if largest < 1000 else f"{largest:,.0f}"


def _replayed(found: "xr.Dataset") -> list[str]:
    """How many rounds replay rests on."""
    if "replay" not in found["estimator"].values:
        return []
    rounds = found["rounds"].sel(estimator="replay")
    said = [f"{int(one):,} of {one['policy'].values!s}" for one in rounds if one > 0]
    return [f"replay rests on the rounds that count: {', '.join(said)}."] if said else []


def figure(found: "xr.Dataset", title: str | None = None) -> "Figure":
    """Values by the first estimator with intervals, and how many effective rounds they rest on."""
    from matplotlib.ticker import MaxNLocator

    about, names = found.attrs, [textwrap.fill(str(one), NAME) for one in found["policy"].values]
    lines = sum(name.count("\n") + 1 for name in names)
    with new_figure(PAGE, 1.5 + 0.26 * lines) as chart:
        value, rounds = chart.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        _values(value, found)
        places = np.arange(len(names))
        rounds.barh(places, found["effective"].values, color=BLUE, alpha=0.5, height=0.55)
        rounds.axvline(about["rounds"], color="0.5", linewidth=0.8, linestyle=":")
        rounds.xaxis.set_major_locator(MaxNLocator(2))
        rounds.xaxis.set_major_formatter("{x:,.0f}")
        rounds.set(xlabel="effective rounds", xlim=(0, 1.02 * about["rounds"]))
        value.set_yticks(places, names, parse_math=False)
        value.set_ylim(len(names) - 0.5, -0.5)
        value.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, borderaxespad=0.2)
        said = f"What policies would have earned: {about['source']}" if title is None else title
        add_title(chart, textwrap.fill(said, 90))
        level = f"{100 * about['level']:.4g} % intervals, {about['intervals']}"
        add_note(chart, f"{about['rounds']:,} rounds; bars: {level}")
    return chart


def _values(axes: "Axes", found: "xr.Dataset") -> None:
    """A dot and a bar for each policy; a line where the logger was."""
    name = str(found["estimator"].values[0])
    one = found.sel(estimator=name)
    mean = one["value"].values
    ends = np.stack([mean - one["low"].values, one["high"].values - mean])
    places = np.arange(len(mean))
    axes.axvline(found.attrs["earned"], color=BLACK, linewidth=1.0, linestyle=DASHES[1], label="earned")
    axes.errorbar(
        mean, places, xerr=ends, fmt="o", color=BLUE, markersize=4, capsize=2.5, label=f"value by {name}"
    )
    axes.set_xlabel("reward a round")
    axes.grid(axis="y", color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def sensor(worth: "xr.Dataset", title: str | None = None) -> "Figure":
    """The value over the noise, measured and extrapolated, with the ladder: a panel for each sensor."""
    about, names = worth.attrs, [str(one) for one in worth["sensor"].values]
    across = min(len(names), ACROSS)
    down = -(-len(names) // across)
    with new_figure(PAGE, 1.0 + (2.0 if across > 1 else 2.4) * down) as chart:
        panels = chart.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, name in zip(panels, names, strict=False):
            _levels(axes, worth.sel(sensor=name))
            _rungs(axes, worth)
            said = f"{name} {'sensors' if name == names[0] else 'alone'}"
            title_panel(axes, textwrap.fill(said, 40))
            axes.set_xlabel("noise, as a multiple of today's", fontsize=7.5)
            axes.xaxis.set_tick_params(labelbottom=True)
        for axes in panels[len(names) :]:
            axes.remove()
        panels[0].set_ylabel("reward a round")
        chart.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        said = f"What a better sensor would be worth: {about['source']}" if title is None else title
        add_title(chart, textwrap.fill(said, 90))
        bars = f"{about['rounds']:,} rounds; bars: {100 * about['interval']:.4g} % intervals"
        add_note(chart, f"{bars}; points share their rounds, so that differences are surer")
    return chart


def _levels(axes: "Axes", one: "xr.Dataset") -> None:
    """Measured from 1 on, and what the curve says from there down to no noise."""
    more, value = 1 + one["level"].values, one["value"].values
    ends = np.stack([value - one["value_low"].values, one["value_high"].values - value])
    axes.errorbar(more, value, ends, fmt="o-", color=BLACK, markersize=3.5, capsize=2.5, label="measured")
    chosen = one.sel(curve=one["used"].item())
    less = np.append(1 + one["less"].values, more[0])
    low, mean, high = (
        np.append(chosen[f"expected{end}"].values, one[f"value{end}"].values[0])
        for end in ("_low", "", "_high")
    )
    axes.plot(less, mean, color=RED, linestyle=DASHES[1], linewidth=1.4, label="extrapolated")
    axes.fill_between(less, low, high, color=RED, alpha=0.12, linewidth=0)


def _rungs(axes: "Axes", worth: "xr.Dataset") -> None:
    """The ladder as levels across the panel."""
    for rung in map(str, worth["rung"].values):
        level, (colour, dash) = float(worth["ladder"].sel(rung=rung)), RUNGS[rung]
        axes.axhline(level, color=colour, linestyle=dash, linewidth=1.0, label=rung)
