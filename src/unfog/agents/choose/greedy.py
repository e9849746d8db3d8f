"""The greedy and the epsilon-greedy chooser, and what all choosers that draw nothing have in common.

Such a chooser (`Largest`) takes the arm with the largest of some numbers, and differs from others in these
numbers alone, its `bounds`: expected scores, upper quantiles, upper ends of an ellipsoid.

Arms that nobody has played, or that look alike, have equal scores except for the last bit, which depends on
the processor. So scores within `TIE` of the largest, relative to it, count as equal to it, and the
first of equals is taken. Compiled kernels have the same rule (simulation/engines: numba/kernel.py,
kernel.cu).
"""

from abc import abstractmethod
from dataclasses import dataclass

from unfog import validation
from unfog.agents.base import Chooser, View
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.random import uniforms
from unfog.validation import InputError

TIE = 1e-9  # far above rounding, far below any effect of a reward; no effect in single precision


class Largest(Chooser):
    """A base for choosers of the arm with the largest number; the first of equals is taken."""

    propensity = "exact"

    @abstractmethod
    def bounds(self, view: View) -> Array:
        """A number for every arm, below all others for those that may not be chosen: (..., K)."""

    def normals(self, known: Knowledge) -> int:
        """No random numbers."""
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest number."""
        return for_all(best(self.bounds(view)), normals)

    def probabilities(self, view: View, draws: Array) -> Array:
        """One for the arm that is chosen, and zero for the others."""
        return certain_choice(self.bounds(view), draws)

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """The arm and the probabilities, with every number computed once."""
        numbers = self.bounds(view)
        return for_all(best(numbers), normals), certain_choice(numbers, draws)


def best(values: Array) -> Ints:
    """The arm with the largest value, the first of equals: (..., K) -> (...,).

    >>> import numpy as np
    >>> from unfog.agents.choose.greedy import best
    >>> best(np.array([[1.0, 3.0, 3.0 + 1e-15], [2.0, 0.0, 1.0]])).tolist()
    [1, 0]
    """
    arm: Ints = among_largest(values).argmax(-1)
    return arm


def among_largest(values: Array) -> Bools:
    """Which values are within `TIE` of the largest: (..., K) -> (..., K).

    The tolerance is relative to the largest alone, so that values far below it do not widen it.
    """
    xp, largest = values.__array_namespace__(), values.max(-1)
    is_largest: Bools = values >= xp.minimum((1 - TIE) * largest, (1 + TIE) * largest)[..., None]
    return is_largest


def for_all(arm: Ints, normals: Array) -> Ints:
    """The arm for every trial: in a first round trials may share the view, but not their normals."""
    xp = normals.__array_namespace__()
    return arm + xp.zeros(normals.shape[:-1], dtype=arm.dtype)


def certain_choice(values: Array, draws: Array) -> Array:
    """All of the probability on the arm with the largest value: (..., K) -> (..., K).

    >>> import numpy as np
    >>> from unfog.agents.choose.greedy import certain_choice
    >>> certain_choice(np.array([1.0, 3.0, 2.0]), draws=np.zeros((1, 2))).tolist()
    [0.0, 1.0, 0.0]
    """
    xp = draws.__array_namespace__()
    probabilities: Array = (xp.arange(values.shape[-1]) == best(values)[..., None]).astype(draws.dtype)
    return probabilities


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
        return expected_scores(view)


def expected_scores(view: View) -> Array:
    """The expected score of every arm that may be chosen: (..., K).

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents.choose.greedy import expected_scores
    >>> from unfog.agents.base import View
    >>> from unfog.features import Context
    >>> from unfog.maths.gaussian import Gaussian
    >>> context = Context(np.array([2.0]), np.zeros((1, 1)))
    >>> design = unfog.features.product(np.array([[1.0], [-1.0]])).design(context)
    >>> view = View(context, design, Gaussian(np.array([0.5]), np.eye(1)))
    >>> expected_scores(view).tolist()
    [1.0, -1.0]
    """
    return view.mask(view.design.scores(view.belief.centre))


@dataclass(frozen=True, kw_only=True)
class Epsilon(Chooser):
    """Epsilon-greedy: any arm with probability epsilon_t, else the arm with the largest expected score.

    epsilon_t = epsilon / t^decay with rounds t = 1, 2, .... R. S. Sutton and A. G. Barto, *Reinforcement
    Learning: An Introduction*; with decay 1, P. Auer, N. Cesa-Bianchi and P. Fischer, *Finite-time Analysis
    of the Multiarmed Bandit Problem*.

    Settings
    --------
    `epsilon` is the probability of the first round, `decay` how fast it falls.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.Epsilon(epsilon=0.1)
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [6.5, 8.0]
    """

    epsilon: float = 0.05
    decay: float = 0.0

    name = "epsilon"
    note = "the largest expected score, now and then any arm"
    propensity = "exact"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_probability("epsilon", self.epsilon)
        validation.not_negative("decay", self.decay)

    def normals(self, known: Knowledge) -> int:
        """Whether to explore, and which arm: two."""
        return 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The best arm, or any."""
        return self._draw_arm(view, normals, expected_scores(view))

    def probabilities(self, view: View, draws: Array) -> Array:
        """Its part of the exploration, and the rest for the best arm."""
        return self._compute_probabilities(view, draws, expected_scores(view))

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """The arm and the probabilities, from the same scores."""
        scores = expected_scores(view)
        return self._draw_arm(view, normals, scores), self._compute_probabilities(view, draws, scores)

    def _draw_arm(self, view: View, normals: Array, scores: Array) -> Ints:
        """The best arm, or with the probability of exploring any."""
        xp = normals.__array_namespace__()
        coin, uniform = uniforms(normals)
        arm, random_arm = best(scores), _pick_available(view, scores, uniform)
        chosen: Ints = xp.where(coin < self._exploration(view, normals), random_arm.astype(arm.dtype), arm)
        return chosen

    def _compute_probabilities(self, view: View, draws: Array, scores: Array) -> Array:
        """The probability of every arm, (..., K)."""
        xp, share = draws.__array_namespace__(), self._exploration(view, draws)[..., None]
        available = xp.ones_like(scores) if view.arms is None else view.arms.astype(scores.dtype)
        shares: Array = share * available / available.sum(-1)[..., None] + (1 - share) * certain_choice(
            scores, draws
        )
        return shares

    def _exploration(self, view: View, like: Array) -> Array:
        """The probability of exploring: (...,)."""
        xp = like.__array_namespace__()
        if self.decay == 0:
            return xp.asarray(self.epsilon, dtype=like.dtype)
        return self.epsilon / rounds_so_far(view, like) ** self.decay


