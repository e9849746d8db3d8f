"""Switch: doubly robust where weights are small, the model alone where they are large (Y.-X. Wang, A. Agarwal
and M. Dudik, *Optimal and Adaptive Off-policy Evaluation in Contextual Bandits*).
"""

from dataclasses import dataclass

import numpy as np

from unfog.evaluation.case import Case, Scores
from unfog.evaluation.estimators.threshold import chosen
from unfog.maths.arrays import Array


@dataclass(frozen=True)
class Switch:
    """Its setting: from which weight on the model is trusted; None: where the squared error is least."""

    at: float | None = None
    name = "switch"
    note = "doubly robust up to a weight, the model beyond it: less variance, and some of the model's bias"

    def scores(self, case: Case) -> Scores:
        """Without the correction where w > tau."""

        def kept(threshold: float) -> Array:
            return np.where(case.weight <= threshold, case.weight, 0.0)

        def cut(threshold: float) -> Array:
            return case.baseline + kept(threshold) * case.surprise

        at = chosen(case.weight, cut) if self.at is None else self.at
        wobble = case.predicted.wobble(case.policy, kept(at))
        return Scores(cut(at), wobble=wobble, note=f"the model alone where weights are above {at:.3g}")
