"""Thompson sampling."""

from dataclasses import dataclass

from unfog.agents.choose.largest import best
from unfog.agents.parts import Chooser, View
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints

ROOM = 2**22  # numbers that draws, or the scores under them, may take at once


@dataclass(frozen=True, kw_only=True)
class Thompson(Chooser):
    """Thompson sampling: draw theta from the belief and take the arm that is best for it.

    W. R. Thompson, *On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of
    Two Samples*; for linear rewards D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling*
    (the posterior as it is, without inflation).

    It has no settings.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.Thompson()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [7.0, 8.0]
    """

    name = "thompson"
    note = "the best arm of one draw of theta"

    def normals(self, known: Knowledge) -> int:
        """One draw of theta: m."""
        return known.prior_mean.shape[-1]

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest score under one draw of theta."""
        return best(view.among(view.design.scores(view.belief.sample(normals))))

    def probabilities(self, view: View, draws: Array) -> Array:
        """How often each arm is the best of a draw: many draws at once, as many as there is room for."""
        xp, scores = draws.__array_namespace__(), view.design.scores(view.belief.centre)
        arms, ranks = xp.arange(scores.shape[-1]), [x.ndim - 1 for x in (scores, view.arms) if x is not None]
        axes = [1] * (max(ranks) - draws.ndim + 2)  # where all trials of the view share their draws
        draws = draws.reshape(draws.shape[0], *axes, *draws.shape[1:])
        each = max(scores.size, draws[0].size, scores.size // scores.shape[-1] * draws.shape[-1])
        step, counts = max(1, ROOM // each), []
        for first in range(0, draws.shape[0], step):
            taken = self.choose(view, draws[first : first + step])
            counts.append((taken[..., None] == arms).astype(draws.dtype).sum(0))
        found: Array = sum(counts[1:], counts[0]) / draws.shape[0]
        return found
