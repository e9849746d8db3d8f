"""Thompson sampling of Agrawal and Goyal."""

from dataclasses import dataclass
from math import log

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.rivals.ridge import Ridge, Sizes, State
from unfog.agents.rivals.rival import Rival
from unfog.maths.arrays import Array

PAPER = "Agrawal and Goyal, Thompson Sampling for Contextual Bandits with Linear Payoffs"
NINE = 9.0  # of v_t


@dataclass(frozen=True, kw_only=True)
class Inflated(Ridge):
    """Thompson sampling of Agrawal and Goyal: a draw from a Gaussian that is wider than the posterior.

        B = I + sum x x',    mu = B^-1 sum x r,    theta ~ N(mu, v_t^2 B^-1),
        v_t = R sqrt(9 d ln(t / delta))

    S. Agrawal and N. Goyal, *Thompson Sampling for Contextual Bandits with Linear Payoffs*. d is the number
    of features and t = 1, 2, ... the round, counted by rewards. It must be told R, how noisy rewards are; the
    prior of theta is not used. It takes the features of a noisy context for the features. The formula is
    known well (an earlier version of the paper has 24 / epsilon in the place of 9); delta = 0.05 is ours, as
    the paper leaves it open (medium).

    Settings
    --------
    Those of `Ridge`, `delta`, and `scale`, by which v_t is multiplied.
    """

    delta: float = 0.05
    scale: float = 1.0

    name = "inflated"
    note = "ridge regression, inflated by v_t"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.share("delta", self.delta)
        validation.not_negative("scale", self.scale)

    def width(self, parameters: Sizes, state: State) -> Array:
        """v_t."""
        xp = state.seen.__array_namespace__()
        growth = xp.log(1 + state.seen) - log(self.delta)
        found: Array = self.scale * parameters.noise * xp.sqrt(NINE * parameters.dim * growth)
        return found


RIVALS = [
    Rival(
        Agent(
            "ag-ts",
            Identity(),
            Inflated(),
            Thompson(),
            binary=Inflated(zero_one=True),
            summary="draws theta from a Gaussian that is wider than the posterior",
            reference=PAPER,
        ),
        told="how noisy rewards are",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        tuned="scale",
        grid=(0.01, 0.03, 0.06, 0.125, 0.25, 1.0),
    )
]
