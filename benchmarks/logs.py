"""Simulated logs whose truth is known: noisy contexts, five arms, a logger that learns or one that does not.

Contexts are N(mu, Sigma), noise is as large as they are unless told, the bias is (.8, -.5, .3); d = 3, K = 5.
Rewards are theta_a'[1, c] + N(0, 1/4). The logger sees the noisy context; with the floor every arm keeps the
probability floor / K. One that learns is greedy for least squares of what it was paid so far, arm by arm, so
that it changes its mind by what it was paid; one that does not takes the arm that a theta of its own likes.
"""

from dataclasses import dataclass

import numpy as np

from unfog.channel.channel import Channel
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array, Ints

D, K = 3, 5
MEAN = np.array([0.5, -0.3, 0.2])
COV = np.array([[1.0, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.2]])
BIAS = np.array([0.8, -0.5, 0.3])
SD = 0.5  # of rewards, given the context
THETA = np.random.default_rng(7).normal(size=(K, D + 1)) * 0.6  # of rewards
TASTE = np.random.default_rng(8).normal(size=(K, D + 1))  # of the logger that does not learn
OTHER = np.random.default_rng(9).normal(size=(K, D + 1))  # of the policy to be evaluated
FLOOR = 0.1
ACTIONS = np.random.default_rng(3).normal(size=(K, D))  # numbers of arms, where they share theta
SHARED = np.array([1.0, -0.7, 0.5])


@dataclass(frozen=True)
class World:
    """How noisy contexts are, as a multiple of their covariance, and which share of them is shown later."""

    noise: float = 1.0
    revealed: float = 0.0
    lost: float = 0.0  # share of coordinates
    away: float = 1.0  # how far the mean of contexts is from zero, as a multiple
    shared: bool = False  # rewards are (a * c)'theta, with one theta for all arms and no intercept
    units: int = 0  # devices of a log, each with a bias of its own that spreads as contexts do; 0: one

    @property
    def theta(self) -> Array:
        """What arms pay for [1, c]: (K, d + 1)."""
        return np.pad(ACTIONS * SHARED, ((0, 0), (1, 0))) if self.shared else THETA

    @property
    def channel(self) -> Channel:
        """All of it, the bias too, as from a long calibration."""
        spread = COV if self.units else 0.01 * np.eye(D)
        return Channel(self.away * MEAN, COV, self.noise * COV, spread, BIAS)

    def contexts(self, rng: np.random.Generator, *shape: int) -> tuple[Array, Array]:
        """True ones and noisy ones."""
        root = np.linalg.cholesky(COV)
        true = self.away * MEAN + rng.standard_normal((*shape, D)) @ root.T
        noisy = true + BIAS + np.sqrt(self.noise) * rng.standard_normal((*shape, D)) @ root.T
        noisy = noisy + self.biases(rng, *shape)
        return true, np.where(rng.random(noisy.shape) < self.lost, np.nan, noisy)

    def biases(self, rng: np.random.Generator, *shape: int) -> Array:
        """Of each reading's device: devices take turns in a log, and are as many as readings elsewhere."""
        if not self.units:
            return np.zeros(D)
        own = rng.standard_normal((*shape[:-1], min(self.units, shape[-1]) if shape[1:] else shape[-1], D))
        return (own @ np.linalg.cholesky(COV).T)[..., np.arange(shape[-1]) % own.shape[-2], :]


def with_one(contexts: Array) -> Array:
    filled = np.where(np.isnan(contexts), MEAN + BIAS, contexts)
    return np.concat([np.ones((*contexts.shape[:-1], 1)), filled], axis=-1)


def liking(theta: Array, noisy: Array, sharp: float = 2.0) -> Array:
    """Probabilities (..., K) of a policy that likes arms by theta'[1, noisy]."""
    score = sharp * with_one(noisy) @ theta.T
    chance = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=-1, keepdims=True))


def policy(noisy: Array) -> Array:
    """The one to be evaluated."""
    return liking(OTHER, noisy)


def best(world: World, noisy: Array) -> Ints:
    """The arms (...,) that pay most by the denoised context."""
    gain = COV @ np.linalg.inv(COV + world.noise * COV)
    denoised = world.away * MEAN + (noisy - BIAS - world.away * MEAN) @ gain.T
    return np.asarray((with_one(denoised) @ world.theta.T).argmax(axis=-1))


def truth(world: World, rounds: int = 4_000_000, seed: int = 1) -> float:
    """What it is worth, by brute force."""
    rng, total, part = np.random.default_rng(seed), 0.0, 500_000
    for _ in range(rounds // part):
        true, noisy = world.contexts(rng, part)
        total += float((policy(noisy) * (with_one(true) @ world.theta.T)).sum())
    return total / rounds


def logs(world: World, number: int, rounds: int, *, learns: bool, seed: int) -> list[DecisionLog]:
    """So many, drawn side by side."""
    rng = np.random.default_rng([seed, int(learns)])
    true, noisy = world.contexts(rng, number, rounds)
    score, noise = with_one(true) @ world.theta.T, SD * rng.standard_normal((number, rounds))
    draws = rng.random((number, rounds))
    if learns:
        chance, arm = _learning(with_one(noisy), score, noise, draws)
    else:
        chance = FLOOR / K + (1 - FLOOR) * liking(TASTE, noisy)
        arm = (draws[..., None] > chance.cumsum(-1)[..., :-1]).sum(-1)
    reward = np.take_along_axis(score, arm[..., None], -1)[..., 0] + noise
    shown = rng.random((number, rounds)) < world.revealed
    return [
        DecisionLog(
            ("x", "y", "z"),
            tuple("abcde"),
            noisy[i],
            arm[i],
            reward[i],
            np.take_along_axis(chance[i], arm[i][:, None], -1)[:, 0],
            chance[i],
            np.where(shown[i][:, None], true[i], np.nan) if world.revealed else None,
            unit=np.arange(rounds) % world.units if world.units else None,
            units=tuple(map(str, range(world.units))),
        )
        for i in range(number)
    ]


def _learning(rows: Array, score: Array, noise: Array, draws: Array) -> tuple[Array, Ints]:
    """Round by round, for all logs at once."""
    number, rounds, k = rows.shape
    inverse = np.tile(np.eye(k), (number, K, 1, 1))
    paid = np.zeros((number, K, k))
    chances, arms, every = (
        np.empty((number, rounds, K)),
        np.empty((number, rounds), np.intp),
        np.arange(number),
    )
    for t in range(rounds):
        x = rows[:, t]
        liked = np.einsum("lkij,lkj,li->lk", inverse, paid, x, optimize=True).argmax(-1)
        chance = np.full((number, K), FLOOR / K)
        chance[every, liked] += 1 - FLOOR
        arm = (draws[:, t, None] > chance.cumsum(-1)[:, :-1]).sum(-1)
        chances[:, t], arms[:, t] = chance, arm
        mine = inverse[every, arm]
        moved = (mine @ x[..., None])[..., 0]
        inverse[every, arm] = (
            mine - moved[..., None] * moved[:, None] / (1 + (moved * x).sum(-1))[:, None, None]
        )
        paid[every, arm] += x * (score[every, t, arm] + noise[:, t])[:, None]
    return chances, arms
