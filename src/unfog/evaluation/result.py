"""Values of policies as a dataset: by policy and estimator, with what they rest on."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from unfog.evaluation.checks import Fit
from unfog.evaluation.estimators import ESTIMATORS
from unfog.evaluation.intervals import Value
from unfog.evaluation.scene import Scene
from unfog.maths.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from unfog.evaluation.evaluate import Found


Part = tuple[list[str], Array]


def dataset(
    scene: Scene,
    found: "Sequence[Found]",
    names: Sequence[str],
    intervals: str,
    level: float,
    notes: Sequence[str],
    fits: Sequence[Fit],
) -> "xr.Dataset":
    """Everything that was found; `gain` is over what was earned, paired round by round."""
    import xarray as xr

    log = scene.log
    attributes = {
        "source": log.source,
        "rounds": log.rounds,
        "arms": list(log.arms),
        "coordinates": list(log.coordinates),
        "earned": float(log.reward.mean()),
        "intervals": intervals,
        "level": level,
        "seed": scene.seed,
        "channel": scene.about_channel,
        "fit": {one.check: one.p_value for one in fits},
        "estimators": {name: ESTIMATORS[name].note for name in names if name in ESTIMATORS},
        "notes": list(notes),
    }
    where = {"policy": [one.policy.name for one in found], "estimator": list(names)}
    return xr.Dataset({**_estimates(found, names, level), **_rests(found)}, where, attributes)


def _estimates(found: "Sequence[Found]", names: Sequence[str], level: float) -> dict[str, Part]:
    """By policy and estimator."""

    def grid(number: Callable[["Found", str], float]) -> Part:
        return ["policy", "estimator"], np.array([[number(one, name) for name in names] for one in found])

    def with_ends(prefix: str, name: str, values: Callable[["Found"], dict[str, Value]]) -> dict[str, Part]:
        return {
            name: grid(lambda one, name: values(one)[name].mean),
            f"{prefix}low": grid(lambda one, name: values(one)[name].interval(level)[0]),
            f"{prefix}high": grid(lambda one, name: values(one)[name].interval(level)[1]),
        }

    return {
        **with_ends("", "value", lambda one: one.values),
        "se": grid(lambda one, name: one.values[name].se),
        **with_ends("gain_", "gain", lambda one: one.gains),
        **with_ends("plain_", "plain_value", lambda one: one.plain),
        "rounds": grid(lambda one, name: one.rounds[name]),
    }


def _rests(found: "Sequence[Found]") -> dict[str, Part]:
    """By policy: what its estimates rest on."""
    numbers = {
        "effective": [one.effective for one in found],
        "largest_weight": [one.largest for one in found],
        "unsupported": [one.unsupported for one in found],
        "mean_weight": [one.weight.mean for one in found],
        "mean_weight_se": [one.weight.se for one in found],
    }
    return {name: (["policy"], np.array(values)) for name, values in numbers.items()}
