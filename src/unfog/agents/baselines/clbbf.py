"""CLBBF: contexts of which some coordinates are lost, and imputed.

The denoiser (`Imputed`) imputes what was lost of a reading. The learner (`Imputing`) does ridge regression
with an intercept on imputed features, and imputes past rounds again. The chooser (`Lifting`), which has the
formulas, is optimistic.
"""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, Evidence, KeepsRounds, LooksBack, Privilege, Rewinds, View
from unfog.agents.baselines.base import Baseline, EitherKind, Optimism
from unfog.agents.choose.ucb import moments
from unfog.agents.learn.logistic import write_entry
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.features.linear import Own
from unfog.maths.arrays import Array, Ints, holds_everywhere, matvec, take
from unfog.maths.gaussian import Gaussian, certain
from unfog.validation import InputError

PAPER = (
    "Kim, Yun, Jeong, Nam, Shin and Combes, Contextual Linear Bandits under Noisy Features: "
    "Towards Bayesian Oracles"
)
SINGULAR = 1e-15  # eigenvalues below this share of the largest count as zero


class Parameters(NamedTuple):
    """Nothing but shapes."""

    sample: Array  # (S, w)  zeros: S samples a round, of w numbers
    certain: Array  # (d, d)  zeros: no doubt is left of what is imputed


class ImputationState(NamedTuple):
    """Sums over samples."""

    rounds: Array  # ()
    measured: Array  # (...,)  n
    total: Array  # (..., w)  sum x
    moment: Array  # (..., w, w)  sum x x'


class Law(NamedTuple):
    """The law of readings as it is estimated in a round, with that round's reading."""

    time: Array  # ()  the number of the round, from 0
    share: Array  # (...,)  p
    mean: Array  # (..., w)  nu
    cov: Array  # (..., w, w)  Sigma; not always positive, with few samples

    def imputed(self, readings: Array) -> Array:
        """Samples (..., s, w) of one trial with what was lost, not a number, set to what is expected."""
        xp, lost = readings.__array_namespace__(), readings.__array_namespace__().isnan(readings)
        if holds_everywhere(~lost):
            return readings
        mean = self.mean[..., None, :]
        deviation = matvec(self._gains(lost), xp.where(lost, 0.0, readings - mean))
        imputed: Array = xp.where(lost, mean + deviation, readings)
        return imputed

    def _gains(self, lost: Array) -> Array:
        """Sigma_.S Sigma_SS^+ for every sample: (..., s, w) -> (..., s, w, w)."""
        xp, size = lost.__array_namespace__(), lost.shape[-1]
        if 2**size > lost.shape[-2]:
            return _gain(self.cov[..., None, :, :], lost)
        # There are fewer patterns of loss than samples, and all samples have one covariance.
        powers = 2 ** np.arange(size)
        table = _gain(self.cov[..., None, :, :], xp.asarray((np.arange(2**size)[:, None] & powers) > 0))
        pattern: Ints = (lost * xp.asarray(powers)).sum(-1)
        gains: Array = xp.take_along_axis(table, pattern[..., None, None], -3)
        return gains


def _gain(cov: Array, lost: Any) -> Array:
    """Sigma_.S Sigma_SS^+, zero in the columns of what was lost."""
    xp = cov.__array_namespace__()
    measured = (~lost).astype(cov.dtype)
    mask = measured[..., :, None] * measured[..., None, :]
    tolerance = max(SINGULAR, 4 * float(xp.finfo(cov.dtype).eps))  # the limit in single precision
    inverse: Array = xp.linalg.pinv(mask * cov, rtol=tolerance, hermitian=True)
    return cov @ (mask * inverse)


