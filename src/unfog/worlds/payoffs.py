"""What a score pays: Gaussian noise around it, or 0 and 1 by its sigmoid.

A round's last normals are the reward's.
"""

from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.features.link import Identity, Rewards, Sigmoid
from unfog.maths.arrays import Array
from unfog.maths.logistic import NODES, sigmoid


class Noisy(NamedTuple):
    """r = score + N(0, sigma^2); a share of rewards is `outlier` instead, of which agents are not told.

    >>> from unfog.worlds.payoffs import Noisy
    >>> Noisy(reward_var=1.0).normals, Noisy(reward_var=1.0, outliers=0.1).normals
    (1, 2)
    """

    reward_var: float
    outliers: float = 0.0
    outlier: float = 0.0
    rewards: Rewards = Identity()

    @property
    def normals(self) -> int:
        """The noise, and before it, where there are any, whether the reward is an outlier."""
        return 2 if self.outliers else 1

    @property
    def plain(self) -> bool:
        """Whether rewards are as agents are told."""
        return not self.outliers

    @property
    def variance(self) -> Array:
        """sigma^2."""
        return np.asarray(self.reward_var)

    def pay(self, score: Array, normals: Array) -> Array:
        """The score plus N(0, sigma^2)."""
        paid = score + self.reward_var**0.5 * normals[..., -1]
        if not self.outliers:
            return paid
        xp = paid.__array_namespace__()
        absurd = normals[..., -2] < NormalDist().inv_cdf(self.outliers)
        found: Array = xp.where(absurd, xp.asarray(self.outlier, dtype=paid.dtype), paid)
        return found


class Binary(NamedTuple):
    """r ~ Bernoulli(sigmoid(score)). Two normals make a uniform number, exp(-(x^2 + y^2) / 2)."""

    nodes: int = NODES
    normals: int = 2
    variance: None = None
    plain: bool = True

    @property
    def rewards(self) -> Rewards:
        """Mean rewards are probabilities, averaged with so many nodes."""
        return Sigmoid(nodes=self.nodes)

    def pay(self, score: Array, normals: Array) -> Array:
        """1 with probability sigmoid(score), else 0."""
        xp = score.__array_namespace__()
        uniform = xp.exp(-0.5 * (normals[..., -2] ** 2 + normals[..., -1] ** 2))
        return xp.where(uniform < sigmoid(score), xp.ones_like(score), xp.zeros_like(score))


Payoff: TypeAlias = Noisy | Binary
