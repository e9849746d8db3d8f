"""The Gaussian bandit: r = phi(a, c)'theta* + N(0, sigma^2). The paper's first experiment (Fig. 1 left)."""

from dataclasses import dataclass

from unfog import inputs
from unfog.worlds.payoffs import Noisy
from unfog.worlds.synthetic import Synthetic


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProblem(Synthetic):
    """Rewards that are scores plus noise of variance `reward_var`. For the other fields see `Synthetic`."""

    reward_var: float = 2.0

    def _payoff(self) -> Noisy:
        return Noisy(inputs.positive("reward_var", self.reward_var))
