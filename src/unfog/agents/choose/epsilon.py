"""The epsilon-greedy chooser."""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.choose.greedy import expected, rounds_so_far
from unfog.agents.choose.largest import alone, best
from unfog.agents.parts import Chooser, View
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import uniforms
from unfog.validation import InputError


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
        return self._drawn(view, normals, expected(view))

    def probabilities(self, view: View, draws: Array) -> Array:
        """Its part of the exploration, and the rest for the best arm."""
        return self._shares(view, draws, expected(view))

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """Both, of the same scores."""
        scores = expected(view)
        return self._drawn(view, normals, scores), self._shares(view, draws, scores)

    def _drawn(self, view: View, normals: Array, scores: Array) -> Ints:
        xp = normals.__array_namespace__()
        coin, place = uniforms(normals)
        arm, anyone = best(scores), _any(view, scores, place)
        found: Ints = xp.where(coin < self._share(view, normals), anyone.astype(arm.dtype), arm)
        return found

    def _shares(self, view: View, draws: Array, scores: Array) -> Array:
        xp, share = draws.__array_namespace__(), self._share(view, draws)[..., None]
        open_ = xp.ones_like(scores) if view.arms is None else view.arms.astype(scores.dtype)
        found: Array = share * open_ / open_.sum(-1)[..., None] + (1 - share) * alone(scores, draws)
        return found

    def _share(self, view: View, like: Array) -> Array:
        """The probability of exploring: (...,)."""
        xp = like.__array_namespace__()
        if self.decay == 0:
            return xp.asarray(self.epsilon, dtype=like.dtype)
        return self.epsilon / rounds_so_far(view, like) ** self.decay


def _any(view: View, scores: Array, place: Array) -> Array:
    """The arm at this place, from 0 to 1, among those that may be chosen: (...,)."""
    xp = scores.__array_namespace__()
    arms = scores.shape[-1]
    if view.arms is None:
        return xp.minimum(xp.floor(place * arms), arms - 1)
    before = xp.cumulative_sum(view.arms.astype(scores.dtype), axis=-1)
    number = before[..., -1]
    rank = xp.minimum(xp.floor(place * number), number - 1)
    found: Array = xp.argmax(before > rank[..., None], -1)
    return found


def check_probability(field: str, value: object) -> float:
    """A number from zero to one.

    >>> from unfog.agents.choose.epsilon import check_probability
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
