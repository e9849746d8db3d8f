"""Langevin Monte Carlo for the logistic posterior."""

from dataclasses import dataclass

import numpy as np

from unfog import validation
from unfog.agents.learn.posterior import Prior, gradient
from unfog.agents.learn.refit import MOST_STEPS, Refit, State
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array


@dataclass(frozen=True, kw_only=True)
class LMC(Refit):
    """Langevin Monte Carlo: the logistic learner of the paper, a chain that walks down U with noise added.

        theta <- theta - eta_t U'(theta) + sqrt(2 eta_t temperature) normals,      eta_t = rate / t^decay
        U: minus the log density of theta given all rewards

    `steps` times before the decision of round t, from where the last round left off, first from the prior
    mean. P. Xu, H. Zheng, E. V. Mazumdar, K. Azizzadenesheli and A. Anandkumar, *Langevin Monte Carlo for
    Contextual Bandits*. The paper has 50 steps, eta_t = 0.2 / t and 1/beta = 0.001, which it calls posterior
    sampling; at this temperature the samples have about 3 % of the posterior's spread, and 1/beta = 1 is what
    aims at it.

    Settings
    --------
    `temperature` is 1/beta; `marginal` averages the context out of the likelihood.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.LMC(), unfog.choose.Thompson()
    ... )
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive-adf"], rounds=30, trials=10, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.4, 2.6]
    """

    temperature: float = 0.001
    steps: int = 50
    rate: float = 0.2
    decay: float = 1.0
    marginal: bool = False

    name = "lmc"
    note = "Langevin Monte Carlo"

    def __post_init__(self) -> None:
        """Check every setting."""
        validation.not_negative("temperature", self.temperature)
        validation.count("steps", self.steps, most=MOST_STEPS)
        validation.positive("rate", self.rate)
        validation.not_negative("decay", self.decay)
        validation.flag("marginal", self.marginal)

    @property
    def averages_context(self) -> bool:
        """As its setting says."""
        return self.marginal

    def normals(self, known: Knowledge, seen: int) -> int:
        """One for each coordinate of theta."""
        return known.prior_mean.shape[-1]

    def setup(self, known: Knowledge) -> Prior:
        """The prior, which the first step of all must not be too long for."""
        parameters = super().setup(known)
        steepest = float(np.linalg.eigvalsh(parameters.precision)[-1])
        if self.rate * steepest > 2:
            problem = f"{self.rate:g} is too long a step for a prior precision of {steepest:.3g}: it runs off"
            raise validation.InputError("rate", problem, f"at most {2 / steepest:.3g}, or a wider prior")
        return parameters

    def work(self, known: Knowledge) -> int:
        """The logit and the gradient, and a sigmoid."""
        m = known.prior_mean.shape[-1]
        return 2 * m * (1 + m * self.marginal) + 4

    def step(self, parameters: Prior, state: State, normals: Array) -> State:
        """One step down U, with noise."""
        xp = normals.__array_namespace__()
        rate = self.rate / (state.past.seen + 1) ** self.decay
        drift = rate * gradient(parameters, state.past, state.theta)
        return state._replace(theta=state.theta - drift + xp.sqrt(2 * rate * self.temperature) * normals)
