"""Learners of 0/1 rewards that keep all past rounds: their history, their posterior, Laplace's approximation.

The likelihood of a reward is Bernoulli(sigmoid(logit)), with logit = x'theta for the expected features x, as
in the paper's Algorithm 1, or with the context averaged out, E[sigmoid(phi'theta)], by D. J. C. MacKay's
approximation (*The evidence framework applied to classification networks*): x'theta / sqrt(1 + pi/8 v), where
v = theta'Cov(phi)theta is the variance of the score.

Minus the log density of the posterior of theta is, up to a constant,

    U(theta) = (theta - mu)'P(theta - mu) / 2 + sum_i (log(1 + exp(z_i)) - r_i z_i),

with P the prior's precision and z_i the logit of round i, whose gradient is g_i. The gradient of U is
P(theta - mu) + sum_i (sigmoid(z_i) - r_i) g_i. Its Hessian is P + sum_i sigmoid'(z_i) g_i g_i' where logits
are linear in theta; where they are not, this is Gauss and Newton's approximation of it.

Such a belief about theta cannot be updated in place: these learners (`Refit`) refine theta by steps before
every decision. In a history of fixed size, a round that is still to come is a column of zeros. Its logit is 0
whatever theta is, so that it says nothing.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from unfog import validation
from unfog.agents.base import Evidence, Grows, Learner, RunsChain
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Gaussian, as_matrix, certain
from unfog.maths.logistic import sigmoid, softplus

PROBIT = np.pi / 8
MOST_STEPS = 10_000
FRACTIONS = (0.5, 0.2, 0.05, 0.01, 0.001)  # shares of a Newton step that are tried
GAIN = 1e-12  # relative gain in U for which a fraction is preferred: far above rounding


class History(NamedTuple):
    """What was chosen and what it paid, in the order of the rounds."""

    rows: Array  # (..., m, n)  expected features, a column a round
    rewards: Array  # (..., n)
    spreads: Array | None  # (..., n, m, m)  Cov(phi), if contexts are averaged out
    seen: Array  # ()  rounds so far
    slots: Array | None  # (n,)  0, 1, ..., n - 1 in a history of fixed size; None in one that grows


def blank(known: Knowledge, rounds: int | None, marginal: bool) -> History:
    """An empty history, of fixed size or growing; `marginal` keeps Cov(phi), to average the context out."""
    m, n = known.prior_mean.shape[-1], rounds or 0
    spreads = np.zeros((n, m, m)) if marginal else None
    slots = None if rounds is None else np.arange(n, dtype=np.float64)
    return History(np.zeros((m, n)), np.zeros(n), spreads, np.zeros(()), slots)


def add(past: History, evidence: Evidence, reward: Array) -> History:
    """One more round and its reward (...,)."""
    spreads = past.spreads
    rows = write_entry(past, past.rows, evidence.row()[..., None], -1)
    rewards = write_entry(past, past.rewards, reward[..., None], -1)
    if spreads is not None:
        spreads = write_entry(past, spreads, evidence.covariance()[..., None, :, :], -3)
    return past._replace(rows=rows, rewards=rewards, spreads=spreads, seen=past.seen + 1)


class Slots(Protocol):
    """How far a memory of rounds is filled: the two fields of `History` that say so."""

    @property
    def seen(self) -> Array:
        """Rounds so far, ()."""

    @property
    def slots(self) -> Array | None:
        """0, 1, ..., n - 1, (n,), where it has fixed size; None where it grows."""


def write_entry(past: Slots, old: Array, new: Array, axis: int) -> Array:
    """The array with one more entry along an axis: in its slot, or at the end."""
    xp = new.__array_namespace__()
    if past.slots is not None:
        is_slot = (past.slots == past.seen).reshape(-1, *[1] * (-1 - axis))
        return xp.where(is_slot, new, old)
    batch = new.shape[: new.ndim - old.ndim] if new.ndim > old.ndim else ()
    longer: Array = xp.concat([xp.broadcast_to(old, (*batch, *old.shape)), new], axis=axis)
    return longer


def longer(past: History, size: int) -> History:
    """The history with `size` features, the new ones zero in all rounds."""
    rows = gaussian.longer(past.rows, np.zeros((size, past.rows.shape[-1])), -2)
    if past.spreads is None:
        return past._replace(rows=rows)
    return past._replace(rows=rows, spreads=gaussian.larger(past.spreads, np.zeros((size, size))))


class Logits(NamedTuple):
    """The logits of all rounds at one theta, and how they change with it."""

    value: Array  # (..., n)
    rows: Array  # (..., m, n)  their gradients, a column each


def logits(past: History, theta: Array) -> Logits:
    """The logits of all rounds at this theta, (..., m), and their gradients."""
    score = (theta[..., None, :] @ past.rows)[..., 0, :]
    if past.spreads is None:
        return Logits(score, past.rows)
    xp = score.__array_namespace__()
    cov_theta = matvec(past.spreads, theta[..., None, :])
    shrink = 1 / xp.sqrt(1 + PROBIT * xp.vecdot(cov_theta, theta[..., None, :]))
    gradient = past.rows * shrink[..., None, :] - (PROBIT * shrink**3 * score)[..., None, :] * cov_theta.mT
    return Logits(score * shrink, gradient)


class Prior(NamedTuple):
    """theta ~ N(mean, precision^-1)."""

    mean: Array  # (m,)
    precision: Array  # (m, m)


def prior(known: Knowledge) -> Prior:
    """The prior in the form that the posterior needs."""
    return Prior(known.prior_mean, np.asarray(np.linalg.inv(as_matrix(known.prior_cov)), np.float64))


def energy(prior: Prior, past: History, theta: Array) -> Array:
    """U(theta): (..., m) -> (...,)."""
    xp = theta.__array_namespace__()
    z, deviation = logits(past, theta).value, theta - prior.mean
    misfit = (softplus(z) - past.rewards * z).sum(-1)
    value: Array = 0.5 * xp.vecdot(deviation, matvec(prior.precision, deviation)) + misfit
    return value


def gradient(prior: Prior, past: History, theta: Array) -> Array:
    """U'(theta): (..., m)."""
    fit = logits(past, theta)
    misfit = matvec(fit.rows, sigmoid(fit.value) - past.rewards)
    return matvec(prior.precision, theta - prior.mean) + misfit


