"""Assumed-density filtering that can take back."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.evidence import Evidence
from unfog.agents.learn import information
from unfog.agents.learn.adf import measurement
from unfog.agents.learn.history import PROBIT
from unfog.agents.learn.information import State, measured, whitened, whitened_mean
from unfog.agents.parts import Grows, Learner, TakesBack, Term
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Bools
from unfog.maths.gaussian import Belief
from unfog.maths.trees import either


@dataclass(frozen=True, kw_only=True)
class Sites(Grows, Learner, TakesBack):
    """Assumed-density filtering that can take back: one Gaussian site a reward, as in expectation
    propagation.

    A reward r in {0, 1} sees theta through the score s = row'theta alone. Its likelihood, sigmoid(s)^r (1 -
    sigmoid(s))^(1 - r), stands in the belief as a made-up measurement of s, its site, N(s; value, variance):
    precision tau = 1 / variance, natural mean nu = value / variance. Of all sites it is the one that gives s
    the mean and the variance which the likelihood itself gives it, s ~ N(a, v) being what all other sites and
    the prior say: the cavity. A site that is the last to come is that of `Adf`.

    When more becomes known of a round's context its site is divided out, and another is found along the new
    row against what is left (T. P. Minka, *Expectation Propagation for Approximate Bayesian Inference*; sites
    of other rounds stay as they are). With the belief N(m, Sigma), the old site (x, value, variance) taken
    out and left = variance - x'Sigma x, the score of the new row y has in the cavity

        a = y'm - y'Sigma x (value - x'm) / left,      v = y'Sigma y + (y'Sigma x)^2 / left
        a, v: mean and variance of the score;   m, Sigma: those of theta;   x, y: its row before and now

    The likelihood is log-concave, so tau > 0 and the cavity is always proper; only digits may be lacking.
    Where `left` has lost more than half of them, the round keeps its old site. What goes in comes out bit by
    bit: learn/information.py.

    A context that is hidden is averaged out of the likelihood, which is then sigmoid(s / sqrt(1 + pi/8 h)), h
    = E[theta'Cov(phi)theta] under the belief at the time. Before its reward a round's term has h for its
    variance.

    Settings
    --------
    `marginal` averages the context out of the likelihood, as long as it is hidden.

    >>> import unfog
    >>> agent = unfog.Agent("mine", unfog.denoise.Exact(), unfog.learn.Sites(), unfog.choose.Ucb())
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive-adf"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.9, 4.1]
    """

    marginal: bool = True

    name = "sites"
    note = "a Gaussian filtered reward by reward, which can take back what a past round said"
    rewards = "bernoulli"
    cost = 1.5
    squares = 3

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("marginal", self.marginal)

    @property
    def averages_context(self) -> bool:
        """As its setting says."""
        return self.marginal

    def setup(self, known: Knowledge) -> Array:
        """The prior's covariance, which tells whether it has blocks."""
        return known.prior_cov

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior."""
        return information.start(known)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """With the prior of what is new."""
        return information.grown(old.prior_cov, state, self.start(new, None))

    def belief(self, parameters: Array, state: State) -> Belief:
        """The prior and all sites."""
        return information.belief(parameters, state)

    def term(self, parameters: Array, evidence: Evidence) -> Term:
        """The row, and what not knowing the context adds to the variance of its score."""
        row = evidence.row()
        if self.marginal:
            return Term(row, evidence.context_variance())
        xp = row.__array_namespace__()
        return Term(row, xp.zeros(row.shape[:-1], dtype=row.dtype))

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """The belief with one more site."""
        term = self.fit(parameters, state, None, self.term(parameters, evidence), reward)
        return self.replace(parameters, state, None, term, reward)

    def fit(self, parameters: Array, state: State, old: Term | None, new: Term, reward: Array) -> Term:
        """The site along the new row; the old one where it cannot be divided out."""
        xp = new.row.__array_namespace__()
        mean, variance, proper = _cavity(parameters, state, old, new.row, reward)
        sign = (2 * reward - 1) / xp.sqrt(1 + PROBIT * new.variance)
        value, error = measurement(sign * mean, sign**2 * variance)
        site = Term(new.row, error / sign**2, value / sign)
        return site if old is None else either(proper, site, old)

    def replace(self, parameters: Array, state: State, old: Term | None, new: Term, reward: Array) -> State:
        """The belief with one site in place of another, or with one more."""
        return information.replaced(parameters, state, old, new, reward)


def _cavity(
    prior_cov: Array, state: State, old: Term | None, row: Array, reward: Array
) -> tuple[Array, Array, Bools]:
    """Mean and variance of a row's score without the old site, and whether they have enough digits."""
    xp = row.__array_namespace__()
    half, centre = whitened(prior_cov, state, row), whitened_mean(prior_cov, state)
    mean, variance = xp.vecdot(half, centre), xp.vecdot(half, half)
    if old is None:
        return mean, variance, xp.ones(mean.shape, dtype=bool)
    taken = whitened(prior_cov, state, old.row)
    left = old.variance - xp.vecdot(taken, taken)
    proper = left > xp.finfo(row.dtype).eps ** 0.5 * old.variance
    left, shared = xp.where(proper, left, old.variance), xp.vecdot(half, taken)
    surprise = measured(old, reward) - xp.vecdot(taken, centre)
    return mean - shared * surprise / left, variance + shared**2 / left, proper
