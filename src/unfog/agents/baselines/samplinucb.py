"""SampLinUCB: arms have constant profiles, which must be learnt from noisy samples.

The denoiser (`Averages`) takes the means of all readings, the learner (`Profiles`) does ridge regression on
profiles that become known better, past plays too, and the chooser (`Reach`), which has the formulas, is
optimistic about theta and the profile.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Counts, Denoiser, Evidence, Hindsight, LooksBack, Privilege, View
from unfog.agents.baselines.base import Baseline, EitherKind, Optimism, Sizes, sizes
from unfog.agents.choose.ucb import moments
from unfog.channel.knowledge import Knowledge, Shrinkage
from unfog.features import Context, FeatureMap
from unfog.features.linear import Own
from unfog.maths.arrays import Array, Ints, diagonal_matrix, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian, certain

PAPER = "Lamprier, Gisselbrecht and Gallinari, Profile-Based Bandit with Unknown Profiles"
UNSEEN = 1e30  # the reach of an arm that must be played; its negative marks one that must not


class Tally(NamedTuple):
    """How often each coordinate was read, and the moments of its readings."""

    number: Array  # (..., d)
    mean: Array  # (..., d)  zero before the first
    spread: Array  # (..., d)  sum of squared deviations from the mean

    def plus(self, noisy: Array) -> "Tally":
        """The tally after one more reading (..., d), NaN where a coordinate was lost."""
        xp = noisy.__array_namespace__()
        lost = xp.isnan(noisy)
        number = self.number + (~lost).astype(noisy.dtype)
        deviation = xp.where(lost, 0.0, noisy - self.mean)
        mean = self.mean + deviation / xp.maximum(number, 1.0)
        return Tally(number, mean, self.spread + deviation * xp.where(lost, 0.0, noisy - mean))

    def context(self) -> Context:
        """The moments, as a belief."""
        xp = self.number.__array_namespace__()
        return Context(self.mean, diagonal_matrix(self.spread / xp.maximum(self.number, 1.0)))


def start_averages(like: Array) -> Tally:
    """Before the first reading, for coordinates as many as here: (d,)."""
    xp = like.__array_namespace__()
    return Tally(*[xp.zeros_like(like)] * 3)


@dataclass(frozen=True, kw_only=True)
class Averages(Denoiser, Counts):
    """Averages of all readings so far: for those who take the context, or the profile of an arm, for
    constant.

    Mean and variance of every coordinate over the readings that have it, by the update of B. P. Welford,
    *Note on a method for calculating corrected sums of squares and products*. At them the expected features
    of a map without powers beyond squares, and without products of coordinates, are the averages of phi(a,
    chat) over rounds, for every arm. Other maps get the expectation under a Gaussian with these moments.

    It has no settings. Its hindsight says of every round the same, whatever was read in it.
    """

    name = "averages"
    note = "averages all readings: the context is constant to it"
    takes_gaps = True
    squares = 1

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Context:
        """The law of contexts, for when nothing was read."""
        return Context(known.context_mean, known.context_cov)

    def start(self, parameters: Context) -> Tally:
        """Nothing read yet."""
        return start_averages(parameters.mean)

    def predict(self, parameters: Context, state: Tally, noisy: Array) -> Context:
        """The moments of all readings, this one included; the law of contexts for coordinates without any."""
        xp, tally = noisy.__array_namespace__(), state.plus(noisy)
        mean, cov = tally.context()
        is_unread = tally.number == 0
        is_unread_pair = is_unread[..., :, None] & is_unread[..., None, :]
        return Context(
            xp.where(is_unread, parameters.mean, mean), xp.where(is_unread_pair, parameters.cov, cov)
        )

    def update(self, parameters: Context, state: Tally, noisy: Array, context: None) -> Tally:
        """The tally after one more reading."""
        return state.plus(noisy)

    def hindsight(self, parameters: Context, state: Tally, noisy: Array) -> Hindsight:
        """The moments of all readings for every round, and how many there were of each coordinate."""
        context, xp = self.predict(parameters, state, noisy), noisy.__array_namespace__()
        zeros, no_cov = xp.zeros_like(parameters.mean), xp.zeros_like(parameters.cov)
        number = self.readings(parameters, state, noisy)
        return Hindsight(Shrinkage(context.mean, no_cov, context.cov), zeros, no_cov, number)

    def readings(self, parameters: Context, state: Tally, noisy: Array) -> Array:
        """How many there were of each coordinate, this one included."""
        return state.plus(noisy).number

    def unbiased(self, parameters: Context, noisy: Array) -> Array:
        """The reading as it is: a learner may want to average it by itself."""
        return noisy


class Reaching(NamedTuple):
    """A belief about theta, and what not knowing an arm's profile adds to the bound of its score."""

    theta: Belief  # N(beta, alpha^2 V^-1)
    reach: Array  # (..., K)  rho_i (|beta| + alpha / sqrt(l))

    @property
    def mean(self) -> Array:
        """The mean of theta."""
        return self.theta.mean

    @property
    def root(self) -> Array:
        """A root of theta's covariance."""
        return self.theta.root

    @property
    def centre(self) -> Array:
        """The mean as one vector."""
        return self.theta.centre

    def variance(self, row: Array) -> Array:
        """The variance of row'theta."""
        return self.theta.variance(row)

    def sample(self, normals: Array) -> Array:
        """A draw of theta."""
        return self.theta.sample(normals)