def hessian(prior: Prior, past: History, theta: Array) -> Array:
    """U''(theta): (..., m, m)."""
    fit = logits(past, theta)
    chance = sigmoid(fit.value)
    weighed = fit.rows * (chance * (1 - chance))[..., None, :]
    return prior.precision + weighed @ fit.rows.mT


class State(NamedTuple):
    """The rounds so far and where the steps have come to."""

    past: History
    theta: Array  # (..., m)


@dataclass(frozen=True, kw_only=True)
class Refit(Grows, Learner, RunsChain):
    """A base for learners that refine theta by steps; subclasses say the steps."""

    rewards = "bernoulli"
    dense = True

    def memory_size(self, known: Knowledge, rounds: int) -> int:
        """All rounds, twice over while one is added, and the normals of a decision."""
        m = known.prior_mean.shape[-1]
        normals = self.normals(known, rounds) * self.steps
        return 4 * rounds * m * (m if self.averages_context else 1) + 2 * normals

    def setup(self, known: Knowledge) -> Prior:
        """The prior."""
        return prior(known)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """An empty history, and the prior mean to start from."""
        return State(blank(known, rounds, self.averages_context), np.asarray(known.prior_mean))

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """Past rounds are zero in what is new, and the steps go on from its prior mean."""
        past = longer(state.past, new.prior_mean.shape[-1])
        return State(past, gaussian.longer(state.theta, np.asarray(new.prior_mean), -1))

    def belief(self, parameters: Prior, state: State) -> Gaussian:
        """A sampler is certain of its current sample."""
        return certain(state.theta)

    def update(self, parameters: Prior, state: State, evidence: Evidence, reward: Array) -> State:
        """Remember the round."""
        return state._replace(past=add(state.past, evidence, reward))


@dataclass(frozen=True, kw_only=True)
class Laplace(Refit):
    """Laplace's approximation: the logistic posterior as a Gaussian at its mode.

        theta ~ N(mode, U''(mode)^-1),   mode = argmin U
        U: minus the log density of theta given all rewards

    Before every decision a few of Newton's steps lead from the last mode to the new one. Of a step's
    fractions 1, 1/2, ..., 1/1000 the one with the least U is taken: a full step overshoots where sigmoids are
    saturated. Near the mode, where they differ in U by rounding alone, it is the full step. O. Chapelle
    and L. Li, *An Empirical Evaluation of Thompson Sampling*, with all covariances and all rounds.

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
        """Whether `marginal` is set."""
        return self.marginal

    def normals(self, known: Knowledge, seen: int) -> int:
        """No random numbers."""
        return 0

    def work(self, known: Knowledge) -> int:
        """The Hessian, and the energy at every fraction."""
        m = known.prior_mean.shape[-1]
        return m**2 + (len(FRACTIONS) + 3) * (m * (1 + m * self.marginal) + 20)

    def step(self, parameters: Prior, state: State, normals: Array) -> State:
        """One step of Newton's, or a fraction of it."""
        mode, past = state.theta, state.past
        xp = mode.__array_namespace__()
        slope = gradient(parameters, past, mode)[..., None]
        move = xp.linalg.solve(hessian(parameters, past, mode), -slope)[..., 0]
        best = mode + move
        least = energy(parameters, past, best)
        for fraction in FRACTIONS:
            candidate = mode + fraction * move
            height = energy(parameters, past, candidate)
            better = height < least - GAIN * xp.abs(least)
            best = xp.where(better[..., None], candidate, best)
            least = xp.where(better, height, least)
        return state._replace(theta=best)

    def belief(self, parameters: Prior, state: State) -> Gaussian:
        """The Gaussian at the mode."""
        xp = state.theta.__array_namespace__()
        factor = xp.linalg.cholesky(hessian(parameters, state.past, state.theta))
        return Gaussian(state.theta, xp.linalg.inv(factor).mT)
