"""Self-normalised inverse propensity: sum of w r over sum of w (A. Swaminathan and T. Joachims, *The
Self-Normalized Estimator for Counterfactual Learning*).

Weights that happen to be large or small together no longer matter, and a constant added to all rewards moves
the value by that constant. Its bias is of the order 1 / n.
"""

from dataclasses import dataclass

from unfog.evaluation.case import Case, Scores


@dataclass(frozen=True)
class Snips:
    """No settings."""

    name = "snips"
    note = "self-normalised: the weighted mean of rewards; less variance, a bias of order 1/n"

    def scores(self, case: Case) -> Scores:
        """Of each round w r, over w."""
        return Scores(case.weight * case.reward, case.weight)
