"""The paper's third world (Fig. 1 right): users are contexts, clusters of films arms, ratings rewards.

With ratings R = W H in f factors, a context is a user's row of W, and an arm one of K clusters of H's
columns: phi(a, c) puts c into the block of arm a, theta is N(centroid_a, diag(variance_a)) there, and
r = theta_a'c + N(0, sigma^2). Agents take contexts for N(mu_c, Sigma_c) with the moments of W's rows, and so
does the paper's oracle; they are that (`contexts = "gaussian"`) or users drawn at random (`"users"`).

Where W, the centroids and the variances come from is for worlds built on this one: lab/movielens.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from unfog import inputs
from unfog.features.per_arm import Block
from unfog.inputs import Numbers
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import from_moments
from unfog.model.knowledge import Knowledge
from unfog.model.rewards import Identity, Rewards
from unfog.worlds.problem import Draws, Emission, Truth

CONTEXTS = ("users", "gaussian")


class Ratings(NamedTuple):
    """What the world is made of."""

    users: Array  # (n, f)  contexts
    centroids: Array  # (K, f)  prior mean of theta, an arm a row
    variances: Array  # (K, f)  prior variance


class _Roots(NamedTuple):
    """Cholesky factors, made once."""

    context: Array
    noise: Array
    bias: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingsProblem(ABC):
    """Contexts and arms from a factorisation of ratings, seen through a biased, noisy channel."""

    contexts: str = "users"
    noise_cov: Numbers = 0.1
    bias_cov: Numbers = 0.6
    reward_var: float = 0.01
    rewards: ClassVar[Rewards] = Identity()
    late: ClassVar[int] = 0
    partial: ClassVar[bool] = False
    has_bias: ClassVar[bool] = True
    note: str = field(init=False, default="")
    _made: Ratings = field(init=False, repr=False)
    _known: Knowledge = field(init=False, repr=False)
    _roots: _Roots = field(init=False, repr=False)

    @abstractmethod
    def _ratings(self) -> Ratings:
        """Users and clusters."""

    def __post_init__(self) -> None:
        """Check every field, and take the moments of the users."""
        inputs.one_of("contexts", self.contexts, CONTEXTS)
        made = self._ratings()
        dim = made.users.shape[1]
        known = Knowledge(
            context_mean=made.users.mean(0),
            context_cov=np.cov(made.users.T).reshape(dim, dim),
            noise_cov=inputs.covariance("noise_cov", self.noise_cov, dim),
            bias_cov=inputs.covariance("bias_cov", self.bias_cov, dim),
            prior_mean=made.centroids.reshape(-1),
            prior_cov=made.variances[..., None] * np.eye(dim),
            reward_var=np.asarray(inputs.positive("reward_var", self.reward_var)),
        )
        covs = (known.context_cov, known.noise_cov, known.bias_cov)
        object.__setattr__(self, "_made", made)
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_roots", _Roots(*(from_moments(cov[0], cov).root for cov in covs)))

    def knowledge(self) -> Knowledge:
        """What agents are told."""
        return self._known

    def arms(self) -> int:
        """How many clusters there are."""
        return self._made.centroids.shape[0]

    def cells(self) -> int:
        """The features need no room of their own."""
        return 0

    def truth_draws(self) -> Mapping[str, Draws]:
        """Normals for theta* and gamma*."""
        arms, dim = self._made.centroids.shape
        return {"theta": Draws("normal", (arms * dim,)), "bias": Draws("normal", (dim,))}

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta* and gamma* of a trial."""
        xp = draws["theta"].__array_namespace__()
        made = self._made
        spread = xp.asarray(np.sqrt(made.variances).reshape(-1))
        theta = xp.asarray(self._known.prior_mean) + spread * draws["theta"]
        return Truth(theta, matvec(xp.asarray(self._roots.bias), draws["bias"]), Block(*made.centroids.shape))

    def round_normals(self) -> int:
        """A context, its noise, and the reward's noise; a user takes two, a Gaussian context d."""
        dim = self._made.users.shape[1]
        return (2 if self.contexts == "users" else dim) + dim + 1

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:  # noqa: ARG002
        """A context and its measurement."""
        xp = normals.__array_namespace__()
        context = self._user(normals) if self.contexts == "users" else self._gaussian(normals)
        dim = context.shape[-1]
        noise = matvec(xp.asarray(self._roots.noise), normals[..., -1 - dim : -1])
        return Emission(context, context + truth.bias + noise)

    def _user(self, normals: Array) -> Array:
        """A user at random: two normals make a uniform number, exp(-(x^2 + y^2) / 2)."""
        xp = normals.__array_namespace__()
        users = xp.asarray(self._made.users, dtype=normals.dtype)
        uniform = xp.exp(-0.5 * (normals[..., 0] ** 2 + normals[..., 1] ** 2))
        place = xp.clip(xp.floor(uniform * users.shape[0]), 0, users.shape[0] - 1)
        found: Array = users[place.astype(xp.int32)]
        return found

    def _gaussian(self, normals: Array) -> Array:
        xp = normals.__array_namespace__()
        mean, root = xp.asarray(self._known.context_mean), xp.asarray(self._roots.context)
        return mean + matvec(root, normals[..., : mean.shape[0]])

    def reward(self, score: Array, normals: Array) -> Array:
        """The score plus N(0, sigma^2)."""
        return score + float(self.reward_var) ** 0.5 * normals[..., -1]
