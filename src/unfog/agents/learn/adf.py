"""Assumed-density filtering, and the same with one site for each reward, which can be taken back."""

from dataclasses import dataclass

import numpy as np

from unfog import validation
from unfog.agents.base import Evidence, Grows, Learner, ReplacesTerms, Term
from unfog.agents.learn import revisable
from unfog.agents.learn.logistic import PROBIT
from unfog.agents.learn.revisable import State, term_value, whiten, whiten_mean
from unfog.channel.knowledge import Knowledge
from unfog.features.base import quadratic_form
from unfog.maths import gaussian
from unfog.maths.arrays import Array, Bools, matvec
from unfog.maths.gaussian import Belief, Gaussian, as_matrix
from unfog.maths.logistic import sigmoid, softplus
from unfog.maths.trees import where

NODES = np.linspace(-1.0, 1.0, 80)
REACH = 6.0  # prior standard deviations from the mode: the posterior falls at least as fast as the prior
NEWTON = 7


@dataclass(frozen=True, kw_only=True)
class Adf(Grows, Learner):
    """Assumed-density filtering: a Gaussian belief about theta, moved to the moments of its own posterior.

    A reward r in {0, 1} sees theta through the score s = x'theta alone, which is N(a, v) under the belief.
    Its posterior, proportional to N(s; a, v) sigmoid(s)^r (1 - sigmoid(s))^(1 - r), has a mean a' and a
    variance v' that one integral over a line gives; the Gaussian with these moments is what the rank-one
    update by a made-up measurement of variance 1 / (1/v' - 1/v) yields. The work of a round does not grow
    with the rounds before. M. Opper, *A Bayesian approach to on-line learning*; T. P. Minka, *A family of
    algorithms for approximate Bayesian inference*.

    The integral is a sum over points about the mode, dense there and sparse far off, s = mode + w sinh(x): a
    reward that was thought all but impossible is handled as exactly as any other.

    Settings
    --------
    `marginal` averages the context out of the likelihood.

    >>> import unfog
    >>> agent = unfog.Agent("mine", unfog.denoise.Exact(), unfog.learn.Adf(), unfog.choose.Ucb())
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive-adf"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.8, 4.1]
    """

    marginal: bool = False

    name = "adf"
    note = "a Gaussian filtered reward by reward, at constant cost"
    rewards = "bernoulli"
    dense = True

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("marginal", self.marginal)

    @property
    def averages_context(self) -> bool:
        """Whether `marginal` is set."""
        return self.marginal

    def setup(self, known: Knowledge) -> tuple[()]:
        """Nothing."""
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> Gaussian:
        """The prior."""
        return gaussian.from_moments(known.prior_mean, as_matrix(known.prior_cov))

    def grow(self, old: Knowledge, new: Knowledge, state: Gaussian) -> Gaussian:
        """The state with the prior of the new arms."""
        fresh = self.start(new, None)
        return Gaussian(gaussian.longer(state.mean, fresh.mean, -1), gaussian.larger(state.root, fresh.root))

    def belief(self, parameters: tuple[()], state: Gaussian) -> Gaussian:
        """The state itself."""
        return state

    def update(self, parameters: tuple[()], state: Gaussian, evidence: Evidence, reward: Array) -> Gaussian:
        """The belief with the moments of the posterior after one more reward."""
        row = evidence.row()
        xp = row.__array_namespace__()
        half = matvec(state.root.mT, row)
        mean, variance = xp.vecdot(row, state.mean), xp.vecdot(half, half)
        scale = 1 / xp.sqrt(1 + PROBIT * _context_variance(state, evidence)) if self.marginal else 1.0
        sign = scale * (2 * reward - 1)
        value, error = measurement(sign * mean, sign**2 * variance)
        return state.condition(row, value / sign, error / sign**2)


def _context_variance(state: Gaussian, evidence: Evidence) -> Array:
    """E[theta'Cov(phi)theta] under the belief: what not knowing the context adds to a score's variance."""
    return quadratic_form(state.mean, state.root, evidence.covariance())


