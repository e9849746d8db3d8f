"""Denoise with the bias known."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.denoise.bias import certain
from unfog.agents.parts import Denoiser, Expects, KnowsBias, Privilege, Privileged
from unfog.channel.knowledge import Knowledge, Shrinkage, as_told, posterior_mean
from unfog.features import Context
from unfog.maths.arrays import Array


class Parameters(NamedTuple):
    """The channel, bias included."""

    shrinkage: Shrinkage
    bias: Array  # (..., d)
    variance: Array  # (d,)  of a noisy context's coordinates


@dataclass(frozen=True, kw_only=True)
class KnownBias(Denoiser, Expects, KnowsBias, Privileged):
    """Denoise with the bias known (TS_oracle in the paper).

        c_t ~ N(mu_c + B (chat_t - mu_c - gamma),  Sigma_c - B Sigma_c),   B = Sigma_c (Sigma_c + Sigma_n)^-1

    In the paper's letters that is N(A, M^-1) at gamma*. After Park and Faradonbeh, *Analysis of Thompson
    Sampling for Partially Observable Contextual Multi-Armed Bandits*. The bias is a privilege: the simulator
    shows it to denoisers that declare themselves `Privileged` alone.

    It has no settings, and remembers nothing: there is nothing to learn about the channel.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.KnownBias(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.4, 8.0]
    """

    name = "known_bias"
    note = "is told the bias"
    settled = True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The gain, and the bias that was shown."""
        if privilege is None:
            raise ValueError("known_bias needs a privilege: it must be shown the bias")
        xp = known.context_cov.__array_namespace__()
        variance = xp.linalg.diagonal(known.context_cov + known.noise_cov)
        return Parameters(as_told(known), privilege.bias, variance)

    def with_bias(self, parameters: Parameters, bias: Array) -> Parameters:
        """The bias of this round, where it drifts."""
        return parameters._replace(bias=bias)

    def predict(self, parameters: Parameters, state: tuple[()], noisy: Array) -> Context:
        """The posterior of the context given its measurement and the bias."""
        mean = posterior_mean(parameters.shrinkage, noisy, parameters.bias)
        return Context(mean, parameters.shrinkage.cov)

    def expected(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """mu_c + gamma, and the diagonal of Sigma_c + Sigma_n."""
        return parameters.shrinkage.mean + parameters.bias, parameters.variance

    def bias(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """As told, for certain."""
        return certain(parameters.bias)
