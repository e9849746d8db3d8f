"""What baselines share: their description, ridge regression with a width, and optimism.

`Baseline` describes a published system: its agent, what it must be told and sees, and where it is at home.
`EitherKind` is a learner that takes Gaussian rewards or 0 and 1, as a setting says: most baselines have one
rule for both, so that a row's two learners (`Agent.learner`, `Agent.binary_learner`) differ in that setting
alone.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence, Learner, View
from unfog.agents.choose.greedy import Largest
from unfog.agents.choose.ucb import moments
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief, as_matrix

BOUNDED = 0.5  # a reward between 0 and 1 has tails no heavier than those of N(0, 1/4)


class Baseline(NamedTuple):
    """A published system, as an agent. Its reference and a summary are the agent's."""

    agent: Agent
    needs: str  # what it must know, in words
    sees: str = "noisy contexts, taken for true ones"  # what it sees of contexts, in words
    regret: str = "regret_true_context"  # the loss of theory/regret.py that its paper bounds
    home: str = ""  # the experiment of the catalog with its paper's own problem; empty where it has none
    tuned: str = ""  # the setting that says how much it explores; empty where it has none
    grid: tuple[float, ...] = ()  # values of that setting to tune over on other seeds; equally many for all
    sure: str = "high"  # how sure we are of its formulas and constants: high, medium or low


@dataclass(frozen=True, kw_only=True)
class EitherKind(Learner):
    """A base for learners of either kind of rewards; `zero_one` says that rewards are 0 or 1."""

    zero_one: bool = False

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("zero_one", self.zero_one)

    @property
    def rewards(self) -> str:  # type: ignore[override]
        """The kind of rewards that `zero_one` says."""
        return "bernoulli" if self.zero_one else "gaussian"


class Sizes(NamedTuple):
    """What papers ask to be told of rewards and of theta."""

    noise: Array  # ()  R: rewards have tails no heavier than those of N(0, R^2)
    norm: Array  # ()  S: how long theta is, as its prior has it
    dim: int  # m


class State(NamedTuple):
    """The ellipsoid without its width."""

    ball: Belief  # N(theta_hat, V^-1)
    volume: Array  # (...,)  ln(det V / det l I)
    seen: Array  # (...,)  rewards


@dataclass(frozen=True, kw_only=True)
class Ridge(EitherKind):
    """Ridge regression with a width: what linear bandits with confidence ellipsoids learn.

        V = l I + sum x x',    theta_hat = V^-1 sum x r,    |theta - theta_hat|_V <= beta_t

    kept as the Gaussian N(theta_hat, V^-1) by the rank-one update of maths/gaussian.py (a prior N(0, I / l)
    and rewards of variance one give the same V and theta_hat), and as ln(det V / det l I), which grows by
    ln(1 + x'V^-1 x). What is believed is N(theta_hat, beta_t^2 V^-1): an optimist adds one deviation of a
    score to its mean (`Optimism`), a sampler draws from it. Baselines differ in beta_t alone: they
    inherit this learner and say their own `width`. Nothing is taken from the prior that agents are told,
    except for the sizes that a baseline's paper says must be known.

    Settings
    --------
    `ridge` is l; `zero_one` where rewards are 0 or 1, which it takes for any numbers.
    """

    ridge: float = 1.0

    name = "ridge"
    note = "ridge regression"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.positive("ridge", self.ridge)

    def setup(self, known: Knowledge) -> Sizes:
        """R, S and the number of features."""
        return sizes(known)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """Before the first reward: V = l I; in blocks where the prior has blocks."""
        eye = np.broadcast_to(np.eye(known.prior_cov.shape[-1]), known.prior_cov.shape)
        ball = gaussian.belief_from_moments(np.zeros(known.prior_mean.shape), eye / self.ridge)
        return State(ball, np.zeros(()), np.zeros(()))

    def width(self, parameters: Sizes, state: State) -> Array:
        """beta_t, (...,): one by default."""
        xp = state.volume.__array_namespace__()
        width: Array = xp.ones_like(state.volume)
        return width

    def belief(self, parameters: Sizes, state: State) -> Belief:
        """N(theta_hat, beta_t^2 V^-1)."""
        root = state.ball.root
        width = self.width(parameters, state)
        width = width.reshape(*width.shape, *[1] * (root.ndim - width.ndim))
        return type(state.ball)(state.ball.mean, root * width)

    def update(self, parameters: Sizes, state: State, evidence: Evidence, reward: Array) -> State:
        """The state after one more row and its reward."""
        return self.added(state, evidence.row(), reward)

    def added(self, state: State, row: Array, reward: Array) -> State:
        """V and theta_hat with one more row (..., m)."""
        xp, half = row.__array_namespace__(), state.ball.half(row)
        one = xp.ones((), dtype=row.dtype)
        volume = state.volume + xp.log(1 + state.ball.variance(row, half))
        return State(state.ball.condition(row, reward, one, half), volume, state.seen + one)


def sizes(known: Knowledge) -> Sizes:
    """R and S, from the variance of rewards and the prior of theta."""
    noise = BOUNDED if known.reward_var is None else known.reward_var**0.5
    spread = np.trace(as_matrix(known.prior_cov))
    norm = np.sqrt(np.vecdot(known.prior_mean, known.prior_mean) + spread)
    return Sizes(np.asarray(noise), np.asarray(norm), known.prior_mean.shape[-1])


@dataclass(frozen=True, kw_only=True)
class Optimism(Largest):
    """Optimism: the arm with the largest psi(a)'E[theta] + alpha sd(psi(a)'theta).

    With a belief N(theta_hat, beta^2 V^-1) and alpha = 1 this is argmax psi(a)'theta_hat + beta
    |psi(a)|_{V^-1}: the best arm of the best theta in the ellipsoid.

    Settings
    --------
    How many deviations are added.
    """

    alpha: float = 1.0

    name = "optimism"
    note = "the largest mean and so many deviations"

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.not_negative("alpha", self.alpha)

    def bounds(self, view: View) -> Array:
        """The upper bound of the score of every arm that may be chosen: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        return view.mask(mean + self.alpha * xp.sqrt(variance))
