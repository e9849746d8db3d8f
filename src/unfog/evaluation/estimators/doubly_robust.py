"""Doubly robust: what the model says, and w times what it was off by (M. Dudik, J. Langford and L. Li,
*Doubly Robust Policy Evaluation and Learning*).

    num = sum over arms of pi q + w (r - q(a))

Right where probabilities are, however bad the model is; the better the model, the less variance. Rounds of
which no model can speak, since none came before them, do not count: without one they would vary with the size
of rewards, and a few of them would decide.
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
        score, told = case.baseline + case.weight * case.surprise, case.predicted.fitted
        return Scores(score) if told.all() or not told.any() else Scores(told * score, told)
