"""Polya-Gamma Gibbs sampling."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.learn.history import logits
from unfog.agents.learn.posterior import Prior
from unfog.agents.learn.refit import MOST_STEPS, Refit, State
from unfog.channel.knowledge import Knowledge
from unfog.maths import logistic
from unfog.maths.arrays import Array, matvec


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
        # Q^-1 (natural mean + L z) with Q = L L' has the mean and the covariance wanted.
        drawn = natural_mean + matvec(xp.linalg.cholesky(precision), normals[..., :m])
        return state._replace(theta=xp.linalg.solve(precision, drawn[..., None])[..., 0])
