"""Which study a caller has, and the estimator for it.

    pairs       noisy and true contexts, side by side                     model/calibration.py
    replicates  the same context read twice or more, no truth             model/replicates.py
    subset      readings for all, the truth for some                      model/subset.py
    external    readings, and a noise from elsewhere                      model/external.py

What belongs to another design is refused by name, never left unused: a caller who gives it means something.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.inputs import InputError, Numbers, one_of
from unfog.maths.arrays import Array
from unfog.model.calibration import Calibration, calibrate
from unfog.model.design import DESIGNS, EXTERNAL, PAIRS, REPLICATES, SUBSET
from unfog.model.external import calibrate_external
from unfog.model.replicates import calibrate_replicates
from unfog.model.subset import calibrate_subset


class Asked(NamedTuple):
    """What a caller gives besides readings and truth."""

    groups: npt.ArrayLike | None = None
    times: npt.ArrayLike | None = None
    cycles: Sequence[float] | Array | None = None
    replicates: npt.ArrayLike | None = None
    noise_cov: Numbers | None = None
    noise_df: float | None = None
    noise_error: Numbers | None = None
    bias: Numbers | None = None
    bias_cov: Numbers | None = None


TAKES = {
    PAIRS: ("groups", "times", "cycles"),
    REPLICATES: ("replicates", "bias", "bias_cov"),
    SUBSET: (),
    EXTERNAL: ("noise_cov", "noise_df", "noise_error", "bias", "bias_cov"),
}
NEEDS = {
    PAIRS: "noisy and true contexts side by side",
    REPLICATES: "readings of the same context, twice or more, and no truth",
    SUBSET: "readings for all and, in true, the truth for some, NaN elsewhere",
    EXTERNAL: "readings and noise_cov, noise_df or noise_error, and bias_cov, and no truth",
}


def study(noisy: npt.ArrayLike, true: npt.ArrayLike | None, design: str | None, asked: Asked) -> Calibration:
    """What this study says of the channel."""
    name = _which(noisy, true, asked) if design is None else one_of("design", design, DESIGNS)
    _refuse(name, true, asked)
    given = {field: asked._asdict()[field] for field in TAKES[name]}
    if name == REPLICATES:
        return calibrate_replicates(noisy, **given)
    if name == EXTERNAL:
        return calibrate_external(noisy, **given)
    assert true is not None  # refused above
    if name == SUBSET:
        return calibrate_subset(noisy, true)
    cycles = () if asked.cycles is None else asked.cycles
    return calibrate(noisy, true, groups=asked.groups, times=asked.times, cycles=cycles)


def _which(noisy: npt.ArrayLike, true: npt.ArrayLike | None, asked: Asked) -> str:
    """The design that fits what is given."""
    if true is not None:
        return PAIRS
    if asked.noise_cov is not None:
        return EXTERNAL
    if asked.replicates is not None or _rank(noisy) == 3:
        return REPLICATES
    allowed = "; ".join(f"{name}: {NEEDS[name]}" for name in DESIGNS)
    raise InputError("true", "readings alone do not show their noise", allowed)


def _rank(noisy: npt.ArrayLike) -> int:
    try:
        return np.ndim(noisy)
    except ValueError:  # ragged: the estimator says so
        return 0


def _refuse(name: str, true: npt.ArrayLike | None, asked: Asked) -> None:
    """Refuse what this design does not take, and a truth that is missing or too much."""
    for field, value in asked._asdict().items():
        if value is not None and field not in TAKES[name]:
            takes = f"; it takes {', '.join(TAKES[name])}" if TAKES[name] else ""
            allowed = f"nothing for a study of design {name}, which is {NEEDS[name]}{takes}"
            raise InputError(field, "is given", allowed)
    if name in (PAIRS, SUBSET) and true is None:
        raise InputError("true", None, f"true contexts: design {name} is {NEEDS[name]}")
    if name in (REPLICATES, EXTERNAL) and true is not None:
        raise InputError("true", "is given", f"nothing: design {name} is {NEEDS[name]}")
