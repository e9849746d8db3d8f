"""The paper's third world (Fig. 1 right): users are contexts, clusters of films arms, ratings rewards.

With ratings R = W H in f factors, a context is a user's row of W, and an arm one of K clusters of H's
columns: phi(a, c) puts c into the block of arm a, theta is N(centroid_a, diag(variance_a)) there, and
r = theta_a'c + N(0, sigma^2). Agents take contexts for N(mu_c, Sigma_c) with the moments of W's rows, and so
does the paper's oracle; they are that (`contexts = "gaussian"`) or users drawn at random (`"users"`). Where
they are users, agents are told these as well, or some of them (worlds/measurement.py), and regret has a
second yardstick, which knows them all: worlds/composed.py.

Where W, the centroids and the variances come from is for worlds built on this one: lab/movielens.py.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.knowledge import Knowledge
from unfog.features.per_arm import per_arm
from unfog.maths.arrays import Array
from unfog.validation import Numbers
from unfog.worlds.composed import Arms, Composed, Noisy, Parts
from unfog.worlds.contexts import Atoms, Contexts, as_told
from unfog.worlds.measurement import channel

CONTEXTS = ("users", "gaussian")


class Ratings(NamedTuple):
    """What the world is made of."""

    users: Array  # (n, f)  contexts
    centroids: Array  # (K, f)  prior mean of theta, an arm a row
    variances: Array  # (K, f)  prior variance


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingsProblem(Composed):
    """Contexts and arms from a factorisation of ratings, seen through a biased, noisy channel."""

    contexts: str = "users"
    noise_cov: Numbers = 0.1
    bias_cov: Numbers = 0.6
    reward_var: float = 0.01

    @abstractmethod
    def _ratings(self) -> Ratings:
        """Users and clusters."""

    def __post_init__(self) -> None:
        """Check every field, and take the moments of the users."""
        _ = self._parts

    @property
    def discrete(self) -> bool:
        """Users are a finite sample."""
        return self.contexts == "users" and self.has_bias

    def _compose(self) -> Parts:
        validation.one_of("contexts", self.contexts, CONTEXTS)
        payoff = Noisy(validation.positive("reward_var", self.reward_var))
        users, centroids, variances = self._ratings()
        dim = users.shape[1]
        known = Knowledge(
            context_mean=users.mean(0),
            context_cov=np.cov(users.T).reshape(dim, dim),
            noise_cov=validation.covariance("noise_cov", self.noise_cov, dim),
            bias_cov=validation.covariance("bias_cov", self.bias_cov, dim),
            prior_mean=centroids.reshape(-1),
            prior_cov=variances[..., None] * np.eye(dim),
            reward_var=payoff.variance,
            contexts=users if self.contexts == "users" else None,
            sample=users if self.contexts == "users" else None,
        )
        contexts: Contexts = Atoms(users) if self.contexts == "users" else as_told(known)
        place = partial(per_arm, intercept=False)
        clusters = Arms(place, centroids.shape, np.zeros(centroids.shape), "normal")
        return Parts(known, contexts, channel(self, known), clusters, payoff)
