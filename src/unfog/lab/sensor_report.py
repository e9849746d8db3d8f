"""What `unfog evaluate --sensor` says of sensors, for programs and for people.

Nothing is estimated here: every number is one of the dataset of `unfog.sensor_worth`.
"""

from typing import Any

import xarray as xr

from unfog.lab.evaluate_report import plain
from unfog.lab.terminal import columns, digits, notes, plus_minus

RUNGS = {
    "naive": "naive: readings taken for the truth",
    "denoised": "denoised",
    "perfect": "perfect sensor, extrapolated",
    "denoised, known": "denoised, where the truth is known",
    "true": "true contexts, where known",
}
SHOWN = ("value", "worth")  # each with its own number of digits
LESS = {-0.5: "half the variance", -1.0: "no noise"}


def summary(worth: xr.Dataset) -> dict[str, Any]:
    """All numbers, for programs; lists are over `level` and `less`."""
    curves = [str(one) for one in worth["curve"].values]
    sensors = {}
    for name in worth["sensor"].values:
        one = worth.sel(sensor=name)
        by_curve = {
            curve: _numbers(one.sel(curve=curve), *_fields("expected"), *_fields("worth")) for curve in curves
        }
        sensors[str(name)] = {
            **_numbers(one, "own_share", "used", *_fields("slope"), *_fields("value")),
            "curves": by_curve,
        }
    ladder = {
        str(rung): _numbers(worth.sel(rung=rung), *_fields("ladder"), "ladder_rounds")
        for rung in worth["rung"].values
    }
    axes = _numbers(worth, "level", "less")
    return {**plain(worth.attrs), **axes, "ladder": ladder, "sensors": sensors}


def _fields(name: str) -> tuple[str, ...]:
    return name, f"{name}_se", f"{name}_low", f"{name}_high"


def _numbers(one: xr.Dataset, *names: str) -> dict[str, Any]:
    return {name: plain(one[name].values.tolist()) for name in names}


def table(worth: xr.Dataset) -> str:
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


def _ladder(worth: xr.Dataset, places: int) -> str:
    rows = [worth.sel(rung=rung) for rung in worth["rung"].values]
    cells = [
        [
            plus_minus(float(one["ladder"]), float(one["ladder_high"] - one["ladder_low"]) / 2, places),
            f"{int(one['ladder_rounds']):,}",
        ]
        for one in rows
    ]
    return columns("ladder", [RUNGS[str(one["rung"].values)] for one in rows], ["value", "rounds"], cells)


def _cells(worth: xr.Dataset, name: str, along: str, at: list[Any], places: int) -> list[list[str]]:
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
