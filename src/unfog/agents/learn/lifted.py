"""What learners have in common that denoise past rounds anew: rewards in a form that waits for the bias.

With lifted rows z (features/base.py) all that past rounds say of theta, given the bias, is in the sums

    Z = sum z z' / s^2,    y = sum z r / s^2:    precision P = P0 + T Z T',    mean P^-1 (P0 mu0 + T y),

with the variances s^2 of the rewards as they were thought to be at the time. A round costs as much after a
million rounds as after one, but more than a rank-one update: P must be made and factorised at every decision.
A prior in blocks is kept in blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from unfog import validation
from unfog.agents.evidence import Evidence
from unfog.agents.learn.conjugate import reward_variance
from unfog.agents.parts import Denoiser, Grows, KnowsBias, Learner, LooksBack
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.features.base import Liftable
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian, certain
from unfog.validation import InputError


class Prior(NamedTuple):
    """What is known of theta and of the rewards before the first."""

    precision: Array  # (m, m), or (K, k, k): independent blocks
    natural_mean: Array  # (m,) or (K, k)  precision times mean
    reward_var: Array  # ()


class Sums(NamedTuple):
    """What past rounds add up to. One number stands for all before the first of them."""

    moment: Array  # (..., q, q) or (..., K, q / K, q / K)  Z
    natural_mean: Array  # (..., q) or (..., K, q / K)  y


class Posterior(NamedTuple):
    """Of theta, given the bias."""

    mean: Array  # (..., m) or (..., K, k)
    root: Array  # (..., m, m) or (..., K, k, k)
    evidence: Array  # (...,)  log density of the rewards, but for what does not hang on the bias


class FromNoisy(Learner, LooksBack):
    """A learner that looks back along a denoiser which learns the bias from noisy contexts alone."""

    def misses(self, denoiser: Denoiser) -> str:
        """One that rewinds and learns the bias from noisy contexts alone."""
        alone = "a denoiser that learns from noisy contexts alone" if denoiser.sees_context else ""
        lacks = "" if isinstance(denoiser, KnowsBias) else "a denoiser whose past rounds wait for the bias"
        return super().misses(denoiser) or alone or lacks

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """Features must be able to, and a prior in blocks must have those of the features."""
        super().check(known, features)
        refuse_other_blocks(self.name, known, features)


@dataclass(frozen=True, kw_only=True)
class Lifted(Grows, FromNoisy):
    """A learner but for `look_back`; `hetero` weighs each reward by what is not known of its context."""

    hetero: bool = True

    rewards = "gaussian"
    needs_features = (Liftable,)
    squares = 3

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("hetero", self.hetero)

    def setup(self, known: Knowledge) -> Any:
        """The prior."""
        return prior(known)

    def prior(self, parameters: Any) -> Prior:
        """The prior among the parameters."""
        found: Prior = parameters
        return found

    def start(self, known: Knowledge, rounds: int | None) -> Sums:
        """Nothing yet, in the least shape that all others come from: the size of z is the map's to say."""
        return Sums(np.zeros((1, 1)), np.zeros(1))

    def grow(self, old: Knowledge, new: Knowledge, state: Sums) -> Sums:
        """No lifted row has anything where arms are new."""
        if state.natural_mean.shape == (1,):
            return state  # nothing yet
        if old.prior_cov.ndim == 3:
            number, size = len(new.prior_cov), state.moment.shape[-1]
            moment = gaussian.longer(state.moment, np.zeros((number, size, size)), -3)
            return Sums(moment, gaussian.longer(state.natural_mean, np.zeros((number, size)), -2))
        size = state.moment.shape[-1] * new.prior_mean.shape[-1] // old.prior_mean.shape[-1]
        moment = gaussian.larger(state.moment, np.zeros((size, size)))
        return Sums(moment, gaussian.longer(state.natural_mean, np.zeros(size), -1))

    def belief(self, parameters: Any, state: Sums) -> Belief:
        """Sums are no belief until a bias is given: they stand for one where it is asked if all is finite."""
        return certain(state.natural_mean)

    def noise(self, parameters: Any, state: Sums, hidden: Array | float) -> Array:
        """As told."""
        return self.prior(parameters).reward_var + hidden

    def update(self, parameters: Any, state: Sums, evidence: Evidence, reward: Array) -> Sums:
        """One more round, by its lifted row (..., q)."""
        start, row = self.prior(parameters), evidence.lifted_row()
        weight = 1 / (start.reward_var + evidence.context_variance() if self.hetero else start.reward_var)
        natural_mean = row * (weight * reward)[..., None]
        weighed = row * weight[..., None]
        if start.precision.ndim == 3:
            cut = *row.shape[:-1], start.precision.shape[0], -1
            row, natural_mean, weighed = (x.reshape(*cut) for x in (row, natural_mean, weighed))
        moment = state.moment + weighed[..., None] * row[..., None, :]
        return Sums(moment, state.natural_mean + natural_mean)


