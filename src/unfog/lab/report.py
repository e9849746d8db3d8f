"""What a run says in numbers: means over trials with standard errors, paired differences, and tails."""

import itertools
import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from unfog.lab import until_said
from unfog.maths.arrays import Array, Ints
from unfog.simulate.grid import quarters
from unfog.theory import tails as spread
from unfog.theory.regret import BAYES, PLAIN, REALISED, SPLIT, estimate

MEASURED = (REALISED, BAYES)  # regret by another yardstick
PARTS = (*SPLIT, *PLAIN[1:])
TITLES = {
    REALISED: "realised",
    BAYES: "bayes",
    "regret_true_context": "true-context",
    "regret_plug_in": "plug-in",
    "linear_share": "linear",
}
REFERENCE = "oracle"  # differences are shown against it where it played
SPREAD = {**dict.fromkeys(spread.QUANTILES, 1), "linear_share": 2}  # with so many digits
LEGEND = "mean cumulative regret at the last round ± 95 % half-width; differences are paired"
SPREADS = (
    "q50, q99: quantiles over trials; linear: the share of trials whose regret in the last\n"
    f"quarter of the rounds is at least {spread.LINEAR} of that in the quarter before"
)


class Curve(NamedTuple):
    """An agent's mean cumulative regret and the half-width of its 95 % interval."""

    label: str
    rounds: Ints
    mean: Array
    half_width: Array


def summary(data: xr.Dataset, seconds: float | None = None) -> dict[str, Any]:
    """Final round, means over trials; every two agents compared on the same trials."""
    final = data.isel(round=-1)
    names = [str(name) for name in data["agent"].values]
    return {
        "experiment": data.attrs["experiment"],
        **({"note": data.attrs["note"]} if "note" in data.attrs else {}),
        "rounds": int(data["round"].values[-1]),
        "trials": int(data.sizes["trial"]),
        **until_said.facts(data.attrs),
        "seed": json.loads(data.attrs["spec"])["run"]["seed"],
        "seconds": None if seconds is None else round(seconds, 3),
        "agents": {name: _one(data.sel(agent=name)) for name in names},
        "pairs": {f"{a} - {b}": _difference(final, a, b) for a, b in itertools.combinations(names, 2)},
    }


def _one(data: xr.Dataset) -> dict[str, float | None]:
    final = data.isel(round=-1)
    mean, se = estimate(final["regret"].values)
    parts = {name: estimate(final[name].values).mean for name in PARTS if name in final}
    measured = dict[str, float | None]()
    for name in (name for name in MEASURED if name in final):
        found = estimate(final[name].values)
        measured |= {name: found.mean, f"{name}_se": _number(found.se)}
    tails = {**spread.quantiles(final["regret"].values), **_linear(data["regret"])}
    return {"regret": mean, "se": _number(se), **parts, **measured, **tails}


def _linear(regret: xr.DataArray) -> dict[str, float | None]:
    """The share of trials that grow linearly; null where a run is too short or, being old, lacks rounds."""
    ends = quarters(int(regret["round"].values[-1]))
    if ends is None or not np.isin(ends, regret["round"].values).all():
        return {"linear_share": None}
    return {"linear_share": spread.linear_share(*(regret.sel(round=end).values for end in ends))}


def _difference(final: xr.Dataset, a: str, b: str) -> dict[str, float | None]:
    mean, se = estimate(final["regret"].sel(agent=a).values - final["regret"].sel(agent=b).values)
    return {"mean": mean, "se": _number(se)}


def _number(value: float) -> float | None:
    """JSON has no NaN: the standard error of one trial is null."""
    return None if np.isnan(value) else value


def curves(data: xr.Dataset) -> list[Curve]:
    """Mean cumulative regret of every agent with its 95 % band; a single trial has no band."""
    width = _quantile(data.sizes["trial"])
    found = []
    for name in data["agent"].values:
        rounds, mean, se = _curve(data.sel(agent=name))
        found.append(Curve(str(name), rounds, mean, width * se))
    return found


def _curve(data: xr.Dataset) -> tuple[Ints, Array, Array]:
    """Rounds, means and standard errors: stored as such where trials are many, else from the trials."""
    if "regret_mean" in data:
        return data["curve"].values, data["regret_mean"].values, data["regret_se"].values
    values, trials = data["regret"].values, data.sizes["trial"]
    se = values.std(0, ddof=1) / np.sqrt(trials) if trials > 1 else np.zeros(values.shape[1])
    return data["round"].values, values.mean(0), se


def _quantile(trials: int) -> float:
    """How many standard errors make half a 95 % interval: Student's t, since trials may be few."""
    return float(stdtrit(trials - 1, 0.975)) if trials > 1 else 0.0


def table(data: xr.Dataset, seconds: float | None = None, *, parts: bool = False, tails: bool = False) -> str:
    """The summary for people: final regret, by every yardstick, with 95 % intervals; paired differences.

    With `parts` what regret is made of and two further benchmarks, with `tails` how trials are spread.
    """
    facts = summary(data, seconds)
    names, width = list(facts["agents"]), _quantile(facts["trials"])
    against = REFERENCE if REFERENCE in names else names[0]
    shown = [loss for loss in (*MEASURED, *(PARTS if parts else ())) if loss in data]
    spreads = list(SPREAD) if tails else []
    rows = [["agent", "regret", f"minus {against}", *(TITLES.get(x, x) for x in (*shown, *spreads))]]
    for name in names:
        row = facts["agents"][name]
        regret, gap = _pm(row["regret"], row["se"], width), _paired(facts["pairs"], name, against, width)
        losses = [_pm(row[loss], row.get(f"{loss}_se"), width) for loss in shown]
        rows.append([name, regret, gap, *losses, *(_spread(row[x], SPREAD[x]) for x in spreads)])
    took = "" if seconds is None else f", {seconds:.1f} s"
    note = f"{facts['trials']} trials, {facts['rounds']} rounds, seed {facts['seed']}{took}"
    said = [f"note: {facts['note']}"] if "note" in facts else []
    head = [f"{facts['experiment']}: {note}", *until_said.found(facts), *said]
    below = [*until_said.ratios(facts, width), LEGEND, *([SPREADS] * tails)]
    return "\n".join([*head, *align(rows), *below])


def _spread(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"


def _paired(pairs: dict[str, Any], name: str, against: str, width: float) -> str:
    if name == against:
        return "-"
    flip = f"{name} - {against}" not in pairs
    pair = pairs[f"{against} - {name}" if flip else f"{name} - {against}"]
    return _pm(-pair["mean"] if flip else pair["mean"], pair["se"], width, "+")


def _pm(mean: float, se: float | None, width: float, sign: str = "") -> str:
    spread = "" if se is None else f" ± {width * se:.1f}"
    return f"{mean:{sign}z.1f}{spread}"


def align(rows: list[list[str]]) -> list[str]:
    """Columns padded to the same width, the first to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
