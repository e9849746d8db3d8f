"""What learners have in common that denoise past rounds anew: rewards in a form that waits for the bias.

With lifted rows z (features/lift.py) all that past rounds say of theta, given the bias, is in the sums

    Z = sum z z' / s^2,    y = sum z r / s^2:    precision P = P0 + T Z T',    mean P^-1 (P0 mu0 + T y),

with the variances s^2 of the rewards as they were thought to be at the time. A round costs as much after a
million rounds as after one, but more than a rank-one update: P must be made and factorised at every decision.
A prior in blocks is kept in blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from unfog import inputs
from unfog.agents.agent import Agent
from unfog.agents.learn import conjugate
from unfog.features import FeatureMap
from unfog.features.lift import Liftable
from unfog.inputs import InputError
from unfog.maths.arrays import Array, matvec
from unfog.maths.blocks import Belief, Blocks
from unfog.maths.gaussian import Gaussian, certain
from unfog.model.knowledge import Knowledge


class Prior(NamedTuple):
    """What is known of theta and of the rewards before the first."""

    precision: Array  # (m, m), or (K, k, k): independent blocks
    pull: Array  # (m,) or (K, k)  precision times mean
    reward_var: Array  # ()


class Sums(NamedTuple):
    """What past rounds add up to. One number stands for all before the first of them."""

    moment: Array  # (..., q, q) or (..., K, q / K, q / K)  Z
    pull: Array  # (..., q) or (..., K, q / K)  y


class Posterior(NamedTuple):
    """Of theta, given the bias."""

    mean: Array  # (..., m) or (..., K, k)
    root: Array  # (..., m, m) or (..., K, k, k)
    evidence: Array  # (...,)  log density of the rewards, but for what does not hang on the bias


@dataclass(frozen=True, kw_only=True)
class Lifted:
    """A learner but for `look_back`; `hetero` weighs each reward by what is not known of its context."""

    hetero: bool = True

    kind = "gaussian"
    chain = None
    lifted = True
    noise = True

    def __post_init__(self) -> None:
        """Check the setting."""
        inputs.flag("hetero", self.hetero)

    @property
    def spread(self) -> bool:
        """Whether it asks what not knowing the context adds to a reward's variance."""
        return self.hetero

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

    def belief(self, parameters: Any, state: Sums) -> Belief:
        """Sums are no belief until a bias is given: they stand for one where it is asked if all is finite."""
        return certain(state.pull)

    def update(self, parameters: Any, state: Sums, row: Array, spread: Array | None, reward: Array) -> Sums:
        """One more round: lifted row (..., q); spread (...,) is what not knowing the context adds."""
        start = self.prior(parameters)
        weight = 1 / (start.reward_var if spread is None else start.reward_var + spread)
        pull = row * (weight * reward)[..., None]
        weighed = row * weight[..., None]
        if start.precision.ndim == 3:
            number = start.precision.shape[0]
            row, pull, weighed = (x.reshape(*x.shape[:-1], number, -1) for x in (row, pull, weighed))
        return Sums(state.moment + weighed[..., None] * row[..., None, :], state.pull + pull)


def prior(known: Knowledge) -> Prior:
    """The prior in the form that sums add to."""
    variance, cov = conjugate.setup(known), known.prior_cov
    xp = cov.__array_namespace__()
    precision = xp.linalg.inv(cov)
    return Prior(precision, matvec(precision, known.prior_mean.reshape(cov.shape[:-1])), variance)


def posterior(prior: Prior, sums: Sums, projection: Array) -> Posterior:
    """Of theta, with all past rounds projected by T (..., m, q), or (..., k, q / K) for a map of blocks."""
    xp = projection.__array_namespace__()
    projection = _fitted(projection, prior.precision)
    size = projection.shape[-1]
    moment = xp.broadcast_to(sums.moment, (*sums.moment.shape[:-2], size, size))
    pulls = xp.broadcast_to(sums.pull, (*sums.pull.shape[:-1], size))
    precision = prior.precision + projection @ moment @ projection.mT
    pull = prior.pull + matvec(projection, pulls)
    factor = xp.linalg.cholesky(precision)
    inverse = xp.linalg.inv(factor)
    half = matvec(inverse, pull)
    evidence = 0.5 * xp.vecdot(half, half) - xp.log(xp.linalg.diagonal(factor)).sum(-1)
    evidence = evidence.sum(-1) if prior.precision.ndim == 3 else evidence
    return Posterior(matvec(inverse.mT, half), inverse.mT, evidence)


def for_nodes(prior: Prior, sums: Sums) -> Sums:
    """The sums with an axis for nodes of the bias between trials and what each trial has."""
    if prior.precision.ndim == 3 and sums.moment.ndim > 2:  # they have blocks, but for the first of all
        return Sums(sums.moment[..., None, :, :, :], sums.pull[..., None, :, :])
    return Sums(sums.moment[..., None, :, :], sums.pull[..., None, :])


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


def refuse_what_cannot_look_back(agent: Agent, features: FeatureMap, known: Knowledge) -> None:
    """Complain of an agent that is to denoise past rounds anew where a part of it or the problem cannot."""
    if not agent.looks_back:
        return
    complaint = f"{agent.name!r} denoises past rounds anew, which"
    if agent.reveals or not hasattr(agent.denoiser, "hindsight"):
        raise InputError("agents", f"{complaint} its denoiser cannot", "alg1-exact with such a learner")
    if not hasattr(features, "projection"):
        allowed = "features linear or quadratic in the context, by a map that can lift them, or other agents"
        raise InputError("agents", f"{complaint} these features cannot", allowed)
    d = known.context_mean.shape[-1]
    size = liftable(features).projection(np.zeros(d), np.eye(d)).shape[-2]
    if known.prior_cov.ndim == 3 and size != known.prior_cov.shape[-1]:
        raise InputError("agents", f"{complaint} a prior in blocks forbids here", "a prior in one piece")
