"""What learners have in common that take either kind of rewards: Gaussian ones, or 0 and 1.

A row of the catalogue has a learner for each kind (`Agent.learner`, `Agent.binary`). Most rivals have one
rule for both, which a setting tells apart.
"""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.parts import Learner


@dataclass(frozen=True, kw_only=True)
class EitherKind(Learner):
    """A learner but for what it learns; its setting `zero_one` says that rewards are 0 or 1."""

    zero_one: bool = False

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("zero_one", self.zero_one)

    @property
    def rewards(self) -> str:  # type: ignore[override]
        """As its setting says."""
        return "bernoulli" if self.zero_one else "gaussian"
