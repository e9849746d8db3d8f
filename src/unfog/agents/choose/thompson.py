"""Thompson sampling, and top-two Thompson sampling."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.base import Chooser, View
from unfog.agents.choose.greedy import best, check_probability
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import uniforms

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
        return best(view.mask(view.design.scores(view.belief.sample(normals))))

    def probabilities(self, view: View, draws: Array) -> Array:
        """How often each arm is the best of a draw: many draws at once, as many as there is room for."""
        xp, scores = draws.__array_namespace__(), view.design.scores(view.belief.centre)
        arms, ranks = xp.arange(scores.shape[-1]), [x.ndim - 1 for x in (scores, view.arms) if x is not None]
        axes = [1] * (max(ranks) - draws.ndim + 2)  # where all trials of the view share their draws
        draws = draws.reshape(draws.shape[0], *axes, *draws.shape[1:])
        size = max(scores.size, draws[0].size, scores.size // scores.shape[-1] * draws.shape[-1])
        step, counts = max(1, ROOM // size), []
        for first in range(0, draws.shape[0], step):
            chosen = self.choose(view, draws[first : first + step])
            counts.append((chosen[..., None] == arms).astype(draws.dtype).sum(0))
        probabilities: Array = sum(counts[1:], counts[0]) / draws.shape[0]
        return probabilities


@dataclass(frozen=True, kw_only=True)
class TopTwo(Chooser):
    """Top-two Thompson sampling: now and then the runner-up, so that the best arm is told from the next best.

    D. Russo, *Simple Bayesian Algorithms for Best-Arm Identification*. The leader is the best arm of one draw
    of theta. It is chosen with probability beta; else theta is drawn anew until another arm is best, and that
    one, the challenger, is chosen. Here the draws are at most `redraws`: where the leader is the best arm of
    all of them, the challenger is the second-best arm of the last.

    Settings
    --------
    `beta` is the probability of the leader, `redraws` how often a challenger is sought.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.TopTwo()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [8.9, 8.0]
    """

    beta: float = 0.5
    redraws: int = 4

    name = "toptwo"
    note = "top-two Thompson sampling: the best arm of a draw, or that of another"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_probability("beta", self.beta)
        validation.count("redraws", self.redraws, 1, 10_000)

    def normals(self, known: Knowledge) -> int:
        """The draws of theta, and two to choose between two arms."""
        return (1 + self.redraws) * known.prior_mean.shape[-1] + 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The leader or the challenger."""
        xp = normals.__array_namespace__()
        leader, challenger = self._draw_two(view, normals)
        coin, _ = uniforms(normals[..., -2:])
        arm: Ints = xp.where(coin < self.beta, leader, challenger)
        return arm

    def probabilities(self, view: View, draws: Array) -> Array:
        """How often each is the leader, and how often the challenger: the coin need not be drawn."""
        xp = draws.__array_namespace__()
        leader, challenger = self._draw_two(view, draws)
        arm = xp.arange(view.design.scores(view.belief.centre).shape[-1])
        share: Array = self.beta * (leader[..., None] == arm) + (1 - self.beta) * (
            challenger[..., None] == arm
        )
        return share.astype(draws.dtype).mean(0)

    def _draw_two(self, view: View, normals: Array) -> tuple[Ints, Ints]:
        """Leader and challenger: (...,) each. With a single arm they are the same."""
        xp = normals.__array_namespace__()
        thetas = normals[..., :-2].reshape(*normals.shape[:-1], 1 + self.redraws, -1)
        scores = view.mask(view.design.scores(view.belief.sample(xp.moveaxis(thetas, -2, 0))))
        arms = best(scores)
        leader = arms[0]
        leads = xp.arange(scores.shape[-1]) == leader[..., None]
        others = xp.where(leads, -xp.inf, scores[-1])
        challenger = best(others)
        if view.arms is not None:  # the leader, where no other arm may be chosen
            challenger = xp.where(xp.isinf(others.max(-1)), leader, challenger)
        for arm in arms[:0:-1]:  # backwards, so that the first other arm wins
            challenger = xp.where(arm == leader, challenger, arm)
        return leader, challenger
