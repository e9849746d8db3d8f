"""A chooser to start from.

The docstring of its class says how it chooses, with the formula and its reference (CONTRIBUTING.md). It gets
standard normals, as many as it says, and says with which probability it takes every arm. `view.mask` puts
arms that may not be chosen below others.
"""

from dataclasses import dataclass

from unfog.agents.base import Chooser, View
from unfog.agents.choose.greedy import best, certain_choice, check_probability, expected_scores
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import uniforms


@dataclass(frozen=True, kw_only=True)
class Skeleton(Chooser):
    """The best arm, or with some probability the second best.

        P(a) = 1 - share for the largest psi(a)'E[theta],    share for the second largest

    Here stands its reference.

    Settings
    --------
    `share` is the probability of the second best arm.
    """

    share: float = 0.1

    name = "skeleton"
    note = "the best arm, now and then the second best"
    propensity = "exact"  # or "estimated", from the draws that `probabilities` is given

    def __post_init__(self) -> None:
        """Refuse bad settings by name."""
        check_probability("share", self.share)

    def normals(self, known: Knowledge) -> int:
        """Two, which make a uniform number."""
        return 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm: normals (..., 2) -> (...,)."""
        xp = normals.__array_namespace__()
        coin, _ = uniforms(normals)
        first, second = _two(view)
        arm: Ints = xp.where(coin < self.share, best(second), best(first))
        return arm

    def probabilities(self, view: View, draws: Array) -> Array:
        """Of every arm, (..., K)."""
        first, second = _two(view)
        return (1 - self.share) * certain_choice(first, draws) + self.share * certain_choice(second, draws)


def _two(view: View) -> tuple[Array, Array]:
    """The expected scores, and those without the best arm where there is another."""
    scores = expected_scores(view)
    xp = scores.__array_namespace__()
    leads = xp.arange(scores.shape[-1]) == best(scores)[..., None]
    others = xp.where(leads, -xp.inf, scores)
    return scores, xp.where(xp.isinf(others.max(-1))[..., None], scores, others)
