"""Probabilistic contexts: a round shows a bundle of contexts and their probabilities, and kernel UCB chooses.

    k(B, B') = sum_s sum_s' p_s p'_s' k((a, c_s), (a', c'_s'))         the bundle kernel
    mean(B) = k_t'(K + l I)^-1 r,    sd(B)^2 = (k(B, B) - k_t'(K + l I)^-1 k_t) / l
    argmax mean + beta_t sd,    beta_t = R sqrt(ln det(I + K / l) + 2 ln(1 / delta)) + sqrt(l) S

L. Yang, J. Yang and S. Ren, *Multi-Feedback Bandit Learning with Probabilistic Contexts*. Where the kernel is
that of a map with finitely many features, k(x, x') = phi(x)'phi(x'), the bundle kernel is psi'psi' with psi
the features expected under the bundle: kernel ridge regression is ridge regression on psi, and
ln det(I + K / l) = ln det(V / l). So it is written here. Of several feedbacks that the paper allows there is
one: the reward.

How sure: the bundle kernel and UCB on it, medium; beta_t, low: it is the usual bound for ridge regression,
with R the deviation of rewards and S the length of theta as its prior has it; l = 1 and delta = 0.05 are
ours. In our worlds the law of a context is Gaussian, a bundle of all contexts; with `samples` = n it is n of
them, each with probability 1 / n.
"""

from dataclasses import dataclass
from math import log, sqrt

from unfog import inputs
from unfog.agents.assemble import Agent
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.ridge import Ridge, Sizes, State
from unfog.agents.rivals.rival import Rival
from unfog.agents.rivals.told_law import ToldLaw
from unfog.inputs import InputError
from unfog.maths.arrays import Array

PAPER = "Yang, Yang and Ren, Multi-Feedback Bandit Learning with Probabilistic Contexts"


@dataclass(frozen=True, kw_only=True)
class BundleRidge(Ridge):
    """Its settings: `delta`, and `scale`, by which beta_t is multiplied."""

    delta: float = 0.05
    scale: float = 1.0

    name = "bundle_ridge"
    note = "kernel ridge regression on bundles of contexts"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        inputs.not_negative("scale", self.scale)
        if inputs.positive("delta", self.delta) >= 1:
            raise InputError("delta", self.delta, "a probability, more than 0 and less than 1")

    def width(self, parameters: Sizes, state: State) -> Array:
        """beta_t."""
        xp = state.volume.__array_namespace__()
        noise = parameters.noise * xp.sqrt(state.volume - 2 * log(self.delta))
        found: Array = self.scale * (noise + sqrt(self.ridge) * parameters.norm)
        return found


RIVALS = [
    Rival(
        Agent(
            "yang-bundle",
            ToldLaw(),
            BundleRidge(),
            Optimism(),
            binary=BundleRidge(zero_one=True),
            summary="kernel UCB on bundles of contexts and their probabilities",
            reference=PAPER,
        ),
        told="the law of every context, the deviation of rewards, how long theta is",
        sees="the law of each context",
        regret="regret",
        tuned="scale",
        grid=(0.01, 0.03, 0.1, 0.3, 0.6, 1.0),
        sure="low",
    )
]
