"""What an agent is told before the first round: distributions and priors, never a draw from them."""

from typing import NamedTuple

from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture
from unfog.model.tempo import Tempo

BEYOND = ("contexts", "sample", "mixture", "tempo")  # of contexts, that may be told besides their moments


class Knowledge(NamedTuple):
    """The context's law, the channel, and the priors of one problem.

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.model.knowledge import Knowledge
    >>> one = np.ones((1, 1))
    >>> known = Knowledge(np.array([7.0]), 4 * one, 1 * one, 5 * one, prior_mean=np.zeros(1), prior_cov=one)
    >>> known.noise_cov.tolist(), known.beyond_moments
    ([[1.0]], ())
    >>> unfog.GaussianProblem(dim=2, actions=5).knowledge().context_mean.tolist()  # what a problem tells
    [0.0, 0.0]
    """

    context_mean: Array  # (d,)     mu_c
    context_cov: Array  # (d, d)   Sigma_c
    noise_cov: Array  # (d, d)   Sigma_n
    bias_cov: Array  # (d, d)   Sigma_gamma
    prior_mean: Array  # (m,)     of theta
    prior_cov: Array  # (m, m)   of theta, or (K, k, k): independent blocks
    reward_var: Array | None = None  # ()  sigma^2, where rewards have one variance
    contexts: Array | None = None  # (n, d)  all there are, each as likely, where these are so many
    sample: Array | None = None  # (n, d)  true contexts of the past, where agents are told any
    mixture: Mixture | None = None  # of Gaussians: the law of contexts, where agents are told that
    tempo: Tempo | None = None  # how contexts and errors move in time, where agents are told that

    @property
    def beyond_moments(self) -> tuple[str, ...]:
        """What is told of contexts besides their mean and covariance, by name."""
        return tuple(field for field in BEYOND if self._asdict()[field] is not None)
