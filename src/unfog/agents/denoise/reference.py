"""Denoisers to compare with: told the bias, taking readings for the truth, or ignoring them."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.base import Denoiser, KnowsBias, PredictsReading, Privilege, SeesBias, TakesNoise
from unfog.agents.denoise.bias import known_belief
from unfog.channel.knowledge import Knowledge, Shrinkage, known_shrinkage, posterior_mean, shrinkage
from unfog.features import Context
from unfog.maths import mixture
from unfog.maths.arrays import Array
from unfog.maths.linalg import inverse
from unfog.maths.mixture import Points


class Parameters(NamedTuple):
    """The channel, bias included."""

    context_cov: Array  # (d, d)
    shrinkage: Shrinkage
    bias: Array  # (..., d)
    variance: Array  # (..., d)  of a noisy context's coordinates


@dataclass(frozen=True, kw_only=True)
class KnownBias(Denoiser, PredictsReading, KnowsBias, SeesBias, TakesNoise):
    """Denoise with the bias known (TS_oracle in the paper).

        c_t ~ N(mu_c + B (chat_t - mu_c - gamma),  Sigma_c - B Sigma_c),   B = Sigma_c (Sigma_c + Sigma_n)^-1

    In the paper's letters that is N(A, M^-1) at gamma*. After Park and Faradonbeh, *Analysis of Thompson
    Sampling for Partially Observable Contextual Multi-Armed Bandits*. The bias is a privilege: the simulator
    shows it to denoisers that declare themselves `SeesBias` alone.

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
        return Parameters(known.context_cov, known_shrinkage(known), privilege.bias, variance)

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The gain for a reading with this noise."""
        xp, cov = noise.__array_namespace__(), parameters.context_cov
        gain = shrinkage(parameters.shrinkage.mean, cov, noise)
        return Parameters(cov, gain, parameters.bias, xp.linalg.diagonal(cov + noise))

    def with_bias(self, parameters: Parameters, bias: Array) -> Parameters:
        """The bias of this round, where it drifts."""
        return parameters._replace(bias=bias)

    def predict(self, parameters: Parameters, state: tuple[()], noisy: Array) -> Context:
        """The posterior of the context given its measurement and the bias."""
        mean = posterior_mean(parameters.shrinkage, noisy, parameters.bias)
        return Context(mean, parameters.shrinkage.cov)

    def predict_reading(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """mu_c + gamma, and the diagonal of Sigma_c + Sigma_n."""
        return parameters.shrinkage.mean + parameters.bias, parameters.variance

    def bias(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """The told bias, with certainty."""
        return known_belief(parameters.bias)


class AtomsParameters(NamedTuple):
    """The channel, bias included, and what contexts there are."""

    points: Points
    precision: Array  # (..., d, d)  Sigma_n^-1
    bias: Array  # (..., d)
    mean: Array  # (d,)  of a noisy context without its bias
    context_var: Array  # (d,)
    variance: Array  # (..., d)


@dataclass(frozen=True, kw_only=True)
class KnownBiasAtoms(Denoiser, PredictsReading, KnowsBias, SeesBias, TakesNoise):
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

    def setup(self, known: Knowledge, privilege: Privilege | None) -> AtomsParameters:
        """The table of the atoms, and the bias that was shown."""
        if privilege is None or known.contexts is None:
            raise ValueError(f"{self.name} must be shown the bias, and a sample of contexts")
        xp = known.noise_cov.__array_namespace__()
        mean, variance = known.contexts.mean(0), known.contexts.var(0)
        channel = xp.linalg.inv(known.noise_cov), privilege.bias
        reading = variance + xp.linalg.diagonal(known.noise_cov)
        return AtomsParameters(mixture.points(known.contexts), *channel, mean, variance, reading)

    def with_noise(self, parameters: AtomsParameters, noise: Array) -> AtomsParameters:
        """The precision of a reading with this noise."""
        variance = parameters.context_var + noise.__array_namespace__().linalg.diagonal(noise)
        return parameters._replace(precision=inverse(noise), variance=variance)

    def with_bias(self, parameters: AtomsParameters, bias: Array) -> AtomsParameters:
        """The bias of this round, where it drifts."""
        return parameters._replace(bias=bias)

    def predict(self, parameters: AtomsParameters, state: tuple[()], noisy: Array) -> Context:
        """The posterior of the context given its measurement and the bias."""
        return Context(
            *mixture.points_posterior(parameters.points, parameters.precision, noisy - parameters.bias)
        )

    def predict_reading(self, parameters: AtomsParameters, state: tuple[()]) -> tuple[Array, Array]:
        """The mean of all atoms and gamma; their variance and that of the noise."""
        return parameters.mean + parameters.bias, parameters.variance

    def bias(self, parameters: AtomsParameters, state: tuple[()]) -> tuple[Array, Array]:
        """The told bias, with certainty."""
        return known_belief(parameters.bias)


@dataclass(frozen=True, kw_only=True)
class Identity(Denoiser, TakesNoise):
    """Believe the measurement: c_t = chat_t, with certainty (TS_naive in the paper).

    It has no settings, and remembers nothing.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Identity(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "unfog"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [5.5, 4.4]
    """

    name = "identity"
    note = "takes the noisy context for the true one"
    settled = True
    needs_moments = False

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Array:
        """The covariance of a certain belief: zero."""
        xp = known.context_cov.__array_namespace__()
        return xp.zeros_like(known.context_cov)

    def with_noise(self, parameters: Array, noise: Array) -> Array:
        """The same: readings are believed however noisy they are."""
        return parameters

    def predict(self, parameters: Array, state: tuple[()], noisy: Array) -> Context:
        """The measurement itself."""
        return Context(noisy, parameters)


@dataclass(frozen=True, kw_only=True)
class PriorOnly(Denoiser, TakesNoise):
    """Ignore the measurement: c_t ~ N(mu_c, Sigma_c) in every round (TS_kk, a baseline of ours).

    After Kirschner and Krause, *Stochastic Bandits with Context Distributions*, where the agent is shown the
    distribution of the context instead of the context.

    It has no settings, and remembers nothing.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.PriorOnly(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.7, 8.0]
    """

    name = "prior_only"
    note = "ignores the noisy context, knows its distribution"
    settled = True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Context:
        """The context's law."""
        return Context(known.context_mean, known.context_cov)

    def with_noise(self, parameters: Context, noise: Array) -> Context:
        """The same: readings are ignored."""
        return parameters

    def predict(self, parameters: Context, state: tuple[()], noisy: Array) -> Context:
        """The context's law, whatever was measured; the mean takes the batch axes of the measurement."""
        xp = noisy.__array_namespace__()
        return Context(xp.broadcast_to(parameters.mean, noisy.shape), parameters.cov)
