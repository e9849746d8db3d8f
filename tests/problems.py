"""Random problems (correlated, anisotropic, not centred) and truths worked out the long way."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.base import Evidence
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, Design
from unfog.features.base import Form
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Belief, Blocks
from unfog.worlds.synthetic import GaussianProblem

Phi = Callable[[Array, Array], Array]


def spd(rng: np.random.Generator, size: int, least: float = 0.3, most: float = 3.0) -> Array:
    """A correlated covariance whose eigenvalues run from `least` to `most`."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    matrix = basis * np.geomspace(least, most, size) @ basis.T
    return (matrix + matrix.T) / 2


def random_knowledge(seed: int, dim: int = 3, size: int = 9) -> Knowledge:
    rng = np.random.default_rng(seed)
    return Knowledge(
        context_mean=rng.normal(1.0, 1.0, dim),
        context_cov=spd(rng, dim),
        noise_cov=spd(rng, dim, 0.2, 4.0),
        bias_cov=spd(rng, dim, 0.5, 5.0),
        prior_mean=rng.normal(0.3, 0.5, size),
        prior_cov=spd(rng, size, 0.05, 1.0),
        reward_var=np.asarray(0.7),
    )


def random_problem(seed: int, dim: int = 3, actions: int = 6) -> GaussianProblem:
    """The quadratic bandit with a random knowledge."""
    known = random_knowledge(seed, dim, 3 * dim)
    return GaussianProblem(
        dim=dim,
        actions=actions,
        context_mean=known.context_mean,
        context_cov=known.context_cov,
        noise_cov=known.noise_cov,
        bias_cov=known.bias_cov,
        prior_mean=known.prior_mean,
        prior_cov=known.prior_cov,
        reward_var=float(np.asarray(known.reward_var)),
    )


def inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), np.float64)


def given(mean: Array, cov: Array, rows: Array, values: Array) -> tuple[Array, Array]:
    """Mean and covariance of x ~ N(mean, cov) given rows x = values, by the textbook formula."""
    gain = cov @ rows.T @ np.linalg.inv(rows @ cov @ rows.T)
    return mean + gain @ (values - rows @ mean), cov - gain @ rows @ cov


def gauss_hermite(mean: Array, cov: Array, order: int) -> tuple[Array, Array]:
    """Points (n, d) and weights (n,) for N(mean, cov), through its eigenvectors."""
    nodes, weights = np.polynomial.hermite.hermgauss(order)
    d = len(mean)
    grid = np.array(list(product(np.sqrt(2) * nodes, repeat=d)))
    products = np.array(list(product(weights / np.sqrt(np.pi), repeat=d))).prod(1)
    values, vectors = np.linalg.eigh(cov)
    return mean + grid * np.sqrt(values) @ vectors.T, products


def feature_moments(phi: Phi, actions: Array, context: Context, order: int = 6) -> tuple[Array, Array]:
    """E[phi(a, c)], (K, m), and Cov(phi(a, c)), (K, m, m), one arm and one point after the other."""
    points, weights = gauss_hermite(context.mean, context.cov, order)
    values = np.array([[phi(action, point) for point in points] for action in actions])
    rows = np.einsum("n,knm->km", weights, values)
    centred = values - rows[:, None]
    return rows, np.einsum("n,knp,knq->kpq", weights, centred, centred)


def quadratic_phi(action: Array, context: Array) -> Array:
    """[a_i^2, c_i^2, a_i c_i], entry by entry."""
    d = range(len(context))
    squares = [action[i] ** 2 for i in d] + [context[i] ** 2 for i in d]
    return np.array(squares + [action[i] * context[i] for i in d])


def every_row(design: Design, arms: int) -> Array:
    """Expected features of all arms of one round, (K, m)."""
    return np.stack([design.row(np.asarray(arm)) for arm in range(arms)])


def every_covariance(design: Design, arms: int) -> Array:
    """Cov(phi) of all arms of one round, (K, m, m)."""
    return np.stack([design.covariance(np.asarray(arm)) for arm in range(arms)])


def within(found: Array, truth: Array, standard_error: Array, errors: float = 5.0) -> bool:
    """Whether Monte Carlo is this many standard errors from the truth, or nearer, in every entry."""
    return bool(np.all(np.abs(found - truth) <= errors * standard_error))


def covariance_error(cov: Array, draws: int) -> Array:
    """Standard error of every entry of a sample covariance of Gaussians."""
    spread = np.diag(cov)
    error: Array = np.sqrt((spread[:, None] * spread + cov**2) / draws)
    return error


class Bare(NamedTuple):
    """A design of one arm, of which nothing but the row and the covariance of its features is known."""

    features: Array  # (..., m)
    spread: Array  # (..., m, m)

    def scores(self, theta: Array) -> Array:
        return (self.features * theta).sum(-1)[..., None]

    def row(self, arm: Any) -> Array:
        return self.features

    def variances(self, belief: Belief) -> Array:
        return belief.variance(self.features)[..., None]

    def covariance(self, arm: Any) -> Array:
        return self.spread

    def context_variance(self, belief: Belief, arm: Any) -> Array:
        """One coordinate of theta after the other: E[theta_i theta_j] Cov(phi_i, phi_j)."""
        mean, cov = belief.centre, belief.root @ belief.root.mT
        if isinstance(belief, Blocks):
            xp, number = cov.__array_namespace__(), cov.shape[-3]
            cov = xp.eye(number)[:, None, :, None] * cov[..., :, :, None, :]
            cov = cov.reshape(*cov.shape[:-4], *self.spread.shape[-2:])
        found: Array = (self.spread * (cov + mean[..., :, None] * mean[..., None, :])).sum((-2, -1))
        return found

    def context_slope(self, theta: Array, arm: Any) -> Array:
        return matvec(self.spread, theta)

    def laws(self, theta: Array) -> Any:
        raise NotImplementedError


def evidence(row: Array, spread: Array | None = None, belief: Belief | None = None) -> Evidence:
    """A round that shows this row (..., m), whose features have this covariance, or none."""
    xp = row.__array_namespace__()
    size, dtype = row.shape[-1], row.dtype
    spread = xp.zeros((size, size), dtype=dtype) if spread is None else spread
    belief = gaussian.certain(xp.zeros(size, dtype=dtype)) if belief is None else belief
    features: Any = None
    return Evidence(features, Bare(row, spread), belief, xp.zeros(row.shape[:-1], dtype=int))


def law_mean(law: Any) -> Array:
    """E[score], from what a law is made of: a quadratic form of normals, or weighed points."""
    found: Array = law.shift + law.curvature.sum(-1) if isinstance(law, Form) else law.values @ law.weights
    return found


def law_variance(law: Any) -> Array:
    """Var(score), likewise."""
    if isinstance(law, Form):
        found: Array = (law.slope**2 + 2 * law.curvature**2).sum(-1)
        return found
    away: Array = (law.values - law_mean(law)[..., None]) ** 2 @ law.weights
    return away
