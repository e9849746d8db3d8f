"""Small logs whose truth is known: correlated, not centred, coordinates of different size."""

import numpy as np

from tests.problems import spd
from unfog.channel.channel import Channel
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array, Ints

NAMES = ("steps", "sleep", "mood", "pulse")
MEAN = np.array([3.0, -1.0, 0.5, 2.0])
BIAS = np.array([0.8, -0.5, 0.3, 0.1])


def channel(d: int = 2, noise: float = 1.0, seed: int = 1) -> Channel:
    """A noisy one whose bias is not known well."""
    rng = np.random.default_rng(seed)
    cov = spd(rng, d, 0.4, 2.5)
    return Channel(MEAN[:d], cov, noise * spd(rng, d, 0.3, 1.5), spd(rng, d, 0.2, 0.8), BIAS[:d])


def drawn(chance: Array, rng: np.random.Generator) -> Ints:
    """An arm for each row of probabilities (n, K)."""
    return np.asarray((rng.random(len(chance))[:, None] > chance.cumsum(axis=1)[:, :-1]).sum(axis=1))


def liking(theta: Array, noisy: Array, epsilon: float = 0.3) -> Array:
    """Probabilities (n, K) of who likes arms by theta (K, d + 1) and the noisy context, zero where lost."""
    score = theta[:, 0] + np.nan_to_num(noisy - MEAN[: noisy.shape[1]]) @ theta[:, 1:].T
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray((1 - epsilon) * chance / chance.sum(axis=1, keepdims=True) + epsilon / len(theta))


class World:
    """Rewards theta_a'[1, c] + N(0, 0.3^2), a logger that does not learn, a policy with another taste."""

    def __init__(self, d: int = 2, arms: int = 3, seed: int = 3, noise: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.channel, self.d, self.arms = channel(d, noise), d, arms
        self.theta, self.taste, self.other = rng.normal(size=(3, arms, d + 1))

    def contexts(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """True and noisy ones, with the bias as the channel says it."""
        mean, cov, noise = self.channel.context_mean, self.channel.context_cov, self.channel.noise_cov
        true = rng.multivariate_normal(mean, cov, n)
        return true, true + self.channel.bias + rng.multivariate_normal(np.zeros(self.d), noise, n)

    def scores(self, true: Array) -> Array:
        """What every arm pays on average: (n, K)."""
        return np.asarray(self.theta[:, 0] + true @ self.theta[:, 1:].T)

    def policy(self, noisy: Array) -> Array:
        """The one to be valued."""
        return liking(self.other, noisy, 0.0)

    def worth(self, n: int = 400_000) -> float:
        """Its value, by brute force."""
        true, noisy = self.contexts(n, np.random.default_rng(99))
        return float(np.vecdot(self.policy(noisy), self.scores(true)).mean())

    def log(
        self, n: int, seed: int, *, shown: float = 0.0, lost: float = 0.0, uniform: bool = False
    ) -> DecisionLog:
        """One log; a share of true contexts is shown, a share of coordinates lost."""
        rng = np.random.default_rng(seed)
        true, noisy = self.contexts(n, rng)
        noisy = np.where(rng.random(noisy.shape) < lost, np.nan, noisy)
        chance = liking(self.taste, noisy, 1.0 if uniform else 0.3)
        arm = drawn(chance, rng)
        reward = self.scores(true)[np.arange(n), arm] + 0.3 * rng.standard_normal(n)
        told = np.where(rng.random((n, 1)) < shown, true, np.nan) if shown else None
        names = tuple("abcdefg"[: self.arms])
        return DecisionLog(
            NAMES[: self.d], names, noisy, arm, reward, chance[np.arange(n), arm], chance, told
        )
