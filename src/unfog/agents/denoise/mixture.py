"""Denoise where the law of contexts is a mixture of Gaussians."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from unfog.agents.denoise.filtered import Channel, Filtered, State, symmetric
from unfog.agents.parts import Privilege
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import mixture
from unfog.maths.arrays import Array


class Parameters(NamedTuple):
    """The channel, and the law of contexts."""

    channel: Channel
    law: mixture.Mixture


@dataclass(frozen=True, kw_only=True)
class Mixture(Filtered):
    """Denoise where the law of contexts is a mixture of Gaussians, the bias unknown.

    The law is told, c ~ N(u_j, H_j) with probability p_j: for those who never saw a true context it can be
    fitted to noisy ones (channel/deconvolution.py). With gamma ~ N(g, S) from rounds before t,

        w_j = P(j | chat_t), in proportion to p_j N(chat_t; u_j + g, Sigma_n + S + H_j)
        E[c_t] = sum w_j E[c_t | j]
        j: one of the components;   p_j, u_j, H_j: its weight, mean and covariance

    The moments of c_t and of gamma are those of the mixtures over j (maths/mixture.py): exact for one round,
    of the bias one Gaussian is kept (denoise/filtered.py). One component is the Gaussian law, and this
    `exact`. As with `empirical`, features that are neither linear nor quadratic take the belief for a
    Gaussian.

    Settings
    --------
    `pairs`, as for `exact`.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Mixture(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, told_noisy=500)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.7, 8.0]
    """

    name: ClassVar[str] = "mixture"
    note: ClassVar[str] = "knows contexts by a mixture of Gaussians, and follows the bias"
    cost = 2.0  # with five components
    needs_knowledge = ("mixture",)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The law as told."""
        if known.mixture is None:
            raise ValueError(f"{self.name} must be told a mixture of Gaussians")
        mean, cov = mixture.moments(*known.mixture)
        channel = Channel(mean, cov + known.noise_cov, known.noise_cov, known.bias_cov)
        return Parameters(channel, known.mixture)

    def seen(self, parameters: Parameters, state: State, noisy: Array) -> tuple[Context, State]:
        """The moments of context and bias, the components summed out."""
        (channel, law), (bias, cov) = parameters, state
        found = mixture.posterior(law, channel.noise_cov + cov, noisy - bias)
        mean, spread = mixture.quantity(law, found)
        moved, left = mixture.shared(cov, found)
        return Context(mean, symmetric(spread)), State(bias + moved, symmetric(left))
