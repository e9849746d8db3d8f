"""`unfog.sensor_worth`: what would a better sensor have earned on this log? With its table.

Values with more noise than there is are measured, and extrapolated to less (evaluation/sensor.py; J. R. Cook
and L. A. Stefanski, *Simulation-Extrapolation Estimation in Parametric Measurement Error Models*). The
dataset holds the whole answer: the summary, the table and the figure (lab/evaluate.py) have nothing left to
compute.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.evaluation.checks import misfits
from unfog.evaluation.context import ENOUGH, EvaluationContext
from unfog.evaluation.intervals import student_reach
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.policies import Tick, silent
from unfog.evaluation.readers import Columns
from unfog.evaluation.sensor import (
    CURVES,
    DRAWS,
    LEAST,
    LEVELS,
    READ,
    STRETCHES,
    Rung,
    Sensor,
    ladder,
    own_noise,
    sensor,
)
from unfog.lab.evaluate import make_context, plain, read_log
from unfog.lab.tables import columns, digits, notes, plus_minus
from unfog.maths.arrays import Array
from unfog.validation import InputError, check_keywords

if TYPE_CHECKING:
    import xarray as xr

ALL, EACH = "all", "each"
CURVE, CAREFUL = CURVES[0], "quadratic"  # of the answer: that of the model, if it fits; else this one
FAR = 3.0  # standard errors of the slope from 1: chance alone gives one in 370
VAGUE = 0.5  # standard error of the slope from which on the log does not say whether the curve fits
STEPS = 1 + DRAWS * (len(LEVELS) - 1)  # of progress, for each sensor
EXTRAPOLATED = (
    "Values at level 0 and above are measured: noise is added to logged contexts, and a policy of these is a"
    " policy of the logged context. Below 0 nothing can be measured; a curve says what to expect. Its errors"
    " are those of the log, and do not know whether the curve is right: see what the other curves say."
)
ALONE = "A sensor alone: the part of its noise that the others do not share is taken away, and theirs stays."
KNOWN = "The rungs where the truth is known are of those rounds alone, which may differ from the others."

RUNGS = {
    "naive": "naive: readings taken for the truth",
    "denoised": "denoised",
    "perfect": "perfect sensor, extrapolated",
    "denoised, known": "denoised, where the truth is known",
    "true": "true contexts, where known",
}
PRINTED = ("value", "worth")  # each with its own number of digits
LESS = {-0.5: "half the variance", -1.0: "no noise"}

Part = tuple[list[str], Array]


class _Numbers(NamedTuple):
    """An estimate with its error and interval, over the axes of a variable."""

    dims: list[str]
    means: Array
    errors: Array

    def variables(self, name: str, reach: float) -> dict[str, Part]:
        """The mean, standard error and interval ends as variables of a dataset."""
        ends = {"low": self.means - reach * self.errors, "high": self.means + reach * self.errors}
        values = {name: self.means, f"{name}_se": self.errors}
        values |= {f"{name}_{end}": array for end, array in ends.items()}
        return {key: (self.dims, array) for key, array in values.items()}


@check_keywords
def sensor_worth(
    log: Any,
    *,
    alone: str | Sequence[str] = (),
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
    """What less noise would be worth in each decision: of all sensors together, and of those named `alone`.

    `alone` lists coordinates, or is "each". `worth` is over the sensor as it is, for `less` noise: -1 is none
    at all, -0.5 half the variance. `used` names the curve of the answer. `value` is measured with more noise,
    at `level` 0 (as it is) to 2 (three times the variance). `ladder` has readings taken for the truth,
    denoised ones, a perfect sensor, and the true context where it is known. All have standard errors (`_se`)
    and intervals (`_low`, `_high`). The other arguments are those of `unfog.evaluate`.

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> steps, sent = rng.normal(7000, 2000, 300), rng.integers(0, 2, 300)
    >>> log = {
    ...     "steps": steps + rng.normal(-800, 1200, 300),  # what was read
    ...     "arm": np.where(sent, "send", "wait"),
    ...     "reward": sent * np.where(steps < 6500, 0.5, -0.4) + rng.normal(0, 1, 300),
    ... }
    >>> channel = unfog.calibrate(log["steps"][:, None], steps[:, None]).channel
    >>> found = unfog.sensor_worth(log, columns={"context": ["steps"]}, probability=0.5, channel=channel)
    >>> best = found.sel(sensor="all", less=-1.0, curve=found.used.sel(sensor="all"))  # no noise at all
    >>> round(best["worth"].item(), 2)
    0.05
    """
    validation.share("level", level)
    decisions = read_log(
        log, columns=columns, problem=problem, arms=arms, coordinates=coordinates, probability=probability
    )
    context = make_context(decisions, channel, features, actions, seed)
    names = named(alone, decisions.coordinates)
    if context.channel is None:
        raise InputError(
            "channel", f"none, and {int(decisions.known().sum())} true contexts", _describe_needed(decisions)
        )
    return _build_dataset(
        context, [sensor(context, name, tick) for name in ("", *names)], ladder(context), level
    )


def named(alone: str | Sequence[str], coordinates: Sequence[str]) -> list[str]:
    """The sensors to evaluate alone, without repeats; an unknown name is refused."""
    requested = (
        [part.strip() for part in alone.split(",") if part.strip()] if isinstance(alone, str) else [*alone]
    )
    for name in requested:
        if name != EACH:
            validation.one_of("alone", name, [EACH, *coordinates])
    return list(coordinates) if EACH in requested else list(dict.fromkeys(requested))


def _describe_needed(log: DecisionLog) -> str:
    d = len(log.coordinates)
    return (
        "what is known of the noise, as found.channel of unfog.calibrate has it (--channel FILE.json); or"
        f" true contexts in the log, {ENOUGH * d * (d + 3)} at least"
    )


def _build_dataset(
    context: EvaluationContext, sensors: list[Sensor], rungs: list[Rung], level: float
) -> "xr.Dataset":
    import xarray as xr

    reach = student_reach(min(STRETCHES, context.log.rounds) - 1, level)
    rungs = _add_perfect(rungs, sensors[0], context.log.rounds)
    by_curve = ["sensor", "curve", "less"]
    curves_used = [curve_of(x) for x in sensors]
    slopes = _collect_numbers(["sensor"], [sensors], lambda all_x: [x.slope for x in all_x])
    variables: dict[str, Any] = {
        "used": (["sensor"], curves_used),
        **_collect_numbers(["sensor", "level"], sensors, lambda x: x.values).variables("value", reach),
        **_collect_numbers(by_curve, sensors, lambda x: list(x.read.values())).variables("expected", reach),
        **_collect_numbers(by_curve, sensors, lambda x: list(x.worth.values())).variables("worth", reach),
        **_collect_numbers(["rung"], [rungs], lambda all_x: [x.value for x in all_x]).variables(
            "ladder", reach
        ),
        **slopes.variables("slope", reach),
        "ladder_rounds": (["rung"], np.array([x.rounds for x in rungs])),
        "own_share": (["sensor"], np.array([_own_share(context, x.which) for x in sensors])),
    }
    coordinates = {
        "sensor": [x.which or ALL for x in sensors],
        "level": LEVELS,
        "curve": list(CURVES),
        "less": READ,
        "rung": [x.name for x in rungs],
    }
    return xr.Dataset(variables, coordinates, _build_attributes(context, level, sensors))


def _collect_numbers(dims: list[str], items: Sequence[Any], read: Callable[[Any], Any]) -> _Numbers:
    """The estimates that `read` takes from each item, as arrays."""
    estimates = np.array([read(item) for item in items])  # (..., 2): mean and error
    estimates = estimates[0] if len(dims) == estimates.ndim - 2 else estimates
    return _Numbers(dims, estimates[..., 0], estimates[..., 1])


def _add_perfect(rungs: list[Rung], joint: Sensor, rounds: int) -> list[Rung]:
    """The ladder with the value of a perfect sensor by its curve, before the true contexts if known."""
    perfect = joint.read[curve_of(joint)][list(READ).index(-1.0)]
    return [*rungs[:2], Rung("perfect", perfect, rounds), *rungs[2:]]


def curve_of(result: Sensor) -> str:
    """The curve to use: the model's, unless values fall with noise at a different rate than it predicts."""
    return CURVE if abs(result.slope.mean - 1) <= FAR * result.slope.se else CAREFUL


