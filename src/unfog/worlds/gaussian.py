"""The Gaussian bandit: r = phi(a, c)'theta* + N(0, sigma^2). The paper's first experiment (Fig. 1 left)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unfog import inputs
from unfog.maths.arrays import Array
from unfog.model.rewards import Identity, Rewards
from unfog.worlds.synthetic import Synthetic


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProblem(Synthetic):
    """Rewards that are scores plus noise of variance `reward_var`. For the other fields see `Synthetic`."""

    reward_var: float = 2.0
    rewards: ClassVar[Rewards] = Identity()

    def _reward_var(self) -> Array:
        return np.asarray(inputs.positive("reward_var", self.reward_var))

    def round_normals(self) -> int:
        """A context, its noise, the channel's own, and the reward's noise: 2d + 1 and more."""
        return 2 * self.dim + self._channel.normals() + 1

    def reward(self, score: Array, normals: Array) -> Array:
        """The score plus N(0, sigma^2)."""
        return score + float(self.reward_var) ** 0.5 * normals[..., -1]
