"""What a run says in numbers: means over trials with standard errors, and paired differences."""

import itertools
import json
from typing import Any

import xarray as xr

from unfog.theory.regret import estimate


def summary(data: xr.Dataset, seconds: float | None = None) -> dict[str, Any]:
    """Final round, means over trials; every two agents compared on the same trials."""
    final = data.isel(round=-1)
    spec = json.loads(data.attrs["spec"])
    names = [str(name) for name in data["agent"].values]
    return {
        "experiment": data.attrs["experiment"],
        "rounds": int(data["round"].values[-1]),
        "trials": int(data.sizes["trial"]),
        "seed": spec["run"]["seed"],
        "seconds": None if seconds is None else round(seconds, 3),
        "agents": {name: _one(final.sel(agent=name)) for name in names},
        "pairs": {f"{a} - {b}": _difference(final, a, b) for a, b in itertools.combinations(names, 2)},
    }


def _one(final: xr.Dataset) -> dict[str, float | None]:
    mean, se = estimate(final["regret"].values)
    others = [name for name in ("cb", "ee1", "ee2", "regret_true_context", "regret_plug_in") if name in final]
    means = {name: estimate(final[name].values).mean for name in others}
    return {"regret": mean, "se": _number(se), **means}


def _difference(final: xr.Dataset, a: str, b: str) -> dict[str, float | None]:
    gap = final["regret"].sel(agent=a).values - final["regret"].sel(agent=b).values
    mean, se = estimate(gap)
    return {"mean": mean, "se": _number(se)}


def _number(value: float) -> float | None:
    """JSON has no NaN: the standard error of one trial is null."""
    return None if value != value else value
