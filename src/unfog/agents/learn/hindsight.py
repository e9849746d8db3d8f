"""Learners that denoise past rounds again: rewards are kept in a form that waits for the bias.

With lifted rows z (features/base.py) all that past rounds say of theta, given the bias, is in the sums

    Z = sum z z' / s^2,    y = sum z r / s^2:    precision P = P0 + T Z T',    mean P^-1 (P0 mu0 + T y),

with the variances s^2 of the rewards as they were thought to be at the time. A round costs as much after a
million rounds as after one, but more than a rank-one update: P must be computed and factorised at every
decision. A prior in blocks is kept in blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple, cast

import numpy as np

from unfog import validation
from unfog.agents.base import Denoiser, Evidence, Grows, Hindsight, KnowsBias, Learner, LooksBack
from unfog.agents.learn.conjugate import reward_variance
from unfog.channel.knowledge import Knowledge, posterior_mean
from unfog.features import Context, FeatureMap
from unfog.features.base import Liftable
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Belief, Blocks, Gaussian, certain, square_root
from unfog.validation import InputError

MOST_NODES = 10_000


class Prior(NamedTuple):
    """What is known of theta and of rewards before the first round."""

    precision: Array  # (m, m), or (K, k, k): independent blocks
    natural_mean: Array  # (m,) or (K, k)  precision times mean
    reward_var: Array  # ()


class Sums(NamedTuple):
    """Sums over past rounds; before the first, arrays of size one stand for them."""

    moment: Array  # (..., q, q) or (..., K, q / K, q / K)  Z
    natural_mean: Array  # (..., q) or (..., K, q / K)  y


class Posterior(NamedTuple):
    """The posterior of theta, given the bias."""

    mean: Array  # (..., m) or (..., K, k)
    root: Array  # (..., m, m) or (..., K, k, k)
    evidence: Array  # (...,)  log density of the rewards, up to what does not depend on the bias


class Parameters(NamedTuple):
    """The prior, and the nodes."""

    prior: Prior
    nodes: Array  # (n, d)  of N(0, I)


class Mixture(NamedTuple):
    """The posterior: the bias at nodes, and theta given each of them."""

    bias: Array  # (..., n, d)
    weights: Array  # (..., n)
    theta: Posterior  # its first axis after the batch is that of the nodes


class FromNoisy(Learner, LooksBack):
    """A learner that looks back along a denoiser which learns the bias from noisy contexts alone."""

    def misses(self, denoiser: Denoiser) -> str:
        """One that rewinds and learns the bias from noisy contexts alone."""
        wants_noisy = "a denoiser that learns from noisy contexts alone" if denoiser.sees_context else ""
        wants_bias = (
            "" if isinstance(denoiser, KnowsBias) else "a denoiser whose past rounds wait for the bias"
        )
        return super().misses(denoiser) or wants_noisy or wants_bias

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """Features must be liftable, and a prior in blocks must have the blocks of the features."""
        super().check(known, features)
        check_blocks(self.name, known, features)


@dataclass(frozen=True, kw_only=True)
class Lifted(Grows, FromNoisy):
    """A base for learners with `look_back`; `hetero` weighs each reward by what its context hides."""

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
        known_prior: Prior = parameters
        return known_prior

    def start(self, known: Knowledge, rounds: int | None) -> Sums:
        """Zero, in a shape that broadcasts to any other: only the feature map knows the size of z."""
        return Sums(np.zeros((1, 1)), np.zeros(1))

    def grow(self, old: Knowledge, new: Knowledge, state: Sums) -> Sums:
        """The sums with zeros for new arms, which no lifted row has touched."""
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
        """A stand-in for checks that all is finite: sums are no belief until a bias is given."""
        return certain(state.natural_mean)

    def noise(self, parameters: Any, state: Sums, hidden: Array | float) -> Array:
        """The told variance, plus what the context hides."""
        return self.prior(parameters).reward_var + hidden

    def update(self, parameters: Any, state: Sums, evidence: Evidence, reward: Array) -> Sums:
        """One more round, by its lifted row (..., q)."""
        prior, row = self.prior(parameters), evidence.lifted_row()
        weight = 1 / (prior.reward_var + evidence.context_variance() if self.hetero else prior.reward_var)
        natural_mean = row * (weight * reward)[..., None]
        weighted = row * weight[..., None]
        if prior.precision.ndim == 3:
            shape = *row.shape[:-1], prior.precision.shape[0], -1
            row, natural_mean, weighted = (x.reshape(*shape) for x in (row, natural_mean, weighted))
        moment = state.moment + weighted[..., None] * row[..., None, :]
        return Sums(moment, state.natural_mean + natural_mean)


@dataclass(frozen=True, kw_only=True)
class Smoothing(Lifted):
    """The conjugate learner with hindsight: every past round is denoised with what is known of the bias
    today.

    The filter keeps expected features as they were when the bias was hardly known. Given all measurements up
    to now the bias is N(g, S), and the context of every round, this one included, N(v - B g, M^-1 + B S B')
    with v its mean were the bias zero. The rows of all past rounds follow as x = T(B g, M^-1 + B S B') z from
    sums of lifted rows (`Sums`): exactly what computing all of them again would give, at a cost that
    does not grow. The variances of past rewards stay as they were thought to be at the time. Rewards say
    nothing of the bias here: see `Joint`.

    Settings
    --------
    `hetero` weighs each reward by the variance it has given its features.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Smoothing(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=30, trials=10, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.9, 7.2]
    """

    name = "smoothing"
    note = "denoises all past rounds anew with what is known of the bias by now"
    cost = 1.6

    def look_back(
        self, parameters: Prior, state: Sums, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta with all past rounds denoised again, and about this round's context."""
        gain = hindsight.shrinkage.gain
        cov = hindsight.shrinkage.cov + gain @ hindsight.cov @ gain.mT
        projection = as_liftable(features).projection(matvec(gain, hindsight.mean), cov)
        mean, root, _ = posterior(parameters, state, projection)
        context = Context(posterior_mean(hindsight.shrinkage, noisy, hindsight.mean), cov)
        return as_belief(parameters, mean, root), context


@dataclass(frozen=True, kw_only=True)
class Joint(Lifted):
    """theta and the bias together: rewards, too, say something of the bias, and so of every context.

    Given the bias gamma the rounds are independent and theta is Gaussian: with rows T(B gamma, M^-1) z,
    precision P = P0 + T Z T' and b = P0 mu0 + T y from the `Sums` of past rounds, the density of all
    rewards is

        density(rewards | gamma) = constant det(P)^(-1/2) exp(b'P^-1 b / 2)
        P, b: precision of theta and precision x mean, given gamma and all rewards

    Measurements alone say gamma ~ N(g, S). Nodes of that law, weighed by this density, are the posterior of
    gamma (importance sampling, with theta integrated out: Rao and Blackwell), and theta is a mixture of
    Gaussians over them. Nodes are recomputed from the current N(g, S) before every decision, so that weights
    cannot wear out: over a run of any length they are uneven only as far as rewards say more of the bias than
    measurements do.

    Three approximations. The variances of past rewards are those of their day, where the likelihood has
    sigma^2 + theta'Cov(phi)theta, which also says something of theta. The mixture is passed on as the
    Gaussian with its mean and covariance; for a prior in blocks, block by block. And the context is taken for
    independent of theta, though the bias couples them. tests/lab/test_joint_nuts.py measures the error. A
    round costs a factorisation for every node.

    Settings
    --------
    How many `nodes`, or twice the dimension where that is more; `hetero` as for others.

    >>> import unfog
    >>> agent = unfog.Agent("mine", unfog.denoise.Exact(), unfog.learn.Joint(), unfog.choose.Ucb())
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=20, trials=10, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.0, 5.2]
    """

    nodes: int = 16

    name = "joint"
    note = "learns theta and the bias together: rewards, too, say something of the bias"

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        validation.count("nodes", self.nodes, 2, MOST_NODES)

    @property
    def cost(self) -> float:
        """A factorisation for every node."""
        return 1.8 * self.nodes

    def setup(self, known: Knowledge) -> Parameters:
        """The prior and the nodes."""
        return Parameters(prior(known), normal_nodes(self.nodes, known.context_mean.shape[-1]))

    def prior(self, parameters: Parameters) -> Prior:
        """Among other things."""
        return parameters.prior

    def look_back(
        self, parameters: Parameters, state: Sums, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta, and about this round's context, from all measurements and rewards."""
        posterior = mixture(parameters, state, features, hindsight)
        shrinkage = hindsight.shrinkage
        mean, cov = moments(posterior.weights, posterior.bias)
        context_cov = shrinkage.cov + shrinkage.gain @ cov @ shrinkage.gain.mT
        return _to_gaussian(parameters.prior, posterior), Context(
            posterior_mean(shrinkage, noisy, mean), context_cov
        )


def prior(known: Knowledge) -> Prior:
    """The prior as precision and natural mean, to which the sums are added."""
    variance, cov = reward_variance(known), known.prior_cov
    xp = cov.__array_namespace__()
    precision = xp.linalg.inv(cov)
    return Prior(precision, matvec(precision, known.prior_mean.reshape(cov.shape[:-1])), variance)


def check_blocks(learner: str, known: Knowledge, features: FeatureMap) -> None:
    """Raise InputError for a prior in other blocks than those of the features."""
    d = known.context_mean.shape[-1]
    size = as_liftable(features).projection(np.zeros(d), np.eye(d)).shape[-2]
    if known.prior_cov.ndim == 3 and size != known.prior_cov.shape[-1]:
        raise InputError("learner", f"{learner!r} with this prior in blocks", "a prior in one piece")


def posterior(prior: Prior, sums: Sums, projection: Array) -> Posterior:
    """The posterior of theta, all past rounds projected by T (..., m, q), or (..., k, q / K) for blocks."""
    xp = projection.__array_namespace__()
    projection = _match_blocks(projection, prior.precision)
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


def as_liftable(features: FeatureMap) -> Liftable:
    """The map as one that lifts: those that do not were refused before the first round."""
    return cast(Liftable, features)


def as_belief(prior: Prior, mean: Array, root: Array) -> Belief:
    """The belief, in blocks if the prior is."""
    form: Callable[[Array, Array], Belief] = Blocks if prior.precision.ndim == 3 else Gaussian
    return form(mean, root)


def _match_blocks(projection: Array, precision: Array) -> Array:
    """T with an axis for blocks if the prior has them, or as one matrix if only the map has."""
    xp = projection.__array_namespace__()
    if precision.ndim == 3:
        return projection[..., None, :, :]
    size, width = projection.shape[-2:]
    number = precision.shape[-1] // size
    if number == 1:
        return projection
    eye = xp.eye(number, dtype=projection.dtype)[:, None, :, None]
    blocks = eye * projection[..., None, :, None, :]
    return blocks.reshape(*blocks.shape[:-4], number * size, number * width)


def mixture(parameters: Parameters, state: Sums, features: FeatureMap, hindsight: Hindsight) -> Mixture:
    """The posterior of theta and the bias."""
    xp = hindsight.mean.__array_namespace__()
    shrinkage, liftable = hindsight.shrinkage, as_liftable(features)
    bias = hindsight.mean[..., None, :] + xp.asarray(parameters.nodes) @ square_root(hindsight.cov).mT
    projection = liftable.projection(bias @ shrinkage.gain.mT, shrinkage.cov)
    theta = posterior(parameters.prior, for_nodes(parameters.prior, state), projection)
    weights = xp.exp(theta.evidence - theta.evidence.max(-1)[..., None])
    return Mixture(bias, weights / weights.sum(-1)[..., None], theta)


def for_nodes(prior: Prior, sums: Sums) -> Sums:
    """The sums with an axis for nodes of the bias, after those of trials."""
    if prior.precision.ndim == 3 and sums.moment.ndim > 2:  # in blocks, after the first reward
        return Sums(sums.moment[..., None, :, :, :], sums.natural_mean[..., None, :, :])
    return Sums(sums.moment[..., None, :, :], sums.natural_mean[..., None, :])


def moments(weights: Array, values: Array) -> tuple[Array, Array]:
    """Mean and covariance of weighed values: (..., n), (..., n, d) -> (..., d), (..., d, d)."""
    mean = (weights[..., None, :] @ values)[..., 0, :]
    centred = values - mean[..., None, :]
    return mean, (weights[..., None] * centred).mT @ centred


def _to_gaussian(prior: Prior, mixture: Mixture) -> Belief:
    """The belief about theta with the moments of the mixture."""
    xp = mixture.weights.__array_namespace__()
    weights, (mean, root, _) = mixture.weights, mixture.theta
    if prior.precision.ndim == 3:
        mean, root, weights = xp.moveaxis(mean, -3, -2), xp.moveaxis(root, -4, -3), weights[..., None, :]
    centre, between = moments(weights, mean)
    roots = xp.moveaxis(root * xp.sqrt(weights)[..., None, None], -3, -2)
    side_by_side = roots.reshape(*roots.shape[:-2], -1)
    return as_belief(prior, centre, xp.linalg.cholesky(between + side_by_side @ side_by_side.mT))


def normal_nodes(number: int, dim: int) -> Array:
    """Nodes for N(0, I): symmetric about zero, with covariance I, else spread evenly: (n, d).

    Quantiles of an additive recurrence with the steps 1/g, 1/g^2, ... where g^(d + 1) = g + 1 (M. Roberts,
    *The Unreasonable Effectiveness of Quasirandom Sequences*), each with its mirror image, then whitened.
    Fewer than 2d could not have covariance I.
    """
    golden: Any = 2.0
    for _ in range(100):
        golden = (1 + golden) ** (1 / (dim + 1))
    half = max((number + 1) // 2, dim)
    points = (0.5 + np.outer(np.arange(1, half + 1), golden ** -np.arange(1.0, dim + 1))) % 1
    quantiles = np.vectorize(NormalDist().inv_cdf)(points)
    nodes = np.concat([quantiles, -quantiles])
    whitened: Array = np.linalg.solve(np.linalg.cholesky(nodes.T @ nodes / len(nodes)), nodes.T).T
    return whitened
