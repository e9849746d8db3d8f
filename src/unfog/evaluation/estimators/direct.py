"""The direct method: what a model of rewards says that the policy earns.

Little variance, and all the bias of its model. Rewards hang on true contexts, so the model is fitted, and
asked, through the denoiser (evaluation/model.py): one that is fitted on true contexts and fed with noisy ones
says far too much, since a policy seems to know what it guesses.
"""

from dataclasses import dataclass

from unfog.evaluation.case import Case, Scores


@dataclass(frozen=True)
class Direct:
    """No settings."""

    name = "dm"
    note = "direct method: the model's own word; little variance, the model's bias, which no interval shows"

    def scores(self, case: Case) -> Scores:
        """Sum over arms of pi q; its error is that of the model, too."""
        return Scores(case.baseline, wobble=case.predicted.wobble(case.policy))