@dataclass(frozen=True, kw_only=True)
class Imputed(Denoiser, Rewinds):
    """Impute what was lost of a reading by the law of readings, which is estimated from readings alone.

    Over all samples x so far, N of them with w numbers each, a lost number counting as zero and n being
    measured,

        p = max(1, n) / (w N),    nu = sum x / (N p),
        Sigma = (sum x x' / N) o [((p - 1) / p^2) I + 1 1' / p^2] - nu nu',

    and of a sample the numbers U that were lost are set to nu_U + Sigma_US Sigma_SS^+ (x_S - nu_S), S being
    those measured. Nothing is shrunk towards the mean: the noise stays in, and theta is learnt for noisy
    features.

    Where every arm has a context of its own (features/linear.py) each of these is a sample, K in a round;
    else the one context is. Which of the two it is shows in the sizes: m features and m K numbers.

    J.-h. Kim, S.-Y. Yun, M. Jeong, J. Nam, J. Shin and R. Combes, *Contextual Linear Bandits under Noisy
    Features: Towards Bayesian Oracles*; formulas as in the authors' code.

    Settings
    --------
    With `zero` what was lost is zero, and nothing is estimated.
    """

    zero: bool = False

    name = "imputed"
    note = "estimates the law of readings, and imputes what was lost"
    takes_gaps = True
    cost = 0.7

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("zero", self.zero)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """Nothing of what is told but the sizes."""
        return Parameters(np.zeros(samples(known)), np.zeros(known.context_cov.shape))

    def start(self, parameters: Parameters) -> ImputationState:
        """No samples."""
        width = parameters.sample.shape[-1]
        return ImputationState(np.zeros(()), np.zeros(()), np.zeros(width), np.zeros((width, width)))

    def update(
        self, parameters: Parameters, state: ImputationState, noisy: Array, context: Array | None
    ) -> ImputationState:
        """The sums with the samples of one more round."""
        xp = noisy.__array_namespace__()
        readings = noisy.reshape(*noisy.shape[:-1], *parameters.sample.shape)
        lost = xp.isnan(readings)
        values = xp.where(lost, 0.0, readings)
        measured = (~lost).astype(noisy.dtype).sum((-2, -1))
        sums = state.total + values.sum(-2), state.moment + values.mT @ values
        return ImputationState(state.rounds + 1, state.measured + measured, *sums)

    def predict(self, parameters: Parameters, state: ImputationState, noisy: Array) -> Context:
        """The reading with what was lost imputed, with certainty."""
        return context_of(self.hindsight(parameters, state, noisy), parameters.certain, noisy)

    def hindsight(self, parameters: Parameters, state: ImputationState, noisy: Array) -> Any:
        """The `Law` with this round's samples: what `Imputing` looks back with."""
        number, width = parameters.sample.shape
        state = self.update(parameters, state, noisy, None)
        xp, samples_so_far = noisy.__array_namespace__(), number * state.rounds
        share = xp.maximum(state.measured, 1.0) / (width * samples_so_far)
        if self.zero:
            return Law(state.rounds - 1, share, 0 * state.total, 0 * state.moment)
        mean = state.total / (samples_so_far * share)[..., None]
        weight = xp.where(xp.eye(width, dtype=bool), share[..., None, None], share[..., None, None] ** 2)
        cov = state.moment / weight / samples_so_far - mean[..., :, None] * mean[..., None, :]
        return Law(state.rounds - 1, share, mean, cov)

    def unbiased(self, parameters: Parameters, noisy: Array) -> Array:
        """The reading with its gaps, which may be imputed again."""
        return noisy


