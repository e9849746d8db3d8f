"""Made-up patients, and scenes in which they are dosed."""

from typing import Any

import numpy as np

from unfog.paper.warfarin import COORDINATES, Errors, Patients
from unfog.paper.warfarin_study import Cohort, draw_cohort

PLACE = {name: place for place, name in enumerate(COORDINATES)}


def made(n: int, seed: int = 3, gaps: float = 0.0) -> Patients:
    """Patients whose contexts hang together, on scales of their own; the dose is a function of them."""
    rng = np.random.default_rng(seed)
    asian = rng.random(n) < 0.3
    black = ~asian & (rng.random(n) < 0.15)
    male = rng.random(n) < 0.6
    height = 163 + 12 * male - 5 * asian + 6 * rng.standard_normal(n)
    weight = 75 + 1.1 * (height - 168) + 14 * rng.standard_normal(n)
    alleles = [rng.binomial(2, np.where(asian, 0.9, 0.4)), rng.binomial(1, 0.2, n), rng.binomial(1, 0.15, n)]
    age, taken = np.clip(np.round(6 + 1.4 * rng.standard_normal(n)), 1, 9), rng.random((2, n)) < 0.08
    contexts = np.stack([age, height, weight, male, asian, black, *alleles, *taken], 1).astype(float)
    root = 5.5 - 0.25 * age + 0.022 * weight - 0.85 * alleles[0] - 0.5 * alleles[1] - 0.9 * alleles[2]
    contexts[rng.random(contexts.shape) < gaps] = np.nan
    return Patients(contexts, (np.maximum(root, 1.5) + 0.9 * rng.standard_normal(n)) ** 2 + 2)


def played(people: Patients, errors: Errors, **fields: Any) -> Cohort:
    usual: dict[str, Any] = {"orders": 3, "apart": 300, "reward": "bucket", "seed": 5}
    return draw_cohort(people, errors, **usual | fields)
