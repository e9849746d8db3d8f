"""Choosers whose probabilities are kept off zero and one, so that every arm is taken now and then."""

from dataclasses import dataclass
from statistics import NormalDist

from unfog import validation
from unfog.agents.choose.largest import best
from unfog.agents.choose.thompson import Thompson
from unfog.agents.choose.ucb import moments
from unfog.agents.parts import Chooser, Tells, View
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints, pick
from unfog.maths.random import uniforms
from unfog.validation import InputError


@dataclass(frozen=True, kw_only=True)
class ClippedOptimism(Chooser, Tells):
    """Optimism, clipped: an upper bound on every arm's score, and now and then another arm than the best.

        P(a) = 1 - p0 for the arm with the largest x'E[theta] + alpha sd(x'theta),   p0 / (K - 1) for others

    With two arms these are the policies of Guo, Xu and Murphy (rivals/meb.py): probabilities in [p0, 1 - p0].
    For more arms their code would give p0 to each of the others, which cannot be where (K - 1) p0 > 1: here
    they share it evenly. In the first round all arms are as probable, as in their code of MEB; their plain
    optimist takes the first arm then.

    Settings
    --------
    `alpha` deviations are added to a score; `floor` is p0.
    """

    alpha: float = 1.0
    floor: float = 0.2

    name = "clipped_optimism"
    note = "the largest mean and so many deviations, now and then another arm"
    tells = "probability"
    propensity = "exact"

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.not_negative("alpha", self.alpha)
        check_floor(self.floor)

    def normals(self, known: Knowledge) -> int:
        """Two, which make a uniform number."""
        return 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The best arm, or another."""
        return self.choose_telling(view, normals)[0]

    def choose_telling(self, view: View, normals: Array) -> tuple[Ints, Array]:
        """The arm, and how probable it was."""
        xp, shares = normals.__array_namespace__(), self.shares(view)
        place, _ = uniforms(normals)
        shares = xp.broadcast_to(shares, (*normals.shape[:-1], shares.shape[-1]))
        arm = drawn(shares, place)
        return arm, pick(shares, arm)

    def probabilities(self, view: View, draws: Array) -> Array:
        """As they are."""
        return self.shares(view)

    def shares(self, view: View) -> Array:
        """The probability of every arm: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        top = best(view.among(mean + self.alpha * xp.sqrt(variance)))[..., None] == xp.arange(mean.shape[-1])
        open_ = opened(view, mean)
        number = open_.sum(-1)[..., None]
        other = self.floor * open_ / xp.maximum(number - 1, 1)
        found: Array = xp.where(top, xp.where(number > 1, 1 - self.floor, 1.0), other)
        if view.time is None:
            return found
        return xp.where((xp.asarray(view.time) == 0)[..., None], open_ / number, found)


@dataclass(frozen=True, kw_only=True)
class ClippedThompson(Chooser):
    """Thompson sampling, clipped: the best arm of a draw, and now and then another.

    With two arms the first one is the better of a draw with probability

        Phi(z),    z = x'(E[theta_1] - E[theta_2]) / sd(x'(theta_1 - theta_2)),

    which is clipped to [p0, 1 - p0]: a standard normal is compared with z, clipped to the quantiles of p0 and
    1 - p0. With more arms the probabilities have no closed form, and an even share is mixed in instead, which
    gives them the same bounds: [p0 / (K - 1), 1 - p0]. It is what Guo, Xu and Murphy compare with
    (rivals/meb.py).

    Settings
    --------
    `floor` is p0.
    """

    floor: float = 0.2

    name = "clipped_thompson"
    note = "the best arm of one draw of theta, now and then another"

    def __post_init__(self) -> None:
        """Check the setting."""
        check_floor(self.floor)

    def normals(self, known: Knowledge) -> int:
        """A draw of theta, and two for a mixture; with two arms the first of them is all."""
        return known.prior_mean.shape[-1] + 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm that is better in a draw, unless that is too probable."""
        if view.design.scores(view.belief.centre).shape[-1] != 2 or view.arms is not None:
            return self._mixed(view, normals)
        xp, lead = normals.__array_namespace__(), self.lead(view)
        most = NormalDist().inv_cdf(1 - self.floor)
        second: Ints = (normals[..., 0] > xp.clip(lead, -most, most)).astype(xp.arange(2).dtype)
        return second

    def lead(self, view: View) -> Array:
        """How many deviations the first of two arms is ahead: (...,)."""
        first, xp = _first(view), view.belief.centre.__array_namespace__()
        gap = view.design.row(first) - view.design.row(first + 1)
        spread = xp.sqrt(view.belief.variance(gap))
        found: Array = xp.vecdot(gap, view.belief.centre) / xp.maximum(spread, xp.finfo(spread.dtype).tiny)
        return found

    def _mixed(self, view: View, normals: Array) -> Ints:
        """Any arm with probability p0 n / (n - 1), where n of them may be chosen; else the best of a draw."""
        xp = normals.__array_namespace__()
        arm = Thompson().choose(view, normals[..., :-2])
        open_ = opened(view, view.design.scores(view.belief.centre))
        number = open_.sum(-1)
        coin, place = uniforms(normals[..., -2:])
        anyone = drawn(xp.broadcast_to(open_, (*coin.shape, open_.shape[-1])), place)
        share = self.floor * number / xp.maximum(number - 1, 1)
        found: Ints = xp.where(coin < share, anyone, arm)
        return found


def _first(view: View) -> Ints:
    """The first arm, for every trial."""
    scores = view.design.scores(view.belief.centre)
    xp = scores.__array_namespace__()
    none: Ints = xp.zeros(scores.shape[:-1], dtype=xp.arange(2).dtype)
    return none


def opened(view: View, like: Array) -> Array:
    """One where an arm may be chosen, zero elsewhere: (..., K)."""
    xp = like.__array_namespace__()
    return xp.ones_like(like) if view.arms is None else xp.asarray(view.arms).astype(like.dtype)


def drawn(shares: Array, place: Array) -> Ints:
    """The arm at this place, from 0 to 1, of shares (..., K) laid end to end: (...,)."""
    xp = shares.__array_namespace__()
    ends = xp.cumulative_sum(shares, axis=-1)
    arm: Ints = (ends > place[..., None] * ends[..., -1:]).argmax(-1)
    return arm


def check_floor(value: object) -> float:
    """Above zero, so that no arm is out of reach, and at most one half."""
    allowed = "a number above 0, at most 0.5"
    try:
        floor = validation.positive("floor", value)
    except InputError:
        raise InputError("floor", repr(value), allowed) from None
    if floor > 0.5:
        raise InputError("floor", repr(value), allowed)
    return floor
