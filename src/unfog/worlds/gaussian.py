"""The Gaussian bandit."""

from dataclasses import dataclass

from unfog import validation
from unfog.validation import InputError
from unfog.worlds.payoffs import Noisy
from unfog.worlds.synthetic import Synthetic


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProblem(Synthetic):
    """The Gaussian bandit: r = phi(a, c)'theta* + N(0, sigma^2). The paper's first experiment (Fig. 1 left).

    Rewards that are scores plus noise of variance `reward_var`. The reference of specs has every field.

    A share `reward_outliers` of rewards is `reward_outlier` instead, of which agents are not told.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, noise_cov=[0.5, 2.0])
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()
    [4.4, 8.2]
    """

    reward_var: float = 2.0
    reward_outliers: float = 0.0
    reward_outlier: float = 1e6

    def _payoff(self) -> Noisy:
        share = validation.not_negative("reward_outliers", self.reward_outliers)
        if share >= 1:
            raise InputError("reward_outliers", share, "a share, at least 0 and less than 1")
        outlier = float(validation.vector("reward_outlier", self.reward_outlier, 1)[0])
        return Noisy(validation.positive("reward_var", self.reward_var), share, outlier)
