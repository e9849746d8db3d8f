"""What `unfog evaluate` says of policies, for programs and for people.

Nothing is estimated here: every number is one of the dataset of `unfog.evaluate`. Intervals are symmetric, so
that a half-width says all of them.
"""

import math
import textwrap
from typing import Any

import xarray as xr

from unfog.lab.terminal import NOTHING, WIDTH, columns, digits, notes, plus_minus

LEGEND = (
    "value: what the policy earns in a round. gain: that less what was earned, paired round by round."
    " effective: as many rounds that were drawn by the policy itself would say as much. largest: the largest"
    " weight of a round. without: rounds in which it may take an arm that could not be drawn."
)


def summary(found: xr.Dataset) -> dict[str, Any]:
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


def table(found: xr.Dataset) -> str:
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
    return "\n\n".join([*parts, textwrap.fill(LEGEND, WIDTH), said])


def _head(found: xr.Dataset, places: int) -> str:
    about = found.attrs
    size = f"{about['rounds']:,} rounds, {len(about['arms'])} arms"
    earned = f"{about['earned']:,.{places}f} earned a round"
    intervals = f"± is the {100 * about['level']:.4g} % interval, {about['intervals']}"
    return "\n".join([textwrap.fill(f"{about['source']}: {size}, {earned}", WIDTH), intervals])


def _value(one: xr.Dataset, estimator: str, places: int) -> str:
    at = one.sel(estimator=estimator)
    return plus_minus(float(at["value"]), float(at["high"] - at["low"]) / 2, places)


def _rests(one: xr.Dataset, estimator: str, places: int) -> list[str]:
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


def _replayed(found: xr.Dataset) -> list[str]:
    """How many rounds replay rests on."""
    if "replay" not in found["estimator"].values:
        return []
    rounds = found["rounds"].sel(estimator="replay")
    said = [f"{int(one):,} of {one['policy'].values!s}" for one in rounds if one > 0]
    return [f"replay rests on the rounds that count: {', '.join(said)}."] if said else []
