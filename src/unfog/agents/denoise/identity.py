"""The denoiser that takes readings as they are."""

from dataclasses import dataclass

from unfog.agents.parts import Denoiser, Privilege
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Identity(Denoiser):
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

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Array:
        """The covariance of a certain belief: zero."""
        xp = known.context_cov.__array_namespace__()
        return xp.zeros_like(known.context_cov)

    def predict(self, parameters: Array, state: tuple[()], noisy: Array) -> Context:
        """The measurement itself."""
        return Context(noisy, parameters)
