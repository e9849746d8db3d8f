"""Denoise with the bias known where contexts are drawn from a sample."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.denoise.bias import certain
from unfog.agents.parts import Denoiser, Expects, KnowsBias, Privilege, Privileged
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import mixture
from unfog.maths.arrays import Array
from unfog.maths.mixture import Points


class Parameters(NamedTuple):
    """The channel, bias included, and what contexts there are."""

    points: Points
    precision: Array  # (d, d)  Sigma_n^-1
    bias: Array  # (..., d)
    mean: Array  # (d,)  of a noisy context without its bias
    variance: Array  # (d,)


@dataclass(frozen=True, kw_only=True)
class KnownBiasAtoms(Denoiser, Expects, KnowsBias, Privileged):
    """Denoise with the bias known where contexts are drawn from a sample: the discrete posterior over its
    atoms.

    With atoms u_1 .. u_n, each as likely as any other, and gamma* told,

        w_i = P(i | chat_t), in proportion to N(chat_t; u_i + gamma, Sigma_n)
        E[c_t] = sum w_i u_i,   Cov(c_t) = sum w_i u_i u_i' - E[c_t] E[c_t]'
        i: one of the sample;   u_i: its place

    This is Bayes' rule without the Gaussian law of contexts (maths/mixture.py). A belief here is a mean and a
    covariance: all that matters to features linear in the context, which are those of the worlds that have
    such a sample. The channel is the one that agents are told, as for `known_bias`.

    It has no settings, and remembers nothing: there is nothing to learn about the channel.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.KnownBiasAtoms(), unfog.learn.Scaled(), unfog.choose.Ucb()
    ... )
    >>> agent.denoiser.needs_knowledge  # a world must tell it the contexts that there are
    ('contexts',)
    """

    name = "known_bias_atoms"
    note = "is told the bias, and the contexts there are"
    cost = 1.6  # with a thousand atoms
    squares = 1
    needs_knowledge = ("contexts",)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The table of the atoms, and the bias that was shown."""
        if privilege is None or known.contexts is None:
            raise ValueError(f"{self.name} must be shown the bias, and a sample of contexts")
        xp = known.noise_cov.__array_namespace__()
        variance = known.contexts.var(0) + xp.linalg.diagonal(known.noise_cov)
        channel = xp.linalg.inv(known.noise_cov), privilege.bias
        return Parameters(mixture.points(known.contexts), *channel, known.contexts.mean(0), variance)

    def with_bias(self, parameters: Parameters, bias: Array) -> Parameters:
        """The bias of this round, where it drifts."""
        return parameters._replace(bias=bias)

    def predict(self, parameters: Parameters, state: tuple[()], noisy: Array) -> Context:
        """The posterior of the context given its measurement and the bias."""
        return Context(
            *mixture.points_posterior(parameters.points, parameters.precision, noisy - parameters.bias)
        )

    def expected(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """The mean of all atoms and gamma; their variance and that of the noise."""
        return parameters.mean + parameters.bias, parameters.variance

    def bias(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """As told, for certain."""
        return certain(parameters.bias)
