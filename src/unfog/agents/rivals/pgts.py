"""PG-TS: Thompson sampling from the logistic posterior itself, by Polya-Gamma Gibbs sampling.

    omega_i ~ PG(1, x_i'theta),      V^-1 = sum omega_i x_i x_i' + B^-1,
    theta ~ N(V (sum (r_i - 1/2) x_i + B^-1 b), V)

for the prior N(b, B). B. Dumitrascu, K. Feng and B. E. Engelhardt, *PG-TS: Improved Thompson Sampling for
Logistic Contextual Bandits*. The learner is learn/pg.py, which has no step size and the posterior as its
target. The authors make 100 sweeps before a decision, each round from the prior (medium), or one from where
the last round left off (PG-TS-stream). Here five go on from where the last round left off, where the chain
is close to its target already. It is for rewards of 0 or 1 alone: for Gaussian ones the posterior has a
closed form, and this is the row `rvr-ts`.
"""

from unfog.agents.assemble import Agent
from unfog.agents.choose.thompson import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.learn import PG
from unfog.agents.rivals.rival import Rival

PAPER = "Dumitrascu, Feng and Engelhardt, PG-TS: Improved Thompson Sampling for Logistic Contextual Bandits"

RIVALS = [
    Rival(
        Agent(
            "pgts",
            Identity(),
            PG(),
            Thompson(),
            summary="samples the posterior itself by Gibbs sampling, for rewards of 0 or 1",
            reference=PAPER,
        ),
        told="the prior of theta",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
    )
]