def _caution_lines(result: Sensor) -> list[str]:
    """A caution if the model's curve is not used, or cannot be judged."""
    slope = result.slope
    if curve_of(result) == CURVE:
        vague = (
            f"Careful, {result.which or ALL}: this log does not say whether values change with noise as the"
            f" channel and the model of rewards say (factor {slope.mean:.2f} ± {slope.se:.2f}). The"
            " answer rests on them."
        )
        return [vague] if slope.se > VAGUE else []
    wrong = (
        f"Careful, {result.which or ALL}: with more noise, values change {slope.mean:.2f} ±"
        f" {slope.se:.2f} times as fast as the channel and the model of rewards say. One of these is"
        f" wrong, so the answer is that of the {CAREFUL} curve. With a right channel that one says too"
        " little."
    )
    return [wrong]


def _own_share(context: EvaluationContext, name: str) -> float:
    """The share of a sensor's noise variance that is its own; 1 for all sensors together."""
    assert context.channel is not None  # `sensor_worth` refuses a log without a channel
    names, cov = context.log.coordinates, context.channel.noise_cov
    index = names.index(name) if name else 0
    return float(own_noise(context.channel, name, names)[index, index] / cov[index, index])


def _build_attributes(context: EvaluationContext, level: float, sensors: list[Sensor]) -> dict[str, Any]:
    log = context.log
    assert context.channel is not None  # `sensor_worth` refuses a log without a channel
    careful = [line for result in sensors for line in _caution_lines(result)] + misfits(context.channel, log)
    alone = [ALONE] if len(sensors) > 1 else []
    known = [KNOWN] if int(log.known().sum()) >= LEAST else []
    return {
        "source": log.source,
        "rounds": log.rounds,
        "coordinates": list(log.coordinates),
        "earned": float(log.reward.mean()),
        "interval": level,
        "seed": context.seed,
        "channel": context.about_channel,
        "notes": [*careful, *log.notes, EXTRAPOLATED, *alone, context.about_channel, *known],
    }


