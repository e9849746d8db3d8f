"""A world to start from: contexts on a circle, seen through the channel that all worlds share.

A world is contexts x channel x arms x payoff (worlds/composed.py): write the part that is new, take the
others as they are. The fields of the channel (`missing`, `revealed`, `reveal_delay`, ...) come with
`Composed`. Agents are told the moments of the contexts, which are not Gaussian: what they believe is wrong,
and regret is against one who believes the same.

`eq=False` makes a world equal to itself alone. It can then be hashed whatever its fields hold, and they may
hold lists and arrays: compiled engines keep what they made for a world under that world.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.maths.arrays import Array, Ints
from unfog.validation import Numbers
from unfog.worlds.composed import Composed, Noisy, Parts, arms, described
from unfog.worlds.measurement import make_measurement

DIM = 2


class Circle(NamedTuple):
    """Contexts of length `radius`, in any direction."""

    radius: float
    normals: int = DIM  # standard normals that one context takes

    def draw(self, normals: Array, row: Ints | None) -> Array:
        """A context: normals (..., 2) -> (..., 2)."""
        xp = normals.__array_namespace__()
        return self.radius * normals / xp.sqrt((normals**2).sum(-1))[..., None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Skeleton(Composed):
    """Its fields: the length of contexts, the arms, and the laws of channel, theta and rewards."""

    radius: float = 2.0
    actions: int = 10
    noise_cov: Numbers = 0.5
    bias_cov: Numbers = 1.0
    prior_cov: Numbers = 0.1
    reward_var: float = 1.0

    def __post_init__(self) -> None:
        """Check every field now, by composing."""
        _ = self._parts

    def _compose(self) -> Parts:
        radius = validation.positive("radius", self.radius)
        payoff = Noisy(validation.positive("reward_var", self.reward_var))
        made = arms(self.actions, "normal", "quadratic", DIM)
        laws: dict[str, Numbers] = {
            "context_mean": 0.0,
            "context_cov": radius**2 / DIM * np.eye(DIM),
            "noise_cov": self.noise_cov,
            "bias_cov": self.bias_cov,
        }
        known = described(DIM, made.one(), payoff, 0.0, self.prior_cov, **laws)
        return Parts(known, Circle(radius), make_measurement(self, known), made, payoff)
