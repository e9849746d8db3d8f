"""Errors added to the record, and values taken from it: what a busier clinic would have written down.

The record stays the truth where it says something, so noisy = record + error:

    height, weight       as patients say them: too tall by 1 cm, too light by 1 kg on average, with a standard
                         deviation of 3 cm and 4 kg around that, all times `reported`
    vkorc1, cyp2c9_*     miscalled in the share `miscalled` of tests: one allele too many or too few
    lost                 in that share of patients, each of height, weight and the two genotypes is missing

People say they are taller than they are: by 0.9 cm (men) and 2.2 cm (women) in M. R. G. Peixoto, M. H. D.
Benicio and P. C. B. V. Jardim, *Validity of self-reported weight and height: the Goiania study, Brazil*. The
spreads are ours. The record's own second genotyping differs from the first in 9 of 313 patients for VKORC1
and in 17 of 473 for CYP2C9 (`record.repeated`): `miscalled` = 0.03 is what a test of that quality does.
"""

from dataclasses import dataclass

import numpy as np

from unfog.lab.warfarin.record import COORDINATES
from unfog.maths.arrays import Array, Bools
from unfog.validation import not_negative
from unfog.worlds.measurement import check_share

MEANS = {"height": 1.0, "weight": -1.0}
SPREADS = {"height": 3.0, "weight": 4.0}
GENOTYPES = ("vkorc1", "cyp2c9_2", "cyp2c9_3")
TESTS = (("height",), ("weight",), ("vkorc1",), ("cyp2c9_2", "cyp2c9_3"))  # missing together
MOST = 2.0  # alleles


@dataclass(frozen=True, kw_only=True)
class Errors:
    """None, unless said: then the noisy contexts are the record with its own gaps.

    >>> import numpy as np
    >>> from unfog.lab import warfarin
    >>> whole = np.ones((4, len(warfarin.COORDINATES)))
    >>> seen = warfarin.Errors(lost=0.5).noisy(whole, np.random.default_rng(0))
    >>> int(np.isnan(seen).sum()) > 0
    True
    """

    reported: float = 0.0
    miscalled: float = 0.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        """Check every field."""
        not_negative("reported", self.reported)
        check_share("miscalled", self.miscalled, 0.5)
        check_share("lost", self.lost, 0.99)

    def noisy(self, contexts: Array, source: np.random.Generator) -> Array:
        """The record (n, d) as it would have been seen; what is missing stays missing."""
        found = contexts.copy()
        for name in MEANS:
            drawn = MEANS[name] + SPREADS[name] * source.standard_normal(len(found))
            found[:, COORDINATES.index(name)] += self.reported * drawn
        for name in GENOTYPES:
            place, draws = COORDINATES.index(name), source.random((2, len(found)))
            found[:, place] = _called(found[:, place], draws[0] < self.miscalled, draws[1] < 0.5)
        for names in TESTS:
            gone = source.random(len(found)) < self.lost
            for name in names:
                found[gone, COORDINATES.index(name)] = np.nan
        return found


def _called(alleles: Array, wrong: Bools, more: Bools) -> Array:
    """One allele more or less where the call is wrong; from 0 there is no less, and from 2 no more."""
    step = np.where(alleles == 0, 1.0, np.where(alleles == MOST, -1.0, np.where(more, 1.0, -1.0)))
    return np.where(wrong, alleles + step, alleles)
