"""Rounds as they happened, and the joint Gaussian of bias, contexts and measurements behind them."""

from collections.abc import Sequence

import numpy as np

from tests.problems import given
from unfog.agents.base import Denoiser, Privilege
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array

D = 3


class Joint:
    """N over (gamma, c_1 .. c_t, n_1 .. n_t), from which anything seen is a linear map."""

    def __init__(self, known: Knowledge, rounds: int) -> None:
        blocks = [known.bias_cov, *[known.context_cov] * rounds, *[known.noise_cov] * rounds]
        size = D * len(blocks)
        self.mean = np.concatenate([np.zeros(D), *[known.context_mean] * rounds, np.zeros(D * rounds)])
        self.cov = np.zeros((size, size))
        for i, block in enumerate(blocks):
            self.cov[i * D : i * D + D, i * D : i * D + D] = block
        unit = np.eye(size).reshape(len(blocks), D, size)
        self.bias, self.contexts = unit[0], unit[1 : rounds + 1]
        self.noisy = self.bias + self.contexts + unit[rounds + 1 :]

    def posterior(self, wanted: Array, seen: Sequence[Array], values: Sequence[Array]) -> tuple[Array, Array]:
        """Mean and covariance of the rows `wanted` given the rows `seen`."""
        mean, cov = self.mean, self.cov
        if seen:
            mean, cov = given(mean, cov, np.concatenate(seen), np.concatenate(values))
        return wanted @ mean, wanted @ cov @ wanted.T


class Story:
    """What happened in some rounds: any values do, conditioning holds for all of them."""

    def __init__(self, known: Knowledge, rounds: int, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        draw = rng.multivariate_normal
        self.known, self.bias = known, draw(np.zeros(D), known.bias_cov)
        self.contexts = draw(known.context_mean, known.context_cov, rounds)
        self.noisy = self.contexts + self.bias + draw(np.zeros(D), known.noise_cov, rounds)

    def beliefs(self, denoiser: Denoiser, privilege: Privilege | None = None) -> list[Context]:
        """What the denoiser believes in each round."""
        parameters = denoiser.setup(self.known, privilege)
        state, found = denoiser.start(parameters), []
        for noisy, context in zip(self.noisy, self.contexts, strict=True):
            found.append(denoiser.predict(parameters, state, noisy))
            state = denoiser.update(parameters, state, noisy, context)
        return found

    def bias_posterior(self, t: int, pairs: bool) -> tuple[Array, Array]:
        """P(gamma | history before round t), brute force; rounds count from 0."""
        joint = Joint(self.known, t + 1)
        seen, values = [*joint.noisy[:t]], [*self.noisy[:t]]
        if pairs:
            seen, values = [*seen, *joint.contexts[:t]], [*values, *self.contexts[:t]]
        return joint.posterior(joint.bias, seen, values)


def same(found: Context, mean: Array, cov: Array, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found.mean, mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.cov, cov, rtol=tolerance, atol=tolerance)
