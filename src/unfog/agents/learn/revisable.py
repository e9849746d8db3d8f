"""A Gaussian learner that can take back."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.agents.evidence import Evidence
from unfog.agents.learn import information
from unfog.agents.learn.conjugate import reward_variance
from unfog.agents.learn.information import State
from unfog.agents.parts import Grows, Learner, TakesBack, Term
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief


class Parameters(NamedTuple):
    """What is known of rewards and theta to begin with."""

    reward_var: Array  # ()  sigma^2
    prior_cov: Array  # (m, m), or (B, k, k): independent blocks


@dataclass(frozen=True, kw_only=True)
class Revisable(Grows, Learner, TakesBack):
    """A Gaussian learner that can take back: theta in information form, a sum of one term for every round.

        theta ~ N(P^-1 b, P^-1),   P = prior_cov^-1 + sum x x' / w,
        b = prior_cov^-1 prior_mean + sum x r / w
        w = sigma^2 + E[theta'Cov(phi)theta], as it was believed to be at the time

    When the context of a past round comes to be known, its term is replaced by another (`replace`), in any
    order and any number of times. The variance w of a reward is that given what is known of the context
    (heteroscedastic), and is kept with the round, since the very number that went in must come out. A prior
    of independent blocks is kept in blocks. The sums and their digits: learn/information.py.

    Settings
    --------
    `hetero` counts what is not known of the context as noise of the reward.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Incomplete(pairs=True), unfog.learn.Revisable(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, revealed=0.3, late=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [5.2, 8.0]
    """

    hetero: bool = True

    name = "revisable"
    note = "can take back what a past round said, when more of its context becomes known"
    rewards = "gaussian"
    cost = 1.5
    squares = 3

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("hetero", self.hetero)

    def setup(self, known: Knowledge) -> Parameters:
        """The variance of a reward given its features; the prior's covariance tells whether it has blocks."""
        return Parameters(reward_variance(known), known.prior_cov)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior."""
        return information.start(known)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """With the prior of what is new."""
        return information.grown(old.prior_cov, state, self.start(new, None))

    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The posterior."""
        return information.belief(parameters.prior_cov, state)

    def noise(self, parameters: Parameters, state: State, hidden: Array | float) -> Array:
        """As told."""
        return parameters.reward_var + hidden

    def term(self, parameters: Parameters, evidence: Evidence) -> Term:
        """The row, and sigma^2 + E[theta' Cov(phi) theta]."""
        if not self.hetero:
            return Term(evidence.row(), parameters.reward_var)
        return Term(evidence.row(), parameters.reward_var + evidence.context_variance())

    def update(self, parameters: Parameters, state: State, evidence: Evidence, reward: Array) -> State:
        """The belief after one more reward."""
        return self.replace(parameters, state, None, self.term(parameters, evidence), reward)

    def replace(
        self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array
    ) -> State:
        """The belief with one round's term replaced by another, or with one more."""
        return information.replaced(parameters.prior_cov, state, old, new, reward)
