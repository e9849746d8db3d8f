"""Ridge regression with an intercept on imputed features, past rounds imputed anew."""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.evidence import Evidence
from unfog.agents.learn.history import put
from unfog.agents.parts import Denoiser, Keeps, LooksBack
from unfog.agents.rivals.either import EitherKind
from unfog.agents.rivals.imputation import Imputed, Law, context_of, samples
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.features.linear import Own
from unfog.maths.arrays import Array, matvec, settled, take
from unfog.maths.gaussian import Gaussian, certain
from unfog.validation import InputError


class Past(NamedTuple):
    """Rounds as they were read, to be imputed anew."""

    readings: Array  # (..., n, w)  of the arm, where it has a context of its own; not a number if lost
    arms: Array  # (..., n)
    rewards: Array  # (..., n)
    seen: Array  # ()
    slots: Array | None  # (n,)  0, 1, ..., n - 1 in a memory of fixed size; None in one that grows


class Sums(NamedTuple):
    """What past rounds add up to, x having the intercept first."""

    moment: Array  # (..., m + 1, m + 1)  V - l I
    natural_mean: Array  # (..., m + 1)  sum x r
    gathered: Array  # (...,)  G


class State(NamedTuple):
    """Sums, and the rounds they are made of."""

    sums: Sums
    past: Past


