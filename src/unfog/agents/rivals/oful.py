"""OFUL, a rival with a confidence ellipsoid."""

from dataclasses import dataclass
from math import log, sqrt

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.denoise import Identity
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.ridge import Ridge, Sizes, State
from unfog.agents.rivals.rival import Rival
from unfog.maths.arrays import Array

PAPER = "Abbasi-Yadkori, Pal and Szepesvari, Improved Algorithms for Linear Stochastic Bandits"


@dataclass(frozen=True, kw_only=True)
class Ellipsoid(Ridge):
    """OFUL: ridge regression, and the ellipsoid that holds theta in all rounds at once.

        V = l I + sum x x',    theta_hat = V^-1 sum x r,    argmax x'theta_hat + beta_t |x|_{V^-1}
        beta_t = R sqrt(2 ln(det(V)^(1/2) det(l I)^(-1/2) / delta)) + sqrt(l) S

    Y. Abbasi-Yadkori, D. Pal and C. Szepesvari, *Improved Algorithms for Linear Stochastic Bandits*. It must
    be told R, how noisy rewards are (their tails are no heavier than those of N(0, R^2)), and S, a bound of
    |theta|: here its size as the prior has it. It takes the features of a noisy context for the features. Its
    paper shows curves and no numbers. The formula is known well; l = 1 and delta = 0.05 are ours, as the
    paper leaves both open (their sureness is medium).

    Settings
    --------
    Those of `Ridge`, and `delta`, how probable it is that theta is ever outside.
    """

    delta: float = 0.05

    name = "ellipsoid"
    note = "ridge regression with the ellipsoid of OFUL"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.share("delta", self.delta)

    def width(self, parameters: Sizes, state: State) -> Array:
        """beta_t."""
        xp = state.volume.__array_namespace__()
        noise: Array = parameters.noise * xp.sqrt(state.volume - 2 * log(self.delta))
        return noise + sqrt(self.ridge) * parameters.norm


RIVALS = [
    Rival(
        Agent(
            "oful",
            Identity(),
            Ellipsoid(),
            Optimism(),
            binary=Ellipsoid(zero_one=True),
            summary="ridge regression, and an ellipsoid that holds theta in all rounds at once",
            reference=PAPER,
        ),
        told="how noisy rewards are, how long theta is",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        tuned="alpha",
        grid=(0.03, 0.06, 0.125, 0.25, 0.5, 1.0),
    )
]
