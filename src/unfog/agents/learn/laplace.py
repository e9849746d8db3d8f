"""Laplace's approximation."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.learn.posterior import Prior, energy, gradient, hessian
from unfog.agents.learn.refit import MOST_STEPS, Refit, State
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

FRACTIONS = (0.5, 0.2, 0.05, 0.01, 0.001)


@dataclass(frozen=True, kw_only=True)
class Laplace(Refit):
    """Laplace's approximation: the logistic posterior as a Gaussian at its mode.

        theta ~ N(mode, U''(mode)^-1),   mode = argmin U
        U: minus the log density of theta given all rewards

    Before every decision a few of Newton's steps lead from the last mode to the new one. Of a step's
    fractions 1, 1/2, ..., 1/1000 the one with the least U is taken: a full step overshoots where sigmoids are
    saturated. O. Chapelle and L. Li, *An Empirical Evaluation of Thompson Sampling*, with all covariances and
    all rounds.

    Settings
    --------
    Newton's steps a round; `marginal` averages the context out of the likelihood.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Laplace(), unfog.choose.Thompson()
    ... )
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive-adf"], rounds=30, trials=10, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.4, 2.6]
    """

    steps: int = 5
    marginal: bool = False

    name = "laplace"
    note = "a Gaussian at the posterior's mode"

    def __post_init__(self) -> None:
        """Check every setting."""
        validation.count("steps", self.steps, most=MOST_STEPS)
        validation.flag("marginal", self.marginal)

    @property
    def averages_context(self) -> bool:
        """As its setting says."""
        return self.marginal

    def normals(self, known: Knowledge, seen: int) -> int:
        """None."""
        return 0

    def work(self, known: Knowledge) -> int:
        """The Hessian, and the energy at every fraction."""
        m = known.prior_mean.shape[-1]
        return m**2 + (len(FRACTIONS) + 3) * (m * (1 + m * self.marginal) + 20)

    def step(self, parameters: Prior, state: State, normals: Array) -> State:
        """One step of Newton's, or a fraction of it."""
        mode, past = state.theta, state.past
        xp = mode.__array_namespace__()
        down = gradient(parameters, past, mode)[..., None]
        move = xp.linalg.solve(hessian(parameters, past, mode), -down)[..., 0]
        best = mode + move
        least = energy(parameters, past, best)
        for fraction in FRACTIONS:
            there = mode + fraction * move
            height = energy(parameters, past, there)
            best = xp.where((height < least)[..., None], there, best)
            least = xp.minimum(height, least)
        return state._replace(theta=best)

    def belief(self, parameters: Prior, state: State) -> Gaussian:
        """The Gaussian at the mode."""
        xp = state.theta.__array_namespace__()
        factor = xp.linalg.cholesky(hessian(parameters, state.past, state.theta))
        return Gaussian(state.theta, xp.linalg.inv(factor).mT)
