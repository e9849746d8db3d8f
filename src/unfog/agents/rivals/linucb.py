"""LinUCB: ridge regression and a constant number of deviations.

    A = I + sum x x',    theta = A^-1 sum x r,    argmax x'theta + alpha sqrt(x'A^-1 x)

L. Li, W. Chu, J. Langford and R. E. Schapire, *A Contextual-Bandit Approach to Personalized News Article
Recommendation* (one theta for all arms; the map `per_arm` gives one for each). alpha = 1 +
sqrt(ln(2 / delta) / 2), which is 2.36 with delta = 0.05. It takes the features of a
noisy context for the features. Known well.
"""

from math import log, sqrt

from unfog.agents.assemble import Agent
from unfog.agents.denoise import Identity
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.ridge import Ridge
from unfog.agents.rivals.rival import Rival

PAPER = (
    "Li, Chu, Langford and Schapire, A Contextual-Bandit Approach to Personalized News Article Recommendation"
)
ALPHA = 1 + sqrt(log(2 / 0.05) / 2)

RIVALS = [
    Rival(
        Agent(
            "linucb",
            Identity(),
            Ridge(),
            Optimism(alpha=ALPHA),
            binary=Ridge(zero_one=True),
            summary="ridge regression, and a constant number of deviations",
            reference=PAPER,
        ),
        told="nothing",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        tuned="alpha",
        grid=(0.05, 0.1, 0.2, 0.5, 1.0, 2.0),
    )
]
