"""Doubly robust: what the model says, and w times what it was off by (M. Dudik, J. Langford and L. Li,
*Doubly Robust Policy Evaluation and Learning*).

    num = sum over arms of pi q + w (r - q(a))

Right where probabilities are, however bad the model is; the better the model, the less variance. Where models
know the past alone, the first few rounds have none and do not count: they would vary with rewards' size.
"""

from dataclasses import dataclass

from unfog.evaluation.case import Case, Scores


@dataclass(frozen=True)
class DoublyRobust:
    """No settings."""

    name = "dr"
    note = "doubly robust: the model, corrected by weighed residuals; right as ips, less variance"

    def scores(self, case: Case) -> Scores:
        """The model and its weighed surprises."""
        score, counts = case.baseline + case.weight * case.surprise, case.predicted.counts
        return Scores(score) if counts.all() else Scores(counts * score, counts)