def rounds_so_far(view: View, like: Array) -> Array:
    """How many rounds there are up to this one: (...,)."""
    if view.round is None:
        raise ValueError("time: a chooser that changes with the rounds must be told which one it is")
    return 1 + view.round.astype(like.dtype)


def _pick_available(view: View, scores: Array, uniform: Array) -> Array:
    """The arm that a uniform number picks among those that may be chosen: (...,)."""
    xp = scores.__array_namespace__()
    arms = scores.shape[-1]
    if view.arms is None:
        return xp.minimum(xp.floor(uniform * arms), arms - 1)
    before = xp.cumulative_sum(view.arms.astype(scores.dtype), axis=-1)
    count = before[..., -1]
    rank = xp.minimum(xp.floor(uniform * count), count - 1)
    arm: Array = xp.argmax(before > rank[..., None], -1)
    return arm


def check_probability(field: str, value: object) -> float:
    """A number from zero to one.

    >>> from unfog.agents.choose.greedy import check_probability
    >>> check_probability("share", 0.1)
    0.1
    """
    allowed = "a number, at least 0 and at most 1"
    try:
        share = validation.not_negative(field, value)
    except InputError:
        raise InputError(field, repr(value), allowed) from None
    if share > 1:
        raise InputError(field, repr(value), allowed)
    return share