def measurement(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Value and variance of the measurement that moves N(mean, variance) to the moments of its posterior.

    The posterior is proportional to N(s; mean, variance) sigmoid(s).
    """
    xp = mean.__array_namespace__()
    # A row of zeros has no variance and teaches nothing: the smallest normal number avoids division by zero.
    variance = xp.maximum(variance, xp.finfo(mean.dtype).tiny)
    mode, deviation = _mode(mean, variance), xp.sqrt(variance)
    narrow = 1 / xp.sqrt(1 + variance * sigmoid(mode) * sigmoid(-mode))
    stretch = xp.log(REACH / narrow + xp.sqrt((REACH / narrow) ** 2 + 1))  # its sinh reaches REACH
    x = stretch[..., None] * xp.asarray(NODES, dtype=mean.dtype)
    offset = narrow[..., None] * xp.sinh(x)
    mode_gap = ((mode - mean) / deviation)[..., None]
    deviations = mode_gap + offset
    scores = mode[..., None] + deviation[..., None] * offset
    heights = xp.exp(softplus(-mode)[..., None] - softplus(-scores) - 0.5 * (deviations**2 - mode_gap**2))
    weights = xp.cosh(x) * heights
    weights = weights / weights.sum(-1)[..., None]
    shift = xp.vecdot(weights, deviations)
    spread = xp.vecdot(weights, (deviations - shift[..., None]) ** 2)
    gain = xp.maximum(1 - spread, xp.finfo(spread.dtype).eps)  # below rounding nothing was learnt
    return mean + xp.sqrt(variance) * shift / gain, variance * spread / gain


def _mode(mean: Array, variance: Array) -> Array:
    """Where N(s; mean, variance) sigmoid(s) is largest: s - mean = variance sigmoid(-s).

    Newton's steps on the logarithms of both sides, whose difference is nearly linear, inside a bracket.
    """
    xp = mean.__array_namespace__()
    low, high = mean, mean + variance
    upper = mean + xp.log1p(variance * sigmoid(-mean))
    above = xp.where(mean > 0, upper, xp.log1p(variance / (1 + xp.abs(mean))))
    mode = xp.clip(xp.where(high < 0, high, above), low, high)
    for _ in range(NEWTON):
        gap = xp.maximum(mode - mean, xp.finfo(mean.dtype).tiny)
        ratio = xp.log(gap) + softplus(mode) - xp.log(variance)
        # One ratio decides both the side and the step: with two, rounding could lose the mode at the end.
        low, high = xp.where(ratio < 0, mode, low), xp.where(ratio < 0, high, mode)
        step = mode - ratio / (1 / gap + sigmoid(mode))
        mode = xp.where((step >= low) & (step <= high), step, 0.5 * (low + high))
    return mode


@dataclass(frozen=True, kw_only=True)
class Sites(Grows, Learner, ReplacesTerms):
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
    bit: learn/revisable.py.

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
        """Whether `marginal` is set."""
        return self.marginal

    def setup(self, known: Knowledge) -> Array:
        """The prior's covariance, which tells whether it has blocks."""
        return known.prior_cov

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior."""
        return revisable.start(known)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state with the prior of the new arms."""
        return revisable.extend_state(old.prior_cov, state, self.start(new, None))

    def belief(self, parameters: Array, state: State) -> Belief:
        """The prior and all sites."""
        return revisable.belief(parameters, state)

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
        return site if old is None else where(proper, site, old)

    def replace(self, parameters: Array, state: State, old: Term | None, new: Term, reward: Array) -> State:
        """The belief with one site in place of another, or with one more."""
        return revisable.replace_term(parameters, state, old, new, reward)


def _cavity(
    prior_cov: Array, state: State, old: Term | None, row: Array, reward: Array
) -> tuple[Array, Array, Bools]:
    """Mean and variance of a row's score without the old site, and whether they have enough digits."""
    xp = row.__array_namespace__()
    half, centre = whiten(prior_cov, state, row), whiten_mean(prior_cov, state)
    mean, variance = xp.vecdot(half, centre), xp.vecdot(half, half)
    if old is None:
        return mean, variance, xp.ones(mean.shape, dtype=bool)
    old_half = whiten(prior_cov, state, old.row)
    left = old.variance - xp.vecdot(old_half, old_half)
    proper = left > xp.finfo(row.dtype).eps ** 0.5 * old.variance
    left, cross = xp.where(proper, left, old.variance), xp.vecdot(half, old_half)
    surprise = term_value(old, reward) - xp.vecdot(old_half, centre)
    return mean - cross * surprise / left, variance + cross**2 / left, proper
