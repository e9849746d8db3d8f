"""Probabilistic contexts: a round shows a bundle of contexts and their probabilities, and kernel UCB chooses.

    k(B, B') = sum_s sum_s' p_s p'_s' k((a, c_s), (a', c'_s'))         the bundle kernel
    mean(B) = k_t'(K + l I)^-1 r,    sd(B)^2 = (k(B, B) - k_t'(K + l I)^-1 k_t) / l
    argmax mean + beta_t sd,    beta_t = R sqrt(ln det(I + K / l) + 2 ln(1 / delta)) + sqrt(l) S

L. Yang, J. Yang and S. Ren, *Multi-Feedback Bandit Learning with Probabilistic Contexts*. Where the kernel is
that of a map with finitely many features, k(x, x') = phi(x)'phi(x'), the bundle kernel is psi'psi' with psi
the features expected under the bundle: kernel ridge regression is ridge regression on psi, and
ln det(I + K / l) = ln det(V / l). So it is written here, with OFUL's learner. Of several feedbacks that the
paper allows there is one: the reward.

How sure: the bundle kernel and UCB on it, medium; beta_t, low: it is the usual bound for ridge regression,
with R the deviation of rewards and S the length of theta as its prior has it; l = 1 and delta = 0.05 are
ours. In our worlds the law of a context is Gaussian, a bundle of all contexts; with `samples` = n it is n of
them, each with probability 1 / n.
"""

from unfog.agents.assemble import Agent
from unfog.agents.rivals.oful import Ellipsoid
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.rival import Rival
from unfog.agents.rivals.told_law import ToldLaw

PAPER = "Yang, Yang and Ren, Multi-Feedback Bandit Learning with Probabilistic Contexts"

RIVALS = [
    Rival(
        Agent(
            "yang-bundle",
            ToldLaw(),
            Ellipsoid(),
            Optimism(),
            binary=Ellipsoid(zero_one=True),
            summary="kernel UCB on bundles of contexts and their probabilities",
            reference=PAPER,
        ),
        told="the law of every context, the deviation of rewards, how long theta is",
        sees="the law of each context",
        regret="regret",
        tuned="alpha",
        grid=(0.03, 0.06, 0.125, 0.25, 0.5, 1.0),
        sure="low",
    )
]