def samples(known: Knowledge) -> tuple[int, int]:
    """How many samples a round has, and how many numbers a sample has."""
    dim, size = known.context_mean.shape[-1], known.prior_mean.shape[-1]
    return (dim // size, size) if size < dim and dim % size == 0 else (1, dim)


def context_of(law: Law, certain: Array, noisy: Array) -> Context:
    """The context (..., d) of a reading, taken for the reading where that was measured."""
    width = law.mean.shape[-1]
    readings = noisy.reshape(*noisy.shape[:-1], -1, width)
    return Context(law.imputed(readings).reshape(noisy.shape), certain)


class Past(NamedTuple):
    """Past rounds as they were read, to be imputed again."""

    readings: Array  # (..., n, w)  of the arm, where it has a context of its own; not a number if lost
    arms: Array  # (..., n)
    rewards: Array  # (..., n)
    seen: Array  # ()
    slots: Array | None  # (n,)  0, 1, ..., n - 1 in a memory of fixed size; None in one that grows


class Sums(NamedTuple):
    """Sums over past rounds; x has the intercept first."""

    moment: Array  # (..., m + 1, m + 1)  V - l I
    natural_mean: Array  # (..., m + 1)  sum x r
    gathered: Array  # (...,)  G


class State(NamedTuple):
    """Sums, and the rounds they are made of."""

    sums: Sums
    past: Past


class Raised(NamedTuple):
    """The belief about theta beside an intercept: an ellipsoid with its width, as a Gaussian."""

    mean: Array  # (..., m)
    root: Array  # (..., m, m + 1)  beta times that of V^-1, without the row of the intercept
    lift: Array  # (..., m + 1)  which is this one
    law: Law  # of readings, at the decision

    @property
    def centre(self) -> Array:
        """The mean as one vector."""
        return self.mean

    def sample(self, normals: Array) -> Array:
        """A draw of theta."""
        return Gaussian(self.mean, self.root).sample(normals)

    def variance(self, row: Array, half: Array | None = None) -> Array:
        """The variance of row'theta, the intercept left out."""
        return Gaussian(self.mean, self.root).variance(row, half)


@dataclass(frozen=True, kw_only=True)
class Imputing(EitherKind, LooksBack, KeepsRounds):
    """Ridge regression with an intercept on imputed features, past rounds imputed anew: what CLBBF learns.

    The formulas stand with `Lifting`. Sums over past rounds are kept without the ridge l I, because l
    depends on the number of arms, and the rounds themselves as they were read. The law of readings by which a
    decision was made comes with its belief, so that a reward which comes late finds it.

    Settings
    --------
    `horizon` is T; with `rebuild` past rounds are imputed anew, else G = 0.

    `zero_one` where rewards are 0 or 1, which it takes for any numbers.
    """

    horizon: int = 1000
    rebuild: bool = True

    name = "imputing"
    note = "ridge regression with an intercept, past rounds imputed anew"
    dense = True
    cost = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.count("horizon", self.horizon, 2)
        validation.flag("rebuild", self.rebuild)

    def misses(self, denoiser: Denoiser) -> str:
        """One that estimates the law of readings."""
        return "" if isinstance(denoiser, Imputed) else "the denoiser that imputes (Imputed)"

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """Sizes must say whether arms have contexts of their own."""
        if samples(known)[0] > 1 and not isinstance(features, Own):
            size, dim = known.prior_mean.shape[-1], known.context_mean.shape[-1]
            what = f"{self.name!r} with {size} features of {dim} numbers of one context"
            raise InputError("learner", what, "a number of features that does not divide it, or own features")

    def memory_size(self, known: Knowledge, rounds: int) -> int:
        """Readings, twice while one is added; their gains and rows while all are imputed again."""
        width, size = samples(known)[1], known.prior_mean.shape[-1] + 1
        return rounds * (2 * width + 4 + width**2 + 2 * size) if self.rebuild else 0

    def setup(self, known: Knowledge) -> Array:
        """A zero covariance: no doubt is left about contexts."""
        return np.zeros(known.context_cov.shape)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """Nothing yet."""
        size, number = known.prior_mean.shape[-1] + 1, (rounds or 0) if self.rebuild else 0
        slots = None if rounds is None else np.arange(number, dtype=np.float64)
        sums = Sums(np.zeros((size, size)), np.zeros(size), np.zeros(()))
        readings = np.zeros((number, samples(known)[1]))
        return State(sums, Past(readings, np.zeros(number), np.zeros(number), np.zeros(()), slots))

    def belief(self, parameters: Array, state: State) -> Gaussian:
        """A stand-in for checks that all is finite: sums are no belief until the number of arms is known."""
        return certain(state.sums.natural_mean[..., 1:])

    def look_back(
        self, parameters: Array, state: State, features: FeatureMap, hindsight: Any, noisy: Array
    ) -> tuple[Any, Context]:
        """The ellipsoid, and the context with what was lost imputed."""
        law: Law = hindsight
        sums = self._current_sums(state, features, law)
        xp, ridge = noisy.__array_namespace__(), self._ridge(features)
        root = _find_root(sums.moment, ridge)
        mean = matvec(root, matvec(root.mT, sums.natural_mean))
        width, number = law.mean.shape[-1], noisy.shape[-1] // law.mean.shape[-1]
        log_plays, horizon, rounds = log(features.arms * self.horizon), self.horizon, law.time + 2
        doubt = width * law.share**-1.5 * xp.sqrt(log(horizon) * log_plays / (rounds * number))
        beta = xp.sqrt((features.size + 1) * xp.log(rounds * horizon)) + sums.gathered * doubt
        root = root * (beta + (features.size * log_plays) ** 0.5)[..., None, None]
        belief = Raised(mean[..., 1:], root[..., 1:, :], root[..., 0, :], law)
        return belief, context_of(law, parameters, noisy)

    def _ridge(self, features: FeatureMap) -> float:
        """(m + 1) ln(K T)."""
        return (features.size + 1) * log(features.arms * self.horizon)

    def _current_sums(self, state: State, features: FeatureMap, law: Law) -> Sums:
        """The sums, recomputed from past rounds in rounds whose number is a power of two."""
        if not self.rebuild or not state.past.rewards.shape[-1]:  # no reward so far
            return state.sums
        xp = law.mean.__array_namespace__()
        due = law.time == 2 ** xp.round(xp.log2(xp.maximum(law.time, 1.0)))
        if holds_everywhere(~due):
            return state.sums
        new = _rebuild_sums(state.past, features, law, self._ridge(features))
        pairs = zip(new, state.sums, strict=True)
        return Sums(*(xp.where(due, one, other) for one, other in pairs))

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """The state after one more round, as it was imputed at its decision."""
        belief: Any = evidence.belief
        sums, row = self._current_sums(state, evidence.features, belief.law), _with_intercept(evidence.row())
        moment = sums.moment + row[..., :, None] * row[..., None, :]
        sums = Sums(moment, sums.natural_mean + row * reward[..., None], sums.gathered)
        if not self.rebuild or evidence.unbiased is None:
            return state._replace(sums=sums)
        past, width = state.past, belief.law.mean.shape[-1]
        reading = evidence.unbiased.reshape(*evidence.unbiased.shape[:-1], -1, width)
        has_own_contexts = isinstance(evidence.features, Own)
        arm_reading = take(reading, evidence.arm) if has_own_contexts else reading[..., 0, :]
        new_past = past._replace(
            readings=write_entry(past, past.readings, arm_reading[..., None, :], -2),
            arms=write_entry(past, past.arms, evidence.arm[..., None].astype(reward.dtype), -1),
            rewards=write_entry(past, past.rewards, reward[..., None], -1),
            seen=past.seen + 1,
        )
        return State(sums, new_past)


def _with_intercept(rows: Array) -> Array:
    """Rows with the intercept in front: (..., m) -> (..., m + 1)."""
    xp = rows.__array_namespace__()
    extended: Array = xp.concat([xp.ones_like(rows[..., :1]), rows], axis=-1)
    return extended


def _find_root(moment: Array, ridge: float) -> Array:
    """A square root of V^-1."""
    xp = moment.__array_namespace__()
    factor = xp.linalg.cholesky(moment + ridge * xp.eye(moment.shape[-1], dtype=moment.dtype))
    root: Array = xp.linalg.inv(factor).mT
    return root


def _rebuild_sums(past: Past, features: FeatureMap, law: Law, ridge: float) -> Sums:
    """The sums over past rounds, imputed by the current law of readings."""
    xp = law.mean.__array_namespace__()
    batch, number = law.mean.shape[:-1], past.rewards.shape[-1]
    readings = law.imputed(xp.broadcast_to(past.readings, (*batch, *past.readings.shape[-2:])))
    arms = xp.broadcast_to(past.arms, (*batch, number)).astype(int)
    has_own_contexts = isinstance(features, Own)
    rows = _with_intercept(readings if has_own_contexts else features.over_rounds().at(readings).row(arms))
    if past.slots is not None:
        rows = rows * (past.slots < past.seen)[:, None]
    moment = rows.mT @ rows
    half = rows @ _find_root(moment, ridge)
    gathered = xp.sqrt(xp.vecdot(half, half)).sum(-1)
    return Sums(moment, (past.rewards[..., None, :] @ rows)[..., 0, :], gathered)


@dataclass(frozen=True, kw_only=True)
class Lifting(Optimism):
    """CLBBF: contextual linear bandits with Bayesian features, some of which are lost.

    Lost numbers are imputed (`Imputed`), x = [1, features of the imputed context], and with m
    features

        V = l I + sum x x',    theta = V^-1 sum x r,    l = (m + 1) ln(K T),
        argmax x'theta + beta_t |x|_{V^-1},
        beta_t = sqrt((m + 1) ln((t + 2) T)) + h_t + sqrt(m ln(K T)),
        h_t = G w p^(-3/2) sqrt(ln T ln(K T) / ((t + 2) S)),

    in round t = 0, 1, ..., which has S samples of w numbers each, a share p of them measured. In rounds t =
    1, 2, 4, 8, ... all past rounds are imputed anew with what is known of the law of readings by then, V and
    sum x r are made of them, and G = sum |x|_{V^-1} over them. Their baseline, here `clbbf-oful`, takes zero
    for what was lost, never goes back, and has G = 0.

    J.-h. Kim, S.-Y. Yun, M. Jeong, J. Nam, J. Shin and R. Combes, *Contextual Linear Bandits under Noisy
    Features: Towards Bayesian Oracles*. It must be told K and T alone; it sees noisy contexts, and what of
    them was lost. That contexts are Gaussian is what makes the imputed features, with an intercept, linear in
    what the Bayesian oracle expects; a bias that never changes goes into the intercept. Constants assume
    rewards with noise of variance one at most and |theta| <= 1.

    How sure we are: high where every arm has a context of its own (`own`), as in the paper: this is the
    authors' code to rounding, but for the first arm, which they draw and an optimist chooses. Medium for one
    context that arms share: there S = 1 and l, m and w are our reading; for features that are not linear in
    the context the paper promises nothing, and this is an extension. The intercept is common to all arms.

    This is optimism beside an intercept: it is the same for all arms, but not what it shares with their
    scores.

    Settings
    --------
    That of `Optimism`.
    """

    name = "lifting"
    note = "the largest mean and so many deviations, with an intercept"
    needs_learner = (Imputing,)

    def bounds(self, view: View) -> Array:
        """The upper bounds, by |root'x + lift|^2 = |root'x|^2 + 2 x'(root lift) + |lift|^2."""
        belief: Any = view.belief  # `Raised`
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        shared = view.design.scores(matvec(belief.root, belief.lift))
        lifted_variance = variance + 2 * shared + xp.vecdot(belief.lift, belief.lift)[..., None]
        return view.mask(mean + self.alpha * xp.sqrt(xp.maximum(lifted_variance, 0.0)))


GRID = (0.01, 0.03, 0.1, 0.2, 0.5, 1.0)

CLBBF = [
    Baseline(
        Agent(
            "clbbf",
            Imputed(),
            Imputing(),
            Lifting(),
            binary_learner=Imputing(zero_one=True),
            summary="imputes what was lost, past rounds anew, and is optimistic",
            reference=PAPER,
        ),
        needs="the number of rounds",
        sees="noisy contexts, and what of them was lost",
        regret="regret",
        home="baseline-clbbf",
        tuned="alpha",
        grid=GRID,
        sure="high",
    ),
    Baseline(
        Agent(
            "clbbf-oful",
            Imputed(zero=True),
            Imputing(rebuild=False),
            Lifting(),
            binary_learner=Imputing(rebuild=False, zero_one=True),
            summary="the baseline of CLBBF: what was lost is zero",
            reference=f"{PAPER}, OFUL",
        ),
        needs="the number of rounds",
        sees="noisy contexts, with zeros where they were lost",
        regret="regret",
        home="baseline-clbbf",
        tuned="alpha",
        grid=GRID,
        sure="high",
    ),
]
