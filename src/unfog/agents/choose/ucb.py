"""Bayes-UCB."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from unfog import validation
from unfog.agents.choose.greedy import rounds_so_far
from unfog.agents.choose.largest import Largest
from unfog.agents.parts import View
from unfog.maths.arrays import Array
from unfog.maths.random import exceeded
from unfog.validation import InputError


@dataclass(frozen=True, kw_only=True)
class Ucb(Largest):
    """Bayes-UCB: the arm whose score has the largest upper quantile under the belief about theta.

        argmax_a psi(a)'E[theta] + z_t sd(psi(a)'theta)
        z_t: the normal quantile at the level of round t

    E. Kaufmann, O. Cappe and A. Garivier, *On Bayesian Upper Confidence Bounds for Bandit Problems*. Their
    level is 1 - 1 / (t (ln n)^c); here it is 1 - (1 - quantile) / t^growth with rounds t = 1, 2, ..., so that
    growth 1 is theirs with c = 0 and growth 0, a constant level, needs no number of the round. A constant 1.7
    deviations above the mean costs least over all our experiments together, but locks in where contexts do
    not explore (choose/rand_ucb.py draws the level and does not): docs/notebook/agents.md.

    Settings
    --------
    `quantile` is the level of the first round, `growth` how fast it nears one.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.Ucb(quantile=0.9)
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.3, 8.0]
    """

    quantile: float = 0.955
    growth: float = 0.0

    name = "ucb"
    draws_theta = False
    note = "Bayes-UCB: the largest upper quantile"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_level("quantile", self.quantile)
        validation.not_negative("growth", self.growth)

    def bounds(self, view: View) -> Array:
        """The upper quantile of the score of every arm that may be chosen: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        if self.growth == 0:
            return view.among(mean + NormalDist().inv_cdf(self.quantile) * xp.sqrt(variance))
        tail = (1 - self.quantile) / rounds_so_far(view, mean) ** self.growth
        return view.among(mean + exceeded(xp.asarray(tail))[..., None] * xp.sqrt(variance))


def moments(view: View) -> tuple[Array, Array]:
    """Mean and variance of every arm's score: (..., K) each."""
    fitting: Any = view.belief  # a belief in blocks comes with a design in blocks
    return view.design.scores(view.belief.centre), view.design.variances(fitting)


def check_level(field: str, value: object) -> float:
    """At least one half, so that what is uncertain is not shunned, and less than one."""
    allowed = "a number, at least 0.5 and less than 1"
    try:
        level = validation.positive(field, value)
    except InputError:
        raise InputError(field, repr(value), allowed) from None
    if not 0.5 <= level < 1:
        raise InputError(field, repr(value), allowed)
    return level
