"""Exact denoising, and the paper's plug-in."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.base import (
    Denoiser,
    Hindsight,
    KnowsBias,
    Precomputes,
    PredictsReading,
    Privilege,
    Rewinds,
    TakesNoise,
)
from unfog.agents.denoise import bias
from unfog.channel.knowledge import Knowledge, Shrinkage, known_shrinkage, posterior_mean, shrinkage
from unfog.features import Context
from unfog.maths.arrays import Array, matvec
from unfog.maths.linalg import product, solve


class Parameters(NamedTuple):
    """The channel, and how its bias shows."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noisy_cov: Array  # (..., d, d)  Sigma_c + Sigma_n
    sight: bias.Sight
    shrinkage: Shrinkage  # the posterior of c given chat and the bias


@dataclass(frozen=True, kw_only=True)
class Exact(bias.FromEither, Denoiser, PredictsReading, KnowsBias, Precomputes, Rewinds, TakesNoise):
    """Exact denoising: the posterior of c_t given every measurement up to and including chat_t.

    With gamma ~ N(g, S) from rounds before t, chat_t = c_t + gamma + n_t is jointly Gaussian with c_t, so

        c_t ~ N(mu_c + J (chat_t - mu_c - g),  Sigma_c - J Sigma_c),   J = Sigma_c (Sigma_c + Sigma_n + S)^-1

    The plug-in differs in the gain: it shrinks as if gamma were g for certain. J depends on the counts alone,
    so its one d x d solve a round is shared by all trials. If a reading has a noise of its own, that is its
    Sigma_n here, and what it says of gamma has the weight of that noise.

    Settings
    --------
    Whether it learns the bias from `pairs` with true contexts, or from noisy ones alone.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.4, 8.0]
    """

    name = "exact"
    note = "the exact posterior of the context, the bias integrated out"

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the coordinates of the bias."""
        noisy_cov = known.context_cov + known.noise_cov
        return Parameters(
            known.context_mean, known.context_cov, noisy_cov, self.sight(known), known_shrinkage(known)
        )

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The covariances of a reading with this noise."""
        cov = parameters.context_cov
        own = self.own_sight(parameters.sight, cov, noise)
        return Parameters(parameters.mean, cov, cov + noise, own, shrinkage(parameters.mean, cov, noise))

    def start(self, parameters: Parameters) -> bias.Tally:
        """Nothing observed yet."""
        return bias.nothing_seen(parameters.sight)

    def precompute(self, parameters: Parameters, state: bias.Tally) -> bias.Weighed:
        """The state with the belief about the bias, which both `predict_reading` and `predict` need."""
        return bias.with_belief(parameters.sight, state)

    def predict(self, parameters: Parameters, state: bias.Tally | bias.Weighed, noisy: Array) -> Context:
        """The posterior of this round's context."""
        bias_mean, bias_cov = bias.belief(parameters.sight, state)
        gain = solve(parameters.noisy_cov + bias_cov, parameters.context_cov).mT
        mean = parameters.mean + matvec(gain, noisy - parameters.mean - bias_mean)
        return Context(mean, parameters.context_cov - product(gain, parameters.context_cov))

    def predict_reading(
        self, parameters: Parameters, state: bias.Tally | bias.Weighed
    ) -> tuple[Array, Array]:
        """mu_c + g, and the diagonal of Sigma_c + Sigma_n + S."""
        return bias.reading_moments(
            parameters.mean, parameters.noisy_cov, *bias.belief(parameters.sight, state)
        )

    def update(self, parameters: Parameters, state: bias.Tally, noisy: Array, context: Array) -> bias.Tally:
        """One more observation of the bias."""
        return bias.add(parameters.sight, state, self.observation(parameters.mean, noisy, context))

    def hindsight(self, parameters: Parameters, state: bias.Tally | bias.Weighed, noisy: Array) -> Hindsight:
        """What all measurements say of the bias, this round's noisy context included."""
        tally = bias.add(parameters.sight, state, noisy - parameters.mean)
        return Hindsight(parameters.shrinkage, *bias.belief(parameters.sight, tally))

    def unbiased(self, parameters: Parameters, noisy: Array) -> Array:
        """The mean of the context, were the bias zero."""
        xp = noisy.__array_namespace__()
        return posterior_mean(parameters.shrinkage, noisy, xp.zeros_like(parameters.mean))

    def bias(self, parameters: Parameters, state: bias.Tally | bias.Weighed) -> tuple[Array, Array]:
        """The belief from all observations of the bias."""
        return bias.spread(*bias.belief(parameters.sight, state))


class PluginParameters(NamedTuple):
    """The channel, and how its bias shows."""

    context_cov: Array  # (d, d)  Sigma_c
    shrinkage: Shrinkage
    sight: bias.Sight


@dataclass(frozen=True, kw_only=True)
class PlugIn(bias.FromEither, Denoiser, KnowsBias, TakesNoise):
    """Plug-in denoising: the bias integrated out under the belief of the *past* rounds (Algorithms 1 and 2).

    With gamma ~ N(g, S) from rounds before t, and the gain B as with the bias known,

        c_t ~ N(mu_c + B (chat_t - mu_c - g),  Sigma_c - B Sigma_c + B S B'),
        B = Sigma_c (Sigma_c + Sigma_n)^-1

    From noisy contexts these are the paper's V_t and R_t^-1 in other letters; from pairs those of its
    appendix (the mean printed in its main text has two signs wrong). What chat_t itself says of gamma is left
    out, so this is not the posterior of c_t given all measurements: `exact` is.

    Settings
    --------
    Whether it learns the bias from `pairs` with true contexts, or from noisy ones alone.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.PlugIn(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.6, 8.0]
    """

    name = "plugin"
    note = "the context as if the bias were what past rounds say, as in the paper"

    def setup(self, known: Knowledge, privilege: Privilege | None) -> PluginParameters:
        """The gain, and the coordinates of the bias."""
        return PluginParameters(known.context_cov, known_shrinkage(known), self.sight(known))

    def with_noise(self, parameters: PluginParameters, noise: Array) -> PluginParameters:
        """The gain for a reading with this noise."""
        cov = parameters.context_cov
        own = self.own_sight(parameters.sight, cov, noise)
        return PluginParameters(cov, shrinkage(parameters.shrinkage.mean, cov, noise), own)

    def start(self, parameters: PluginParameters) -> bias.Tally:
        """Nothing observed yet."""
        return bias.nothing_seen(parameters.sight)

    def predict(self, parameters: PluginParameters, state: bias.Tally, noisy: Array) -> Context:
        """The plug-in belief about this round's context."""
        gain = parameters.shrinkage.gain
        bias_mean, bias_cov = bias.belief(parameters.sight, state)
        mean = posterior_mean(parameters.shrinkage, noisy, bias_mean)
        return Context(mean, parameters.shrinkage.cov + gain @ bias_cov @ gain.mT)

    def update(
        self, parameters: PluginParameters, state: bias.Tally, noisy: Array, context: Array
    ) -> bias.Tally:
        """One more observation of the bias."""
        observation = self.observation(parameters.shrinkage.mean, noisy, context)
        return bias.add(parameters.sight, state, observation)

    def bias(self, parameters: PluginParameters, state: bias.Tally) -> tuple[Array, Array]:
        """The belief from all observations of the bias."""
        return bias.spread(*bias.belief(parameters.sight, state))
