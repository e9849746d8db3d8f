"""Thompson sampling of Russo and Van Roy: a draw from the posterior as it is, without inflation.

    theta ~ N(mu_t, Sigma_t),    argmax x'theta
    Sigma_t^-1 = Sigma_0^-1 + sum x x' / sigma^2,    mu_t = Sigma_t (Sigma_0^-1 mu_0 + sum x r / sigma^2)

D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling*. It must be told the prior of theta and
the variance of rewards, and takes the features of a noisy context for the features. For rewards of 0 or
1 the exact posterior of their logistic law is the row `pgts`. It has the parts of `naive`, and no setting
that says how much it explores. Known well. The paper's experiments are of Gaussian linear bandits with
figures alone.
"""

from unfog.agents.assemble import Agent
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.learn import Conjugate
from unfog.agents.rivals.rival import Rival

PAPER = "Russo and Van Roy, Learning to Optimize via Posterior Sampling"

RIVALS = [
    Rival(
        Agent(
            "rvr-ts",
            Identity(),
            Conjugate(),
            Thompson(),
            summary="draws theta from its posterior, without inflation",
            reference=PAPER,
        ),
        told="the prior of theta, how noisy rewards are",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
    )
]
