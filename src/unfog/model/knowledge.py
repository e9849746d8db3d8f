"""What an agent is told before the first round: distributions and priors, never a draw from them."""

from typing import NamedTuple

from unfog.maths.arrays import Array


class Knowledge(NamedTuple):
    """The context's law, the channel, and the priors of one problem."""

    context_mean: Array  # (d,)     mu_c
    context_cov: Array  # (d, d)   Sigma_c
    noise_cov: Array  # (d, d)   Sigma_n
    bias_cov: Array  # (d, d)   Sigma_gamma
    prior_mean: Array  # (m,)     of theta
    prior_cov: Array  # (m, m)   of theta, or (K, k, k): independent blocks
    reward_var: Array | None = None  # ()  sigma^2, where rewards have one variance
    contexts: Array | None = None  # (n, d)  contexts to draw from, each as likely, where agents are told any