def summary(worth: "xr.Dataset") -> dict[str, Any]:
    """All numbers, for programs; lists are over `level` and `less`."""
    curves = [str(curve) for curve in worth["curve"].values]
    sensors = {}
    for name in worth["sensor"].values:
        row = worth.sel(sensor=name)
        by_curve = {
            curve: _plain_numbers(row.sel(curve=curve), *_field_names("expected"), *_field_names("worth"))
            for curve in curves
        }
        sensors[str(name)] = {
            **_plain_numbers(row, "own_share", "used", *_field_names("slope"), *_field_names("value")),
            "curves": by_curve,
        }
    ladder = {
        str(rung): _plain_numbers(worth.sel(rung=rung), *_field_names("ladder"), "ladder_rounds")
        for rung in worth["rung"].values
    }
    axes = _plain_numbers(worth, "level", "less")
    return {**plain(worth.attrs), **axes, "ladder": ladder, "sensors": sensors}


def _field_names(name: str) -> tuple[str, ...]:
    return name, f"{name}_se", f"{name}_low", f"{name}_high"


def _plain_numbers(row: "xr.Dataset", *names: str) -> dict[str, Any]:
    return {name: plain(row[name].values.tolist()) for name in names}


def table(worth: "xr.Dataset") -> str:
    """The ladder, what less noise is worth, what other curves say, and the levels that were measured."""
    attrs, used = worth.attrs, worth["used"].values.tolist()
    places, finer = (digits((worth[f"{name}_high"] - worth[f"{name}_low"]).values / 2) for name in PRINTED)
    names = [str(name) for name in worth["sensor"].values]
    curves = [str(curve) for curve in worth["curve"].values]
    levels, less = worth["level"].values.tolist(), list(LESS)
    with_noise = [f"x {1 + level:g}" for level in levels]
    answer = _format_cells(worth.sel(curve=worth["used"]), "worth", "less", less, finer)
    answer = [[*row, curve] for row, curve in zip(answer, used, strict=True)]
    by_curve = _format_cells(worth.sel(less=-1.0), "worth", "curve", curves, finer)
    measured = list(zip(*_format_cells(worth, "value", "level", levels, places), strict=True))
    head = f"What would a better sensor have earned? ± is the {100 * attrs['interval']:.4g} % interval"
    parts = [
        head,
        _ladder_table(worth, places),
        columns("worth of", names, [*LESS.values(), "by curve"], answer),
        columns("no noise by", names, curves, by_curve),
        columns("value at variance", with_noise, names, measured),
    ]
    return "\n\n".join([*parts, notes(attrs["notes"])])


def _ladder_table(worth: "xr.Dataset", places: int) -> str:
    rows = [worth.sel(rung=rung) for rung in worth["rung"].values]
    cells = [
        [
            plus_minus(float(row["ladder"]), float(row["ladder_high"] - row["ladder_low"]) / 2, places),
            f"{int(row['ladder_rounds']):,}",
        ]
        for row in rows
    ]
    return columns("ladder", [RUNGS[str(row["rung"].values)] for row in rows], ["value", "rounds"], cells)


def _format_cells(
    worth: "xr.Dataset", name: str, along: str, positions: list[Any], places: int
) -> list[list[str]]:
    """A row for each sensor, a cell for each position along an axis."""
    sign = "+" if name == "worth" else ""
    half = (worth[f"{name}_high"] - worth[f"{name}_low"]) / 2
    return [
        [
            plus_minus(float(worth[name].sel(point)), float(half.sel(point)), places, sign)
            for point in ({"sensor": sensor, along: position} for position in positions)
        ]
        for sensor in worth["sensor"].values
    ]
