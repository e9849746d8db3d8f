"""The greedy chooser."""

from dataclasses import dataclass

from unfog.agents.choose.largest import Largest
from unfog.agents.parts import View
from unfog.maths.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Greedy(Largest):
    """Greedy: the arm with the largest expected score, argmax_a psi(a)'E[theta].

    It never explores on purpose; that contexts differ from round to round may be exploration enough (H.
    Bastani, M. Bayati and K. Khosravi, *Mostly Exploration-Free Algorithms for Contextual Bandits*).

    It has no settings.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.Greedy()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [11.2, 8.0]
    """

    name = "greedy"
    draws_theta = False
    note = "the largest expected score"

    def bounds(self, view: View) -> Array:
        """The expected scores."""
        return expected(view)


def expected(view: View) -> Array:
    """The expected score of every arm that may be chosen: (..., K).

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents.choose.greedy import expected
    >>> from unfog.agents.parts import View
    >>> from unfog.features import Context
    >>> from unfog.maths.gaussian import Gaussian
    >>> context = Context(np.array([2.0]), np.zeros((1, 1)))
    >>> design = unfog.features.product(np.array([[1.0], [-1.0]])).design(context)
    >>> view = View(context, design, Gaussian(np.array([0.5]), np.eye(1)))
    >>> expected(view).tolist()
    [1.0, -1.0]
    """
    return view.among(view.design.scores(view.belief.centre))


def rounds_so_far(view: View, like: Array) -> Array:
    """How many rounds there are up to this one: (...,)."""
    if view.time is None:
        raise ValueError("time: a chooser that changes with the rounds must be told which one it is")
    return 1 + view.time.astype(like.dtype)
