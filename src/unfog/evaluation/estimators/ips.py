"""Inverse propensity: the mean of w r (D. G. Horvitz and D. J. Thompson, *A Generalization of
Sampling Without Replacement From a Finite Universe*).

Right for any policy of what the logger saw, noise or no noise, if every arm that the policy may take could
have been drawn. Its price is variance: a few rounds of large weight may decide.
"""

from dataclasses import dataclass

from unfog.evaluation.case import Case, Scores


@dataclass(frozen=True)
class Ips:
    """No settings."""

    name = "ips"
    note = "inverse propensity: rewards weighed by pi / p; no model, much variance"

    def scores(self, case: Case) -> Scores:
        """Of each round w r."""
        return Scores(case.weight * case.reward)
