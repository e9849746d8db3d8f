"""The logistic bandit."""

from dataclasses import dataclass

import numpy as np

from unfog.maths.arrays import Array
from unfog.maths.logistic import NODES
from unfog.validation import InputError, Numbers
from unfog.worlds.payoffs import Binary
from unfog.worlds.synthetic import Synthetic

PAPER_SCORE = 18.0  # the size of the largest of all arms' scores in the paper's experiment, which NODES suit
MOST_NODES = 2048
DRAWN = 100_000  # coordinates of actions, to estimate the size of scores


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticProblem(Synthetic):
    """The logistic bandit: r ~ Bernoulli(sigmoid(phi(a, c)'theta*)), the paper's second (Fig. 1 centre).

    Rewards of 0 or 1. The fields are those of `Synthetic`, with the paper's values for this bandit.

    >>> import unfog
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive-adf"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()
    [2.8, 4.1]
    """

    noise_cov: Numbers = 2.0
    bias_cov: Numbers = 2.5
    prior_cov: Numbers = 1.0

    def __post_init__(self) -> None:
        """Check every field; take more nodes for mean rewards where scores are larger than the paper's."""
        super().__post_init__()
        size = self._score_size()
        nodes = int(np.ceil(NODES * max(1.0, size / PAPER_SCORE)))
        if nodes > MOST_NODES:
            allowed = (
                f"scores up to {PAPER_SCORE * MOST_NODES / NODES:.0f}: a narrower prior, smaller actions"
            )
            raise InputError("prior_cov", f"scores of {size:.3g}, every reward certain", allowed)
        object.__setattr__(self, "_parts", self._parts._replace(payoff=Binary(nodes)))

    def _payoff(self) -> Binary:
        return Binary()

    def _score_size(self) -> float:
        """How large the largest score of all arms is under the prior, from a few fixed draws."""
        source = np.random.Generator(np.random.Philox(0))
        number = max(1, min(64, DRAWN // (self.arms() * self.dim)))
        wanted = {name: draws for name, draws in self.truth_draws().items() if name != "walk"}
        truth = self.truth({name: draws.of(source, number) for name, draws in wanted.items()})
        context = self._believed(source.standard_normal((number, self.dim)))
        largest = np.abs(truth.features.at(context).scores(truth.theta)).max(-1)
        return float(np.sqrt(np.mean(largest**2)))

    def _believed(self, normals: Array) -> Array:
        """Contexts as wide as a belief before the first round has them, whose bias is not known yet."""
        known = self.knowledge()
        gain = known.context_cov @ np.linalg.inv(known.context_cov + known.noise_cov)
        spread = known.context_cov + 2 * gain @ known.bias_cov @ gain.T
        return known.context_mean + normals @ np.linalg.cholesky(spread).T