@runtime_checkable
class Reaches(Protocol):
    """A learner that says how far off the profile of an arm may be: its belief is `Reaching`."""

    @abstractmethod
    def rho(self, number: Array, time: Array, dim: int) -> Array:
        """How far a profile of `dim` numbers may be from the mean of so many samples: (..., K)."""


class Constants(NamedTuple):
    """The sizes that the paper asks for, and the layout of theta."""

    sizes: Sizes
    zero: Array  # (m,) or (B, k)  as theta is laid out


class State(NamedTuple):
    """Plays and rewards of each arm, and samples that came with rewards."""

    plays: Array  # (..., K)  N_i
    paid: Array  # (..., K)  s_i
    seen: Array  # (...,)  rewards
    tally: Tally | tuple[()]  # with `chosen`


@dataclass(frozen=True, kw_only=True)
class Profiles(EitherKind, LooksBack, Reaches):
    """Ridge regression on profiles of arms that become known better: what SampLinUCB learns.

    For the formulas see `Reach`. Plays and rewards are added up for each arm, and theta is
    fitted to them at every decision, with the averages of samples as they are then. A prior in blocks is kept
    in blocks.

    Settings
    --------
    `ridge` is l, `length` L; `chosen`: samples of the arm that is played are seen alone.
    """

    ridge: float = 1.0
    delta: float = 0.05
    length: float = 1.0
    chosen: bool = False

    name = "profiles"
    note = "ridge regression on averaged features, of past plays too"
    needs = (Counts,)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.positive("ridge", self.ridge)
        validation.share("delta", self.delta)
        validation.positive("length", self.length)
        validation.flag("chosen", self.chosen)

    def setup(self, known: Knowledge) -> Constants:
        """R and S."""
        return Constants(sizes(known), np.zeros(known.prior_cov.shape[:-1]))

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """Nothing yet, for any number of arms: only the feature map knows how many there are."""
        tally = start_averages(known.context_mean) if self.chosen else ()
        return State(np.zeros(1), np.zeros(1), np.zeros(()), tally)

    def belief(self, parameters: Constants, state: State) -> Belief:
        """A stand-in for checks that all is finite: rewards are no belief until profiles are known."""
        return certain(state.paid)

    def look_back(
        self, parameters: Constants, state: State, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief from all past plays, with the current profiles."""
        context, count = self._profiles(state, hindsight, noisy)
        context = _drop_unused_cov(features, context)
        number, known_sizes = samples(features, count), parameters.sizes
        weight = number / (number * known_sizes.noise**2 + (self.length * known_sizes.norm) ** 2)
        rows = features_of_all(features, context)
        mean, inverse, volume = _fit_ridge(parameters.zero, rows, state.plays, state.paid, weight, self.ridge)
        xp = volume.__array_namespace__()
        alpha = xp.sqrt(volume - 2 * log(self.delta)) + sqrt(self.ridge) * known_sizes.norm
        norm_bound = xp.linalg.vector_norm(mean.reshape(*alpha.shape, -1), axis=-1) + alpha / sqrt(self.ridge)
        reach = self.rho(number, state.seen + 1, rows.shape[-1]) * norm_bound[..., None]
        reach = xp.where(number > 0, reach, UNSEEN if self.chosen else -UNSEEN)
        root = inverse.mT * alpha.reshape(*alpha.shape, *[1] * (inverse.ndim - alpha.ndim))
        theta: Any = (Blocks if parameters.zero.ndim == 2 else Gaussian)(mean, root)
        reaching: Any = Reaching(theta, reach)
        return reaching, context

    def update(self, parameters: Constants, state: State, evidence: Evidence, reward: Array) -> State:
        """The state after one more play, and its sample where that comes with the reward."""
        xp, tally = reward.__array_namespace__(), state.tally
        one_hot = (xp.arange(evidence.features.arms) == evidence.arm[..., None]).astype(reward.dtype)
        if isinstance(tally, Tally) and evidence.unbiased is not None:
            tally = tally.plus(_mask_others(evidence.features, evidence.unbiased, one_hot))
        paid = state.paid + one_hot * reward[..., None]
        return State(state.plays + one_hot, paid, state.seen + xp.ones((), dtype=reward.dtype), tally)

    def _profiles(self, state: State, hindsight: Hindsight, noisy: Array) -> tuple[Context, Array]:
        """The moments of readings, and how many of each coordinate: (..., d)."""
        if isinstance(state.tally, Tally):
            xp = noisy.__array_namespace__()
            tally = Tally(*(xp.broadcast_to(one, noisy.shape) for one in state.tally))
            return tally.context(), tally.number
        if hindsight.number is None:
            raise ValueError("profiles are averages of readings that are counted")
        return Context(hindsight.shrinkage.mean, hindsight.shrinkage.cov), hindsight.number

    def rho(self, number: Array, time: Array, dim: int) -> Array:
        """How far a profile may be from the mean of so many samples: (..., K)."""
        xp = number.__array_namespace__()
        log_term = xp.log(2 * dim * time**2 / self.delta)[..., None]
        bound = self.length * xp.sqrt(2 * dim / xp.maximum(number, 1.0) * log_term)
        distance: Array = xp.minimum(bound, xp.asarray(2 * self.length, dtype=number.dtype))
        return distance


def samples(features: FeatureMap, count: Array) -> Array:
    """How often all coordinates that an arm's features depend on were read: (..., d) -> (..., K)."""
    xp = count.__array_namespace__()
    if isinstance(features, Own):
        own: Array = count.reshape(*count.shape[:-1], features.arms, features.size).min(-1)
        return own
    return xp.broadcast_to(count.min(-1)[..., None], (*count.shape[:-1], features.arms))


def features_of_all(features: FeatureMap, context: Context) -> Array:
    """psi(a) of every arm, (..., K, m)."""
    mean, cov = context
    xp = mean.__array_namespace__()
    if isinstance(features, Own):
        return features.design(context).rows()
    shape, contexts = mean.shape[:-1], mean[..., None, :]
    contexts = xp.broadcast_to(contexts, (*shape, features.arms, mean.shape[-1]))
    arms: Ints = xp.broadcast_to(xp.arange(features.arms), (*shape, features.arms))
    return features.over_rounds().design(Context(contexts, cov[..., None, :, :])).row(arms)


def _drop_unused_cov(features: FeatureMap, context: Context) -> Context:
    """The context without its covariance for `own` features, which do not depend on it."""
    if not isinstance(features, Own):
        return context
    xp, dim = context.mean.__array_namespace__(), context.mean.shape[-1]
    return Context(context.mean, xp.zeros((dim, dim), dtype=context.mean.dtype))


def _mask_others(features: FeatureMap, noisy: Array, one_hot: Array) -> Array:
    """The reading with the coordinates of other arms marked as lost, for `own` features."""
    if not isinstance(features, Own):
        return noisy
    xp = noisy.__array_namespace__()
    return xp.where(xp.repeat(one_hot, features.size, axis=-1) > 0, noisy, xp.nan)


def _fit_ridge(
    zero: Array, rows: Array, plays: Array, paid: Array, weight: Array, ridge: float
) -> tuple[Array, Array, Array]:
    """The mean, the inverse of V's factor, and ln(det V / det l I), which is (...,)."""
    xp = rows.__array_namespace__()
    if zero.ndim == 2:
        rows = xp.moveaxis(rows.reshape(*rows.shape[:-1], *zero.shape), -2, -3)
        plays, paid, weight = plays[..., None, :], paid[..., None, :], weight[..., None, :]
    eye = xp.eye(zero.shape[-1], dtype=rows.dtype)
    factor = xp.linalg.cholesky(ridge * eye + (rows * (plays * weight)[..., None]).mT @ rows)
    inverse = xp.linalg.inv(factor)
    mean = matvec(inverse.mT @ inverse, matvec(rows.mT, paid * weight))
    volume = (2 * xp.log(xp.linalg.diagonal(factor)) - log(ridge)).sum(-1)
    return mean, inverse, volume.sum(-1) if zero.ndim == 2 else volume


@dataclass(frozen=True, kw_only=True)
class Reach(Optimism):
    """SampLinUCB: arms have constant profiles, of which noisy samples are seen.

    S. Lamprier, T. Gisselbrecht and P. Gallinari, *Profile-Based Bandit with Unknown Profiles*. Arm i pays
    mu_i'beta and noise. With x_i the mean of the n_i samples of mu_i up to this round, N_i plays and the sum
    s_i of their rewards, all past plays are learnt from again with the x_i of today:

        R_i^2 = R^2 + L^2 S^2 / n_i,    V = l I + sum_i N_i x_i x_i' / R_i^2,
        beta = V^-1 sum_i s_i x_i / R_i^2
        alpha = sqrt(2 ln(det V^.5 det(l I)^-.5 / delta)) + sqrt(l) S
        rho_i = min(L sqrt((2 d / n_i) ln(2 d t^2 / delta)), 2 L)
        argmax_i x_i'beta + rho_i |beta| + alpha (|x_i|_{V^-1} + rho_i / sqrt(l))

    It must be told R, S and L, a bound on the length of samples, here `length`. A sample of arm i is phi(i,
    chat_t): their mean is the expected features at the moments of all readings (`Averages`). With
    `own` features an arm has coordinates of its own, and n_i is how often all of them were read; with other
    maps all arms share the readings. The three deliveries of the paper: samples of all arms; of each with
    some probability, where coordinates get lost; of the arm that is played alone, after it was (`chosen`).

    Known for certain is the setting. The formulas are from memory (medium), that each weight is 1 / R_i^2 and
    not 1 / R_i too: it is what makes alpha right. So are l = 1, delta = 0.05 and L = 1 (low), and that an arm
    without samples is not played, or with `chosen` first of all (medium).

    Settings
    --------
    How much is added of optimism about theta, and of that about profiles; 1 as published.
    """

    name = "reach"
    note = "the largest bound over theta and the profile"
    needs_learner = (Reaches,)

    def bounds(self, view: View) -> Array:
        """The upper bound of the score of every arm that may be chosen: (..., K)."""
        belief: Any = view.belief  # `Reaching`
        mean, variance = moments(view)
        xp, reach = mean.__array_namespace__(), belief.reach
        value = mean + self.alpha * (xp.sqrt(variance) + reach)
        return view.mask(xp.where(xp.abs(reach) < UNSEEN, value, reach))


SAMPLINUCB = [
    Baseline(
        Agent(
            "samplinucb",
            Averages(),
            Profiles(),
            Reach(),
            binary_learner=Profiles(zero_one=True),
            summary="averages samples of profiles that are constant; optimistic about them and theta",
            reference=PAPER,
        ),
        needs="the noise of rewards, how long theta is, and how long samples of profiles are at most",
        sees="noisy contexts, taken for samples of one that is constant",
        home="baseline-samplinucb",
        tuned="alpha",
        grid=(0.01, 0.03, 0.1, 0.3, 0.6, 1.0),
        sure="medium",
    )
]
