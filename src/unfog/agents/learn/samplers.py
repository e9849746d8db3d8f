"""Samplers of the logistic posterior: Langevin Monte Carlo and Polya-Gamma Gibbs sampling."""

from dataclasses import dataclass

import numpy as np

from unfog import validation
from unfog.agents.learn.logistic import MOST_STEPS, Prior, Refit, State, gradient, logits
from unfog.channel.knowledge import Knowledge
from unfog.maths import logistic
from unfog.maths.arrays import Array, matvec


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
        """Whether `marginal` is set."""
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


@dataclass(frozen=True, kw_only=True)
class PG(Refit):
    """Polya-Gamma Gibbs sampling: the logistic posterior itself, for any prior N(prior_mean, prior_cov).

    A sweep draws a latent omega_i ~ PG(1, x_i'theta) for every past round, given which theta is Gaussian:

        theta ~ N(Q^-1 (prior_cov^-1 prior_mean + sum_i (r_i - 1/2) x_i), Q^-1)
        Q = prior_cov^-1 + sum_i omega_i x_i x_i',   omega_i ~ PG(1, x_i'theta)
        i: one of the rounds so far;   PG: the Polya-Gamma law

    (N. G. Polson, J. G. Scott and J. Windle, *Bayesian Inference for Logistic Models Using Polya-Gamma Latent
    Variables*). `sweeps` of them are made before every decision, from where the last round left off.

    Settings
    --------
    Sweeps before a decision.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.PG(), unfog.choose.Thompson()
    ... )
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive-adf"], rounds=30, trials=10, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.1, 2.6]
    """

    sweeps: int = 5

    name = "pg"
    note = "Polya-Gamma Gibbs sampling: the exact posterior"

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.count("sweeps", self.sweeps, most=MOST_STEPS)

    @property
    def steps(self) -> int:
        """Sweeps."""
        return self.sweeps

    def normals(self, known: Knowledge, seen: int) -> int:
        """One for each coordinate of theta, then those of every round's omega."""
        return known.prior_mean.shape[-1] + seen * logistic.normals()

    def work(self, known: Knowledge) -> int:
        """The precision matrix, and the making of normals and omega."""
        return known.prior_mean.shape[-1] ** 2 + 40 * logistic.normals()

    def step(self, parameters: Prior, state: State, normals: Array) -> State:
        """One sweep."""
        xp = normals.__array_namespace__()
        m, past = parameters.mean.shape[-1], state.past
        latent = normals[..., m:].reshape(*normals.shape[:-1], -1, logistic.normals())
        omega = logistic.draw(logits(past, state.theta).value, latent)
        precision = parameters.precision + (past.rows * omega[..., None, :]) @ past.rows.mT
        natural_mean = matvec(parameters.precision, parameters.mean)
        natural_mean = natural_mean + matvec(past.rows, past.rewards - 0.5)
        # Q^-1 (natural mean + L z) with Q = L L' has the right mean and covariance.
        draw = natural_mean + matvec(xp.linalg.cholesky(precision), normals[..., :m])
        return state._replace(theta=xp.linalg.solve(precision, draw[..., None])[..., 0])