class Raised(NamedTuple):
    """What is believed of theta beside an intercept: an ellipsoid with its width, as a Gaussian."""

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
class Imputing(EitherKind, LooksBack, Keeps):
    """Ridge regression with an intercept on imputed features, past rounds imputed anew: what CLBBF learns.

    The formulas stand in rivals/clbbf.py. Sums over past rounds are kept without the ridge l I, because l
    hangs on the number of arms, and the rounds themselves as they were read. The law of readings by which a
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
        return "" if isinstance(denoiser, Imputed) else "the denoiser that imputes (rivals/imputation.py)"

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """Sizes must say whether arms have contexts of their own."""
        if samples(known)[0] > 1 and not isinstance(features, Own):
            size, dim = known.prior_mean.shape[-1], known.context_mean.shape[-1]
            what = f"{self.name!r} with {size} features of {dim} numbers of one context"
            raise InputError("learner", what, "a number of features that does not divide it, or own features")

    def room(self, known: Knowledge, rounds: int) -> int:
        """Readings, twice over while one is added; their gains and rows while all are imputed anew."""
        width, size = samples(known)[1], known.prior_mean.shape[-1] + 1
        return rounds * (2 * width + 4 + width**2 + 2 * size) if self.rebuild else 0

    def setup(self, known: Knowledge) -> Array:
        """No doubt is left of contexts."""
        return np.zeros(known.context_cov.shape)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """Nothing yet."""
        size, number = known.prior_mean.shape[-1] + 1, (rounds or 0) if self.rebuild else 0
        slots = None if rounds is None else np.arange(number, dtype=np.float64)
        sums = Sums(np.zeros((size, size)), np.zeros(size), np.zeros(()))
        readings = np.zeros((number, samples(known)[1]))
        return State(sums, Past(readings, np.zeros(number), np.zeros(number), np.zeros(()), slots))

    def belief(self, parameters: Array, state: State) -> Gaussian:
        """Sums are no belief until it is known how many arms there are: they say if all is finite."""
        return certain(state.sums.natural_mean[..., 1:])

    def look_back(
        self, parameters: Array, state: State, features: FeatureMap, hindsight: Any, noisy: Array
    ) -> tuple[Any, Context]:
        """The ellipsoid, and the context with what was lost imputed."""
        law: Law = hindsight
        sums = self._by_now(state, features, law)
        xp, ridge = noisy.__array_namespace__(), self._ridge(features)
        root = _root(sums.moment, ridge)
        mean = matvec(root, matvec(root.mT, sums.natural_mean))
        width, number = law.mean.shape[-1], noisy.shape[-1] // law.mean.shape[-1]
        many, horizon, after = log(features.arms * self.horizon), self.horizon, law.time + 2
        doubt = width * law.share**-1.5 * xp.sqrt(log(horizon) * many / (after * number))
        beta = xp.sqrt((features.size + 1) * xp.log(after * horizon)) + sums.gathered * doubt
        root = root * (beta + (features.size * many) ** 0.5)[..., None, None]
        belief = Raised(mean[..., 1:], root[..., 1:, :], root[..., 0, :], law)
        return belief, context_of(law, parameters, noisy)

    def _ridge(self, features: FeatureMap) -> float:
        """(m + 1) ln(K T)."""
        return (features.size + 1) * log(features.arms * self.horizon)

    def _by_now(self, state: State, features: FeatureMap, law: Law) -> Sums:
        """The sums, made anew of past rounds where the number of the round is a power of two."""
        if not self.rebuild or not state.past.rewards.shape[-1]:  # nothing kept: no reward came yet
            return state.sums
        xp = law.mean.__array_namespace__()
        due = law.time == 2 ** xp.round(xp.log2(xp.maximum(law.time, 1.0)))
        if settled(~due):
            return state.sums
        new = _rebuilt(state.past, features, law, self._ridge(features))
        pairs = zip(new, state.sums, strict=True)
        return Sums(*(xp.where(due, one, other) for one, other in pairs))

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """With one more round, as it was imputed at its decision."""
        belief: Any = evidence.belief
        sums, row = self._by_now(state, evidence.features, belief.law), _raised(evidence.row())
        moment = sums.moment + row[..., :, None] * row[..., None, :]
        sums = Sums(moment, sums.natural_mean + row * reward[..., None], sums.gathered)
        if not self.rebuild or evidence.unbiased is None:
            return state._replace(sums=sums)
        past, width = state.past, belief.law.mean.shape[-1]
        reading = evidence.unbiased.reshape(*evidence.unbiased.shape[:-1], -1, width)
        own = isinstance(evidence.features, Own)
        chosen = take(reading, evidence.arm) if own else reading[..., 0, :]
        kept = past._replace(
            readings=put(past, past.readings, chosen[..., None, :], -2),
            arms=put(past, past.arms, evidence.arm[..., None].astype(reward.dtype), -1),
            rewards=put(past, past.rewards, reward[..., None], -1),
            seen=past.seen + 1,
        )
        return State(sums, kept)


def _raised(rows: Array) -> Array:
    """With the intercept: (..., m) -> (..., m + 1)."""
    xp = rows.__array_namespace__()
    found: Array = xp.concat([xp.ones_like(rows[..., :1]), rows], axis=-1)
    return found


def _root(moment: Array, ridge: float) -> Array:
    """A root of V^-1."""
    xp = moment.__array_namespace__()
    factor = xp.linalg.cholesky(moment + ridge * xp.eye(moment.shape[-1], dtype=moment.dtype))
    found: Array = xp.linalg.inv(factor).mT
    return found


def _rebuilt(past: Past, features: FeatureMap, law: Law, ridge: float) -> Sums:
    """The sums over past rounds, imputed with what is known by now."""
    xp = law.mean.__array_namespace__()
    batch, number = law.mean.shape[:-1], past.rewards.shape[-1]
    readings = law.imputed(xp.broadcast_to(past.readings, (*batch, *past.readings.shape[-2:])))
    arms = xp.broadcast_to(past.arms, (*batch, number)).astype(int)
    own = isinstance(features, Own)
    rows = _raised(readings if own else features.over_rounds().at(readings).row(arms))
    if past.slots is not None:
        rows = rows * (past.slots < past.seen)[:, None]
    moment = rows.mT @ rows
    half = rows @ _root(moment, ridge)
    gathered = xp.sqrt(xp.vecdot(half, half)).sum(-1)
    return Sums(moment, (past.rewards[..., None, :] @ rows)[..., 0, :], gathered)