def refuse_other_blocks(learner: str, known: Knowledge, features: FeatureMap) -> None:
    """Complain of a prior in other blocks than those of the features."""
    d = known.context_mean.shape[-1]
    size = liftable(features).projection(np.zeros(d), np.eye(d)).shape[-2]
    if known.prior_cov.ndim == 3 and size != known.prior_cov.shape[-1]:
        raise InputError("learner", f"{learner!r} with this prior in blocks", "a prior in one piece")


def prior(known: Knowledge) -> Prior:
    """The prior in the form that sums add to."""
    variance, cov = reward_variance(known), known.prior_cov
    xp = cov.__array_namespace__()
    precision = xp.linalg.inv(cov)
    return Prior(precision, matvec(precision, known.prior_mean.reshape(cov.shape[:-1])), variance)


def posterior(prior: Prior, sums: Sums, projection: Array) -> Posterior:
    """Of theta, with all past rounds projected by T (..., m, q), or (..., k, q / K) for a map of blocks."""
    xp = projection.__array_namespace__()
    projection = _fitted(projection, prior.precision)
    size = projection.shape[-1]
    moment = xp.broadcast_to(sums.moment, (*sums.moment.shape[:-2], size, size))
    lifted = xp.broadcast_to(sums.natural_mean, (*sums.natural_mean.shape[:-1], size))
    precision = prior.precision + projection @ moment @ projection.mT
    natural_mean = prior.natural_mean + matvec(projection, lifted)
    factor = xp.linalg.cholesky(precision)
    inverse = xp.linalg.inv(factor)
    half = matvec(inverse, natural_mean)
    evidence = 0.5 * xp.vecdot(half, half) - xp.log(xp.linalg.diagonal(factor)).sum(-1)
    evidence = evidence.sum(-1) if prior.precision.ndim == 3 else evidence
    return Posterior(matvec(inverse.mT, half), inverse.mT, evidence)


def for_nodes(prior: Prior, sums: Sums) -> Sums:
    """The sums with an axis for nodes of the bias between trials and what each trial has."""
    if prior.precision.ndim == 3 and sums.moment.ndim > 2:  # they have blocks, but for the first of all
        return Sums(sums.moment[..., None, :, :, :], sums.natural_mean[..., None, :, :])
    return Sums(sums.moment[..., None, :, :], sums.natural_mean[..., None, :])


def liftable(features: FeatureMap) -> Liftable:
    """The map as one that lifts: those that do not were refused before the first round."""
    return cast(Liftable, features)


def as_belief(prior: Prior, mean: Array, root: Array) -> Belief:
    """In blocks where the prior is."""
    form: Callable[[Array, Array], Belief] = Blocks if prior.precision.ndim == 3 else Gaussian
    return form(mean, root)


def _fitted(projection: Array, precision: Array) -> Array:
    """T with an axis for blocks where the prior has them, or that of all blocks where only the map has."""
    xp = projection.__array_namespace__()
    if precision.ndim == 3:
        return projection[..., None, :, :]
    size, width = projection.shape[-2:]
    number = precision.shape[-1] // size
    if number == 1:
        return projection
    places = xp.eye(number, dtype=projection.dtype)[:, None, :, None]
    whole = places * projection[..., None, :, None, :]
    return whole.reshape(*whole.shape[:-4], number * size, number * width)
