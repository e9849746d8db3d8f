"""Values of policies as a dataset: by policy and estimator, with what they rest on."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from unfog.evaluation.checks import Fit
from unfog.evaluation.intervals import Value
from unfog.evaluation.scene import Scene
from unfog.maths.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from unfog.evaluation.evaluate import Found


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

    def grid(number: Callable[["Found", str], float]) -> tuple[list[str], Array]:
        return ["policy", "estimator"], np.array([[number(one, name) for name in names] for one in found])

    def per(number: Callable[["Found"], float]) -> tuple[list[str], Array]:
        return ["policy"], np.array([number(one) for one in found])

    def ends(
        values: Callable[["Found"], dict[str, Value]], prefix: str
    ) -> dict[str, tuple[list[str], Array]]:
        return {
            f"{prefix}low": grid(lambda one, name: values(one)[name].interval(level)[0]),
            f"{prefix}high": grid(lambda one, name: values(one)[name].interval(level)[1]),
        }

    variables = {
        "value": grid(lambda one, name: one.values[name].mean),
        "se": grid(lambda one, name: one.values[name].se),
        **ends(lambda one: one.values, ""),
        "gain": grid(lambda one, name: one.gains[name].mean),
        **ends(lambda one: one.gains, "gain_"),
        "plain_value": grid(lambda one, name: one.plain[name].mean),
        **ends(lambda one: one.plain, "plain_"),
        "rounds": grid(lambda one, name: one.rounds[name]),
        "effective": per(lambda one: one.effective),
        "largest_weight": per(lambda one: one.largest),
        "unsupported": per(lambda one: one.unsupported),
        "mean_weight": per(lambda one: one.weight.mean),
        "mean_weight_se": per(lambda one: one.weight.se),
    }
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
        "notes": list(notes),
    }
    return xr.Dataset(
        variables,
        coords={"policy": [one.policy.name for one in found], "estimator": list(names)},
        attrs=attributes,
    )
