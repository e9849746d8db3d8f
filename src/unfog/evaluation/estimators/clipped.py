"""Clipped inverse propensity: the mean of min(w, tau) r (E. L. Ionides, *Truncated Importance Sampling*).

What weights lose above tau is a bias: downwards where rewards are positive.
"""

from dataclasses import dataclass

import numpy as np

from unfog.evaluation.case import Case, Scores
from unfog.evaluation.estimators.threshold import chosen
from unfog.maths.arrays import Array


@dataclass(frozen=True)
class Clipped:
    """Its setting: where weights are cut; None: where the squared error is estimated to be least."""

    at: float | None = None
    name = "clipped"
    note = "inverse propensity with weights cut at a threshold: less variance, and a bias"

    def scores(self, case: Case) -> Scores:
        """min(w, tau) r."""

        def cut(threshold: float) -> Array:
            return np.minimum(case.weight, threshold) * case.reward

        at = chosen(case.weight, cut) if self.at is None else self.at
        return Scores(cut(at), note=f"weights cut at {at:.3g}")
