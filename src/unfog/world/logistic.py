"""The logistic bandit: r ~ Bernoulli(sigmoid(phi(a, c)'theta*)), the paper's second (Fig. 1 centre).

A uniform number comes from two normals, exp(-(x^2 + y^2) / 2), so that a round takes normals alone.
"""

from dataclasses import dataclass, field

import numpy as np

from unfog.arrays import Array
from unfog.inputs import Numbers
from unfog.logistic import NODES, sigmoid
from unfog.rewards import Rewards, Sigmoid
from unfog.world.problem import Draws
from unfog.world.synthetic import Synthetic

PAPER_SCORE = 6.0  # the standard deviation of scores in the paper's experiment, which NODES nodes are for
MOST_NODES = 2048
DRAWN = 100_000  # coordinates of actions, to estimate the size of scores


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticProblem(Synthetic):
    """Rewards of 0 or 1. The fields are those of `Synthetic`, with the paper's values for this bandit."""

    noise_cov: Numbers = 2.0
    bias_cov: Numbers = 2.5
    prior_cov: Numbers = 1.0
    rewards: Rewards = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check every field; take more nodes for mean rewards where scores are larger than the paper's."""
        super().__post_init__()
        nodes = NODES * max(1.0, self._score_size() / PAPER_SCORE)
        object.__setattr__(self, "rewards", Sigmoid(nodes=min(MOST_NODES, int(np.ceil(nodes)))))

    def _score_size(self) -> float:
        """The standard deviation of a score under the prior, from a few fixed draws of all there is."""
        source = np.random.Generator(np.random.Philox(0))
        number = max(1, min(64, DRAWN // (self.arms() * self.dim)))
        truth = self.truth(
            {name: _drawn(source, number, draws) for name, draws in self.truth_draws().items()}
        )
        context = self.emit(truth, source.standard_normal((number, 2 * self.dim))).context
        return float(np.sqrt(np.mean(truth.features.at(context).scores(truth.theta) ** 2)))

    def round_normals(self) -> int:
        """A context, its noise, and two for the reward: 2d + 2."""
        return 2 * self.dim + 2

    def reward(self, score: Array, normals: Array) -> Array:
        """1 with probability sigmoid(score), else 0."""
        xp = score.__array_namespace__()
        uniform = xp.exp(-0.5 * (normals[..., -2] ** 2 + normals[..., -1] ** 2))
        return xp.where(uniform < sigmoid(score), xp.ones_like(score), xp.zeros_like(score))


def _drawn(source: np.random.Generator, number: int, draws: Draws) -> Array:
    shape = (number, *draws.shape)
    return source.standard_normal(shape) if draws.law == "normal" else source.random(shape)
