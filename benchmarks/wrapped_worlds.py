"""Worlds for `wrapped.py`: K arms with an intercept and slopes each, and readings that are wrong in some way.

A context is N(mu, Sigma), its reading context + bias + noise, with coordinates lost here and there. The
reward of an arm is its intercept, its slopes times the *true* context, and N(0, 1). Everything is drawn
beforehand, so that a library alone and behind the denoiser meet the same people, noise and luck.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIM, ARMS = 4, 3
SPREADS = np.array([1.0, 0.7, 1.4, 1.0])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def covariance(spreads: Array, correlation: float) -> Array:
    """Equal correlations."""
    return np.outer(spreads, spreads) * (correlation + (1 - correlation) * np.eye(len(spreads)))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is wrong with the readings."""

    title: str
    gain: bool = True  # is there something to gain for a linear learner
    intercept: bool = True  # of the arms, and of the learners
    away: float = 0.5  # how far its mean is from zero, in standard deviations
    correlation: float = 0.3  # between coordinates of the context
    noise: Array  # (d, d)  the covariance of the noise
    poor: float = 1.0  # what it is multiplied with in every other reading, at random
    lost: float = 0.0  # how often a coordinate is missing
    bias: float = 0.0  # its variance, in units of the context's
    walk: float = 0.0  # the variance of a step of it, in the same units

    @property
    def mean(self) -> Array:
        """Where contexts lie."""
        return self.away * SIGNS * SPREADS

    @property
    def context_cov(self) -> Array:
        """How they spread."""
        return covariance(SPREADS, self.correlation)


class World(NamedTuple):
    """Everything drawn beforehand."""

    contexts: Array  # (T, d)
    readings: Array  # (T, d)  nan where lost
    noises: Array  # (T, d, d)  the covariance of each reading's noise
    theta: Array  # (K, 1 + d)
    rewards: Array  # (T, K)  noise included
    regrets: Array  # (T, K)


SETTINGS: dict[str, Setting] = {
    "lost": Setting(
        title="coordinates lost",
        correlation=0.9,
        noise=covariance(0.2 * SPREADS, 0.0),
        lost=0.4,
    ),
    "precision": Setting(
        title="readings of different precision",
        noise=covariance(0.3 * SPREADS, 0.0),
        poor=50.0,
    ),
    "means": Setting(
        title="correlated noise, means far from zero, no intercepts",
        intercept=False,
        away=2.0,
        noise=covariance(1.4 * SPREADS[::-1], 0.6),
    ),
    "drift": Setting(
        title="a bias that drifts",
        noise=covariance(0.4 * SPREADS, 0.0),
        bias=0.25,
        walk=0.02,
    ),
    "intercepts": Setting(
        title="correlated noise, means far from zero, intercepts",
        gain=False,
        away=2.0,
        noise=covariance(1.4 * SPREADS[::-1], 0.6),
    ),
    "constant": Setting(
        title="a constant bias, equal noise, intercepts",
        gain=False,
        noise=covariance(0.7 * SPREADS, 0.0),
        bias=1.0,
    ),
}


def draw(setting: Setting, rounds: int, seed: int) -> World:
    """One trial."""
    rng = np.random.default_rng(seed)
    normals = rng.standard_normal
    root = np.linalg.cholesky(setting.context_cov)
    contexts = setting.mean + normals((rounds, DIM)) @ root.T
    steps = np.sqrt(setting.walk) * normals((rounds, DIM))
    steps[0] = np.sqrt(setting.bias) * normals(DIM)
    factors = np.where(rng.random(rounds) < 0.5, setting.poor, 1.0)
    noise = np.sqrt(factors)[:, None] * (normals((rounds, DIM)) @ np.linalg.cholesky(setting.noise).T)
    readings = contexts + np.cumsum(steps, 0) @ root.T + noise
    readings[rng.random((rounds, DIM)) < setting.lost] = np.nan
    theta = normals((ARMS, 1 + DIM))
    theta[:, 0] *= setting.intercept
    means = np.column_stack([np.ones(rounds), contexts]) @ theta.T
    rewards = means + normals((rounds, ARMS))
    noises = factors[:, None, None] * setting.noise
    return World(contexts, readings, noises, theta, rewards, means.max(1, keepdims=True) - means)


def floor(world: World, denoised: Array) -> float:
    """The regret of who knows every arm and is shown the denoised readings: what cannot be known."""
    arms = np.argmax(np.column_stack([np.ones(len(denoised)), denoised]) @ world.theta.T, 1)
    return float(world.regrets[np.arange(len(arms)), arms].sum())
