"""theta and the bias together."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.learn import lifted
from unfog.agents.learn.lifted import Lifted, Posterior, Prior, Sums
from unfog.agents.parts import Hindsight
from unfog.channel.knowledge import Knowledge, posterior_mean
from unfog.features import Context, FeatureMap
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief, square_root

MOST_NODES = 10_000


class Parameters(NamedTuple):
    """The prior, and the nodes."""

    prior: Prior
    nodes: Array  # (n, d)  of N(0, I)


class Mixture(NamedTuple):
    """The posterior: the bias at nodes, and theta given each of them."""

    bias: Array  # (..., n, d)
    weights: Array  # (..., n)
    theta: Posterior  # its first axis after the batch is that of the nodes


@dataclass(frozen=True, kw_only=True)
class Joint(Lifted):
    """theta and the bias together: rewards, too, say something of the bias, and so of every context.

    Given the bias gamma the rounds are independent and theta is Gaussian: with rows T(B gamma, M^-1) z,
    precision P = P0 + T Z T' and b = P0 mu0 + T y from the sums of learn/lifted.py, the density of all
    rewards is

        density(rewards | gamma) = constant det(P)^(-1/2) exp(b'P^-1 b / 2)
        P, b: precision of theta and precision x mean, given gamma and all rewards

    Measurements alone say gamma ~ N(g, S). Nodes of that law, weighed by this density, are the posterior of
    gamma (importance sampling, with theta integrated out: Rao and Blackwell), and theta is a mixture of
    Gaussians over them. Nodes are made anew from today's N(g, S) before every decision, so that weights
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
        return Parameters(lifted.prior(known), normal_nodes(self.nodes, known.context_mean.shape[-1]))

    def prior(self, parameters: Parameters) -> Prior:
        """Among other things."""
        return parameters.prior

    def look_back(
        self, parameters: Parameters, state: Sums, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta, and about this round's context, from all measurements and rewards."""
        mixed = mixture(parameters, state, features, hindsight)
        shrinkage = hindsight.shrinkage
        mean, cov = moments(mixed.weights, mixed.bias)
        left = shrinkage.cov + shrinkage.gain @ cov @ shrinkage.gain.mT
        return _gaussian(parameters.prior, mixed), Context(posterior_mean(shrinkage, noisy, mean), left)


def mixture(parameters: Parameters, state: Sums, features: FeatureMap, hindsight: Hindsight) -> Mixture:
    """The posterior of theta and the bias."""
    xp = hindsight.mean.__array_namespace__()
    shrinkage, liftable = hindsight.shrinkage, lifted.liftable(features)
    bias = hindsight.mean[..., None, :] + xp.asarray(parameters.nodes) @ square_root(hindsight.cov).mT
    projection = liftable.projection(bias @ shrinkage.gain.mT, shrinkage.cov)
    theta = lifted.posterior(parameters.prior, lifted.for_nodes(parameters.prior, state), projection)
    weights = xp.exp(theta.evidence - theta.evidence.max(-1)[..., None])
    return Mixture(bias, weights / weights.sum(-1)[..., None], theta)


def moments(weights: Array, values: Array) -> tuple[Array, Array]:
    """Mean and covariance of weighed values: (..., n), (..., n, d) -> (..., d), (..., d, d)."""
    mean = (weights[..., None, :] @ values)[..., 0, :]
    away = values - mean[..., None, :]
    return mean, (weights[..., None] * away).mT @ away


def _gaussian(prior: Prior, mixed: Mixture) -> Belief:
    """The belief about theta with the moments of the mixture."""
    xp = mixed.weights.__array_namespace__()
    weights, (mean, root, _) = mixed.weights, mixed.theta
    if prior.precision.ndim == 3:
        mean, root, weights = xp.moveaxis(mean, -3, -2), xp.moveaxis(root, -4, -3), weights[..., None, :]
    centre, between = moments(weights, mean)
    roots = xp.moveaxis(root * xp.sqrt(weights)[..., None, None], -3, -2)
    side_by_side = roots.reshape(*roots.shape[:-2], -1)
    return lifted.as_belief(prior, centre, xp.linalg.cholesky(between + side_by_side @ side_by_side.mT))


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
    some = np.vectorize(NormalDist().inv_cdf)(points)
    nodes = np.concat([some, -some])
    found: Array = np.linalg.solve(np.linalg.cholesky(nodes.T @ nodes / len(nodes)), nodes.T).T
    return found
