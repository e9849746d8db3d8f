"""Plug-in denoising."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import Tally, belief, spread
from unfog.agents.parts import Denoiser, KnowsBias, Privilege
from unfog.channel.knowledge import Knowledge, Shrinkage, as_told, posterior_mean
from unfog.features import Context
from unfog.maths.arrays import Array


class Parameters(NamedTuple):
    """The channel, and how its bias shows."""

    shrinkage: Shrinkage
    sight: bias.Sight


@dataclass(frozen=True, kw_only=True)
class PlugIn(bias.FromEither, Denoiser, KnowsBias):
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

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The gain, and the coordinates of the bias."""
        return Parameters(as_told(known), self.sight(known))

    def start(self, parameters: Parameters) -> bias.Tally:
        """Nothing observed yet."""
        return bias.nothing_seen(parameters.sight)

    def predict(self, parameters: Parameters, state: bias.Tally, noisy: Array) -> Context:
        """The plug-in belief about this round's context."""
        gain = parameters.shrinkage.gain
        bias_mean, bias_cov = bias.belief(parameters.sight, state)
        mean = posterior_mean(parameters.shrinkage, noisy, bias_mean)
        return Context(mean, parameters.shrinkage.cov + gain @ bias_cov @ gain.mT)

    def update(self, parameters: Parameters, state: bias.Tally, noisy: Array, context: Array) -> bias.Tally:
        """One more observation of the bias."""
        return bias.add(state, self.observation(parameters.shrinkage.mean, noisy, context))

    def bias(self, parameters: Parameters, state: Tally) -> tuple[Array, Array]:
        """From all observations of it."""
        return spread(*belief(parameters.sight, state))
