"""The belief about the bias where contexts are not Gaussian: one Gaussian, kept by its moments.

With gamma ~ N(g, S) from rounds before t, and contexts that are a mixture, the posterior of gamma given
chat_t is a mixture too, one Gaussian for each component that the context may have come from. Its mean and
covariance are exact, for one round; after each round the one Gaussian with these moments stands for it
(assumed-density filtering, as in denoise/robust.py). In one dimension, contexts skewed by 1.8, its mean is
off by 0.13 posterior deviations after five rounds and by 0.08 after 60, in the root mean square, and its
variance by 16 % and by 7 %. With true contexts revealed chat_t - c_t = gamma + n_t shows the bias whatever
the law of contexts, and the update is the plain Gaussian one, exact for ever:

    g <- g + K (chat_t - c_t - g),    S <- (I - K) S,    K = S (S + Sigma_n)^-1.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import FromEither, spread
from unfog.agents.parts import Denoiser, Expects, KnowsBias, Parameters
from unfog.features import Context
from unfog.maths.arrays import Array, matvec


class Channel(NamedTuple):
    """What a noisy context is made of, by its moments."""

    mean: Array  # (d,)    of contexts
    noisy_cov: Array  # (d, d)  of contexts and noise together
    noise_cov: Array  # (d, d)  Sigma_n
    bias_cov: Array  # (d, d)  Sigma_gamma


class State(NamedTuple):
    """The belief about the bias."""

    mean: Array  # (..., d)
    cov: Array  # (..., d, d)


@dataclass(frozen=True, kw_only=True)
class Filtered(FromEither, Denoiser, Expects, KnowsBias):
    """What such denoisers share; their parameters have a `channel`. The setting `pairs` is as for `exact`."""

    squares = 2

    @abstractmethod
    def seen(self, parameters: Any, state: State, noisy: Array) -> tuple[Context, State]:
        """The moments of the context, and of the bias, given a noisy context (..., d)."""

    def start(self, parameters: Parameters) -> State:
        """The prior."""
        channel: Channel = parameters.channel
        xp = channel.mean.__array_namespace__()
        return State(xp.zeros_like(channel.mean), channel.bias_cov)

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """Mean and covariance of this round's context."""
        return self.seen(parameters, state, noisy)[0]

    def expected(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The mean of contexts and g; the diagonal of their covariance + Sigma_n + S."""
        channel: Channel = parameters.channel
        return bias.expected(channel.mean, channel.noisy_cov, state.mean, state.cov)

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Any) -> State:
        """The Gaussian with the moments of the bias after this round."""
        if not self.pairs:
            return self.seen(parameters, state, noisy)[1]
        channel: Channel = parameters.channel
        gain = gain_of(state.cov, state.cov + channel.noise_cov)
        mean = state.mean + matvec(gain, noisy - context - state.mean)
        return State(mean, symmetric(state.cov - gain @ state.cov))

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The Gaussian that is kept."""
        return spread(state.mean, state.cov)


def gain_of(part: Array, whole: Array) -> Array:
    """What share a part has in the whole, part whole^-1: covariances (..., d, d)."""
    xp = whole.__array_namespace__()
    gain: Array = xp.linalg.solve(whole, part).mT
    return gain


def symmetric(matrix: Array) -> Array:
    """Freed of what rounding leaves between both halves."""
    return 0.5 * (matrix + matrix.mT)
