"""The learner that weighs a reward by its variance."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.evidence import Evidence
from unfog.agents.learn.conjugate import Conjugate
from unfog.agents.parts import State
from unfog.maths.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Hetero(Conjugate):
    """The conjugate learner with the variance that a reward really has: r = x'theta + N(0, sigma^2 + w).

    A reward hangs on phi(a, c), of which x is only the mean; given theta and what is known of the context its
    variance is sigma^2 + theta'Cov(phi)theta. That is not conjugate, but with theta averaged out of it under
    the belief N(mean, Sigma) of the round,

        w = E[theta'Cov(phi)theta] = E[theta]'Cov(phi) E[theta] + tr(Cov(phi) Cov(theta))

    The rank-one update stays: rounds whose context is poorly known, or whose arm hangs on it, count for less.
    A round whose context was revealed has w = 0.

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
        return _with_surprise(state, evidence.row(), reward, variance, 2 * evidence.context_slope())


def _with_surprise(state: State, row: Array, reward: Array, variance: Array, slope: Array) -> State:
    """The reward itself, then the square of its surprise: slope (..., m) is that of w."""
    xp = row.__array_namespace__()
    before, after = state, state.condition(row, reward, variance)
    expected = variance + before.variance(row)
    square = (reward - xp.vecdot(row, before.centre)) ** 2
    value = xp.vecdot(slope, after.centre) + variance * (square / expected - 1)
    return after.condition(slope, value, 2 * expected**2)
