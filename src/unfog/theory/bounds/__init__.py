"""The paper's bounds on Bayesian regret, as functions of the horizon T, printed and corrected.

With U(m, l) = sqrt(2 T m s^2 min(m, 2 + 2 ln K) ln(1 + T l / (m s^2))), s^2 the variance of rewards and l
that of theta's prior (sigma^2 and lambda in the paper):

    lemma_1         CB of Algorithm 1         U(m, d s^2/T) and two terms for the sum of D_t, the mismatch
    lemma_2         its EE1 + EE2             any feature map
    lemma_2_linear  its EE1 + EE2             phi(a, c) = G(a) c
    theorem_1       its regret                lemma_1 + lemma_2_linear
    lemma_3         CB of Algorithm 2         U(m, l)
    lemma_4         its EE1 + EE2
    theorem_2       its regret                lemma_3 + lemma_4

`printed` is what the paper says; `corrected` is what its argument proves once its slips are mended, and needs
no isotropic covariances: docs/science/proofs.md derives every difference. All are vectorised over T, in
closed form. A condition that does not hold is an error, or with strict=False a mark on the value. `escape`
says how likely a round is to be beyond the one step that unbounded features may escape (potential.py).
`at_random` is what choosing uniformly at random obeys.
"""

from unfog.theory.bounds.bound import Bound, at_random, learning, ratio_limit
from unfog.theory.bounds.delayed import lemma_3, lemma_4, theorem_2
from unfog.theory.bounds.unobserved import lemma_1, lemma_2, lemma_2_linear, mismatch_sum, theorem_1

__all__ = [
    "Bound",
    "at_random",
    "learning",
    "lemma_1",
    "lemma_2",
    "lemma_2_linear",
    "lemma_3",
    "lemma_4",
    "mismatch_sum",
    "ratio_limit",
    "theorem_1",
    "theorem_2",
]
