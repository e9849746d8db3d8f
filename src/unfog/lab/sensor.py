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
from unfog.evaluation.context import ENOUGH, Scene
from unfog.evaluation.intervals import student_reach
from unfog.evaluation.log import Log
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
from unfog.lab.evaluate import plain, read_log, set_scene
from unfog.lab.tables import columns, digits, notes, plus_minus
from unfog.maths.arrays import Array
from unfog.validation import InputError

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
SHOWN = ("value", "worth")  # each with its own number of digits
LESS = {-0.5: "half the variance", -1.0: "no noise"}

Part = tuple[list[str], Array]


class _Numbers(NamedTuple):
    """An estimate with its error and interval, over the axes of a variable."""

    dims: list[str]
    means: Array
    errors: Array

    def variables(self, name: str, reach: float) -> dict[str, Part]:
        """Four of them."""
        ends = {"low": self.means - reach * self.errors, "high": self.means + reach * self.errors}
        found = {name: self.means, f"{name}_se": self.errors}
        found |= {f"{name}_{end}": value for end, value in ends.items()}
        return {one: (self.dims, value) for one, value in found.items()}


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
    whole = read_log(
        log, columns=columns, problem=problem, arms=arms, coordinates=coordinates, probability=probability
    )
    scene = set_scene(whole, channel, features, actions, seed)
    names = named(alone, whole.coordinates)
    if scene.channel is None:
        raise InputError("channel", f"none, and {int(whole.known().sum())} true contexts", _needed(whole))
    return _dataset(scene, [sensor(scene, which, tick) for which in ("", *names)], ladder(scene), level)


def named(alone: str | Sequence[str], coordinates: Sequence[str]) -> list[str]:
    """The sensors that are looked at alone, each once; refused where there is none of that name."""
    given = [one.strip() for one in alone.split(",") if one.strip()] if isinstance(alone, str) else [*alone]
    for name in given:
        if name != EACH:
            validation.one_of("alone", name, [EACH, *coordinates])
    return list(coordinates) if EACH in given else list(dict.fromkeys(given))


def _needed(log: Log) -> str:
    d = len(log.coordinates)
    return (
        "what is known of the noise, as found.channel of unfog.calibrate has it (--channel FILE.json); or"
        f" true contexts in the log, {ENOUGH * d * (d + 3)} at least"
    )


def _dataset(scene: Scene, found: list[Sensor], rungs: list[Rung], level: float) -> "xr.Dataset":
    import xarray as xr

    reach = student_reach(min(STRETCHES, scene.log.rounds) - 1, level)
    rungs = _with_perfect(rungs, found[0], scene.log.rounds)
    by_curve = ["sensor", "curve", "less"]
    used = [curve_of(one) for one in found]
    slopes = _numbers(["sensor"], [found], lambda all_: [one.slope for one in all_])
    variables: dict[str, Any] = {
        "used": (["sensor"], used),
        **_numbers(["sensor", "level"], found, lambda one: one.values).variables("value", reach),
        **_numbers(by_curve, found, lambda one: list(one.read.values())).variables("expected", reach),
        **_numbers(by_curve, found, lambda one: list(one.worth.values())).variables("worth", reach),
        **_numbers(["rung"], [rungs], lambda all_: [one.found for one in all_]).variables("ladder", reach),
        **slopes.variables("slope", reach),
        "ladder_rounds": (["rung"], np.array([one.rounds for one in rungs])),
        "own_share": (["sensor"], np.array([_own_share(scene, one.which) for one in found])),
    }
    coordinates = {
        "sensor": [one.which or ALL for one in found],
        "level": LEVELS,
        "curve": list(CURVES),
        "less": READ,
        "rung": [one.name for one in rungs],
    }
    return xr.Dataset(variables, coordinates, _attributes(scene, level, found))


def _numbers(dims: list[str], found: Sequence[Any], of: Callable[[Any], Any]) -> _Numbers:
    """Estimates of all that was found, as arrays."""
    both = np.array([of(one) for one in found])  # (..., 2): mean and error
    both = both[0] if len(dims) == both.ndim - 2 else both
    return _Numbers(dims, both[..., 0], both[..., 1])


def _with_perfect(rungs: list[Rung], together: Sensor, rounds: int) -> list[Rung]:
    """The ladder with what the curve says of a perfect sensor, before the truth if that is known."""
    perfect = together.read[curve_of(together)][list(READ).index(-1.0)]
    return [*rungs[:2], Rung("perfect", perfect, rounds), *rungs[2:]]


def curve_of(one: Sensor) -> str:
    """Which curve is believed: the model's, unless values fall with noise at another pace than it says."""
    return CURVE if abs(one.slope.mean - 1) <= FAR * one.slope.se else CAREFUL


