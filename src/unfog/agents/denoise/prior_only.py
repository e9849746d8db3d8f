"""The denoiser that takes no notice of readings."""

from dataclasses import dataclass

from unfog.agents.parts import Denoiser, Privilege
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array


@dataclass(frozen=True, kw_only=True)
class PriorOnly(Denoiser):
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

    def predict(self, parameters: Context, state: tuple[()], noisy: Array) -> Context:
        """The context's law, whatever was measured; the mean takes the batch axes of the measurement."""
        xp = noisy.__array_namespace__()
        return Context(xp.broadcast_to(parameters.mean, noisy.shape), parameters.cov)
