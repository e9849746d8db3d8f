"""The published ways to choose a dose, which learn nothing: one dose for all, and the IWPC's two algorithms.

The square root of the weekly dose is a sum over what is known of a patient (IWPC, *Estimation of the Warfarin
Dose with Clinical and Pharmacogenetic Data*, supplementary appendix): `CLINICAL` without genotypes and
`PHARMACOGENETIC` with them. Both were fitted to four fifths of the patients recorded here. So they are no
rivals but a mark to reach: what a line can do that was fitted to the right doses of thousands of patients.

The algorithms have terms for an unknown genotype and an unknown race. Ages, heights and weights they must be
told: where these are missing, the averages of the record stand in for them. An expected number of alleles
need not be whole. Between whole numbers the terms of a gene are interpolated, so that the square root of the
dose is a mean over the genotypes that are possible. A patient has two alleles: pairs such as two *2 and one
*3 are met in interpolating alone, and get the sum of their terms.
"""

from typing import NamedTuple

import numpy as np

from unfog.lab.warfarin.record import COORDINATES
from unfog.maths.arrays import Array

FIXED = 35.0  # mg a week: what the paper compares with
AVERAGE = {"age": 6.0, "height": 168.0, "weight": 78.0}
MOST = 2  # alleles


class Algorithm(NamedTuple):
    """Coefficients of the square root of the weekly dose in mg."""

    constant: float
    plain: dict[str, float]  # of numbers and indicators, per unit
    unknown_race: float
    vkorc1: tuple[float, float, float] = (0.0,) * 3  # of 0, 1 and 2 alleles A
    unknown_vkorc1: float = 0.0
    cyp2c9: tuple[tuple[float, float, float], ...] = ((0.0,) * 3,) * 3  # [alleles *2][alleles *3]
    unknown_cyp2c9: float = 0.0


CLINICAL = Algorithm(
    constant=4.0376,
    plain={
        "age": -0.2546,
        "height": 0.0118,
        "weight": 0.0134,
        "asian": -0.6752,
        "black": 0.4060,
        "inducer": 1.2799,
        "amiodarone": -0.5695,
    },
    unknown_race=0.0443,
)
PHARMACOGENETIC = Algorithm(
    constant=5.6044,
    plain={
        "age": -0.2614,
        "height": 0.0087,
        "weight": 0.0128,
        "asian": -0.1092,
        "black": -0.2760,
        "inducer": 1.1816,
        "amiodarone": -0.5503,
    },
    unknown_race=-0.1032,
    vkorc1=(0.0, -0.8677, -1.6974),
    unknown_vkorc1=-0.4854,
    cyp2c9=(
        (0.0, -0.9357, -2.3312),
        (-0.5211, -1.9206, -0.5211 - 2.3312),
        (-1.0616, -1.0616 - 0.9357, -1.0616 - 2.3312),
    ),
    unknown_cyp2c9=-0.2188,
)


def weekly_dose(algorithm: Algorithm, contexts: Array) -> Array:
    """What an algorithm says, in mg a week, for contexts (..., d) with their gaps."""
    column = {name: contexts[..., place] for place, name in enumerate(COORDINATES)}
    root = np.full(contexts.shape[:-1], algorithm.constant)
    for name, weight in algorithm.plain.items():
        root += weight * np.nan_to_num(column[name], nan=AVERAGE.get(name, 0.0))
    root += np.where(np.isnan(column["asian"]), algorithm.unknown_race, 0.0)
    first = _shares(column["vkorc1"]) @ np.array(algorithm.vkorc1)
    root += np.where(np.isnan(column["vkorc1"]), algorithm.unknown_vkorc1, first)
    two, three = (_shares(column[name]) for name in ("cyp2c9_2", "cyp2c9_3"))
    second = np.vecdot(two @ np.array(algorithm.cyp2c9), three)
    unknown = np.isnan(column["cyp2c9_2"] + column["cyp2c9_3"])
    root += np.where(unknown, algorithm.unknown_cyp2c9, second)
    found: Array = root**2
    return found


def _shares(alleles: Array) -> Array:
    """How far a number (...,) is 0, 1 and 2 alleles, (..., 3): all of it where it is whole."""
    within = np.clip(np.nan_to_num(alleles), 0, MOST)
    return np.maximum(0.0, 1 - np.abs(within[..., None] - np.arange(MOST + 1)))