def _said(one: Sensor) -> list[str]:
    """Why the curve of the model is not believed, or cannot be judged."""
    if curve_of(one) == CURVE:
        vague = (
            f"Careful, {one.which or ALL}: this log does not say whether values change with noise as the"
            f" channel and the model of rewards say (factor {one.slope.mean:.2f} ± {one.slope.se:.2f}). The"
            " answer rests on them."
        )
        return [vague] if one.slope.se > VAGUE else []
    wrong = (
        f"Careful, {one.which or ALL}: with more noise, values change {one.slope.mean:.2f} ±"
        f" {one.slope.se:.2f} times as fast as the channel and the model of rewards say. One of these is"
        f" wrong, so the answer is that of the {CAREFUL} curve. With a right channel that one says too"
        " little."
    )
    return [wrong]


def _own_share(scene: Scene, which: str) -> float:
    """Which share of a sensor's variance of noise is its own; of all together 1."""
    assert scene.channel is not None  # else nothing was found
    names, cov = scene.log.coordinates, scene.channel.noise_cov
    place = names.index(which) if which else 0
    return float(own_noise(scene.channel, which, names)[place, place] / cov[place, place])


def _attributes(scene: Scene, level: float, found: list[Sensor]) -> dict[str, Any]:
    log = scene.log
    assert scene.channel is not None  # else nothing was found
    careful = [said for one in found for said in _said(one)] + misfits(scene.channel, log)
    alone = [ALONE] if len(found) > 1 else []
    known = [KNOWN] if int(log.known().sum()) >= LEAST else []
    return {
        "source": log.source,
        "rounds": log.rounds,
        "coordinates": list(log.coordinates),
        "earned": float(log.reward.mean()),
        "interval": level,
        "seed": scene.seed,
        "channel": scene.about_channel,
        "notes": [*careful, *log.notes, EXTRAPOLATED, *alone, scene.about_channel, *known],
    }


def summary(worth: "xr.Dataset") -> dict[str, Any]:
    """All numbers, for programs; lists are over `level` and `less`."""
    curves = [str(one) for one in worth["curve"].values]
    sensors = {}
    for name in worth["sensor"].values:
        one = worth.sel(sensor=name)
        by_curve = {
            curve: _plain_numbers(one.sel(curve=curve), *_fields("expected"), *_fields("worth"))
            for curve in curves
        }
        sensors[str(name)] = {
            **_plain_numbers(one, "own_share", "used", *_fields("slope"), *_fields("value")),
            "curves": by_curve,
        }
    ladder = {
        str(rung): _plain_numbers(worth.sel(rung=rung), *_fields("ladder"), "ladder_rounds")
        for rung in worth["rung"].values
    }
    axes = _plain_numbers(worth, "level", "less")
    return {**plain(worth.attrs), **axes, "ladder": ladder, "sensors": sensors}


def _fields(name: str) -> tuple[str, ...]:
    return name, f"{name}_se", f"{name}_low", f"{name}_high"


def _plain_numbers(one: "xr.Dataset", *names: str) -> dict[str, Any]:
    return {name: plain(one[name].values.tolist()) for name in names}


def table(worth: "xr.Dataset") -> str:
    """The ladder, what less noise is worth, what other curves say, and the levels that were measured."""
    about, used = worth.attrs, worth["used"].values.tolist()
    places, finer = (digits((worth[f"{one}_high"] - worth[f"{one}_low"]).values / 2) for one in SHOWN)
    names = [str(name) for name in worth["sensor"].values]
    curves = [str(one) for one in worth["curve"].values]
    levels, less = worth["level"].values.tolist(), list(LESS)
    with_noise = [f"x {1 + level:g}" for level in levels]
    answer = _cells(worth.sel(curve=worth["used"]), "worth", "less", less, finer)
    answer = [[*row, curve] for row, curve in zip(answer, used, strict=True)]
    beside = _cells(worth.sel(less=-1.0), "worth", "curve", curves, finer)
    measured = list(zip(*_cells(worth, "value", "level", levels, places), strict=True))
    head = f"What would a better sensor have earned? ± is the {100 * about['interval']:.4g} % interval"
    parts = [
        head,
        _ladder(worth, places),
        columns("worth of", names, [*LESS.values(), "by curve"], answer),
        columns("no noise by", names, curves, beside),
        columns("value at variance", with_noise, names, measured),
    ]
    return "\n\n".join([*parts, notes(about["notes"])])


def _ladder(worth: "xr.Dataset", places: int) -> str:
    rows = [worth.sel(rung=rung) for rung in worth["rung"].values]
    cells = [
        [
            plus_minus(float(one["ladder"]), float(one["ladder_high"] - one["ladder_low"]) / 2, places),
            f"{int(one['ladder_rounds']):,}",
        ]
        for one in rows
    ]
    return columns("ladder", [RUNGS[str(one["rung"].values)] for one in rows], ["value", "rounds"], cells)


def _cells(worth: "xr.Dataset", name: str, along: str, at: list[Any], places: int) -> list[list[str]]:
    """A row for each sensor, a cell for each place along an axis."""
    sign = "+" if name == "worth" else ""
    half = (worth[f"{name}_high"] - worth[f"{name}_low"]) / 2
    return [
        [
            plus_minus(float(worth[name].sel(point)), float(half.sel(point)), places, sign)
            for point in ({"sensor": sensor, along: place} for place in at)
        ]
        for sensor in worth["sensor"].values
    ]
