"""Which rows say how fast contexts and errors move: the pairs, or with them readings that have no truth.

Where readings without a truth are more than the pairs, both are used (`unfog.model.seldom`). Otherwise, and
with cycles, which that one does not know, the pairs alone are (`unfog.model.timing`).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.maths.arrays import Array
from unfog.model import tables
from unfog.model.seldom import Covs, Rows, seldom
from unfog.model.timing import Pairs, Timing, check_times, timing


class Study(NamedTuple):
    """What a caller gives: readings and true contexts, row by row, and labels of groups."""

    noisy: Array  # (n, d)
    true: Array  # (n, d)
    groups: npt.ArrayLike | None

    @property
    def alone(self) -> int:
        """How many whole readings have no whole truth beside them."""
        seen, known = (np.isfinite(part).all(axis=1) for part in self[:2])
        return int((seen & ~known).sum())


def timed(study: Study, times: npt.ArrayLike, periods: tuple[float, ...], covs: Covs, *, few: bool) -> Timing:
    """Constants of time from these rows; `few`: of all readings and not of the pairs alone."""
    used = np.asarray(np.isfinite(study.noisy if few else study.noisy + study.true).all(axis=1))
    noisy, true = study.noisy[used], study.true[used]
    when, labels = check_times(times, used), tables.labels(study.groups, used)
    if few:
        return seldom(Rows(noisy, true, when, labels), covs)
    fitted = timing(Pairs(true, noisy - true, when, labels), periods, covs.bias)
    if study.alone <= used.sum():
        return fitted
    note = f"{study.alone} noisy contexts without a true one are not used, since cycles are asked for"
    return fitted._replace(notes=(*fitted.notes, note))
