"""The conjugate Gaussian learner, and the one that weighs each reward by the variance it really has."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.base import Evidence, Grows, Learner, State
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief


@dataclass(frozen=True, kw_only=True)
class Conjugate(Grows, Learner):
    """The conjugate Gaussian learner: r = x'theta + N(0, sigma^2), theta ~ N(prior_mean, prior_cov).

    Precision prior_cov^-1 + sum x x' / sigma^2, kept as a square root of the covariance and updated by a
    rank-one formula (the paper's mu_t and Sigma_t for Gaussian bandits; there Sigma_t is a precision, and the
    initial value printed in its Algorithm 3 is the inverse of what is meant). x is the expected feature
    psi_H(a) where contexts stay hidden and phi(a, c) where they are revealed. A prior of independent blocks
    is kept in blocks.

    It has no settings.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Conjugate(), unfog.choose.Thompson()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [6.8, 8.0]
    """

    name = "conjugate"
    note = "takes expected features for the features themselves"
    rewards = "gaussian"

    def setup(self, known: Knowledge) -> Array:
        """The variance of a reward given its features."""
        return reward_variance(known)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior."""
        return gaussian.belief_from_moments(known.prior_mean, known.prior_cov)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state with the prior of the new arms."""
        return gaussian.extend_belief(state, self.start(new, None))

    def belief(self, parameters: Array, state: State) -> Belief:
        """The posterior, which is the state itself."""
        return state

    def noise(self, parameters: Array, state: State, hidden: Array | float) -> Array:
        """The told variance, plus what the context hides."""
        return parameters + hidden

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """The posterior after one more reward."""
        return state.condition(evidence.row(), reward, parameters)


def reward_variance(known: Knowledge) -> Array:
    """The variance of a reward given its features, where rewards have Gaussian noise.

    >>> import unfog
    >>> from unfog.agents.learn.conjugate import reward_variance
    >>> float(reward_variance(unfog.GaussianProblem(dim=2, actions=5, reward_var=2.0).knowledge()))
    2.0
    """
    if known.reward_var is None:
        raise ValueError("this learner is for rewards with Gaussian noise")
    return known.reward_var


@dataclass(frozen=True, kw_only=True)
class Hetero(Conjugate):
    """The conjugate learner with the variance that a reward really has: r = x'theta + N(0, sigma^2 + w).

    A reward depends on phi(a, c), of which x is only the mean; given theta and what is known of the context
    its variance is sigma^2 + theta'Cov(phi)theta. That is not conjugate, but with theta averaged out of it
    under the belief N(mean, Sigma) of the round,

        w = E[theta'Cov(phi)theta] = E[theta]'Cov(phi) E[theta] + tr(Cov(phi) Cov(theta))

    The rank-one update stays: rounds whose context is poorly known, or whose arm depends on it, count for
    less. A round whose context was revealed has w = 0.

    The size of a surprise e = r - x'mean says something of theta as well, since theta decides the variance.
    With t = sigma^2 + w + x'Sigma x the variance that e was thought to have, e^2 has mean t and variance 2
    t^2, and about the mean w changes with theta as 2 mean'Cov(phi): so e^2 - t is one more measurement of
    theta, of the variance 2 t^2 and linear in it (one step of Fisher's scoring; `surprise`). It counts for
    (sigma^2 + w) / t of its size, the share of the surprise that is not due to theta.

    Settings
    --------
    Whether it learns from the size of `surprise`s, too.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Hetero(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.8, 8.0]
    """

    surprise: bool = False

    name = "hetero"
    note = "weighs rewards by the variance they have given their expected features"

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("surprise", self.surprise)

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """The posterior after one more reward."""
        variance = parameters + evidence.context_variance()
        if not self.surprise:
            return state.condition(evidence.row(), reward, variance)
        return _learn_surprise(state, evidence.row(), reward, variance, 2 * evidence.context_slope())


def _learn_surprise(state: State, row: Array, reward: Array, variance: Array, slope: Array) -> State:
    """Learn from the reward, then from the square of its surprise; slope (..., m) is that of w."""
    xp = row.__array_namespace__()
    before, after = state, state.condition(row, reward, variance)
    expected = variance + before.variance(row)
    square = (reward - xp.vecdot(row, before.centre)) ** 2
    value = xp.vecdot(slope, after.centre) + variance * (square / expected - 1)
    return after.condition(slope, value, 2 * expected**2)
