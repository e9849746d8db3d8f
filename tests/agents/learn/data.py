"""Rounds with rewards of 0 or 1, their posterior by sums over grids, and learners that remember them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from tests.problems import (
    covariance_error,
    evidence,
    random_knowledge,
    spd,
)
from unfog.agents.learn.logistic import Refit, State
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array


class Data(NamedTuple):
    """A prior, and rounds that were played: correlated, anisotropic, not centred."""

    known: Knowledge
    rows: Array  # (n, m)
    spreads: Array  # (n, m, m)
    rewards: Array  # (n,)

    def energy(self, theta: Array, marginal: bool = False) -> Any:
        """Minus the log posterior up to a constant: theta (..., m) -> (...,)."""
        away = theta - self.known.prior_mean
        prior = 0.5 * np.einsum("...i,ij,...j", away, np.linalg.inv(self.known.prior_cov), away)
        logits = theta @ self.rows.T
        if marginal:
            variances = np.einsum("...i,nij,...j->...n", theta, self.spreads, theta)
            logits = logits / np.sqrt(1 + np.pi / 8 * variances)
        return prior - log_expit(np.where(self.rewards == 1, logits, -logits)).sum(-1)

    def moments(self, points: int) -> tuple[Array, Array]:
        """Mean and covariance of the posterior by a sum over a grid of 7 prior standard deviations."""
        mean, deviations = self.known.prior_mean, np.sqrt(np.diag(self.known.prior_cov))
        lines = [np.linspace(m - 7 * s, m + 7 * s, points) for m, s in zip(mean, deviations, strict=True)]
        grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, len(mean))
        heights = self.energy(grid)
        weights = np.exp(heights.min() - heights)
        weights = weights / weights.sum()
        centre = weights @ grid
        return centre, (weights[:, None] * (grid - centre)).T @ (grid - centre)

    def mode(self, marginal: bool = False) -> Array:
        found = minimize(lambda at: float(self.energy(at, marginal)), self.known.prior_mean, tol=1e-12)
        return np.asarray(found.x, np.float64)


def make_data(size: int, n: int, seed: int = 1, scale: float = 1.2) -> Data:
    rng = np.random.default_rng([seed, size, n])
    known = random_knowledge(seed, dim=2, size=size)._replace(
        prior_mean=rng.normal(0.6, 0.5, size), prior_cov=spd(rng, size, 0.3, 1.5), reward_var=None
    )
    rows, roots = rng.normal(0.4, scale, (n, size)), rng.normal(0.0, 0.5, (n, size, size))
    theta = rng.multivariate_normal(known.prior_mean, known.prior_cov)
    return Data(known, rows, roots @ roots.mT, (rng.random(n) < expit(rows @ theta)).astype(np.float64))


def remember(learner: Refit, data: Data, room: int | None = None) -> Any:
    parameters, state = learner.setup(data.known), learner.start(data.known, room)
    for row, spread, reward in zip(data.rows, data.spreads, data.rewards, strict=True):
        state = learner.update(parameters, state, evidence(row, spread), reward)
    return parameters, state


def walk(learner: Refit, parameters: Any, state: State, steps: int, normals: Callable[[], Array]) -> State:
    for _ in range(steps):
        state = learner.step(parameters, state, normals())
    return state


def same_moments(draws: Array, mean: Array, cov: Array, bias: float = 0.0) -> None:
    """Draws (n, m) against moments, at 4 standard errors; `bias` in standard deviations is allowed beyond."""
    n, deviations = len(draws), np.sqrt(np.diag(cov))
    gap = np.abs(draws.mean(0) - mean) - bias * deviations
    assert np.all(gap < 4 * deviations / np.sqrt(n))
    # The posterior is no Gaussian: its fourth moments are within a quarter of one's.
    allowed = 4 * 1.15 * covariance_error(cov, n) + bias * np.outer(deviations, deviations)
    assert np.all(np.abs(np.cov(draws.T) - cov) < allowed)


def hessian_by_differences(data: Data, at: Array, marginal: bool = False, step: float = 1e-4) -> Array:
    moves = step * np.eye(len(at))

    def value(*steps: Array) -> float:
        return float(data.energy(at + sum(steps), marginal))

    second = [[value(a, b) - value(a, -b) - value(-a, b) + value(-a, -b) for a in moves] for b in moves]
    return np.array(second) / (4 * step**2)
