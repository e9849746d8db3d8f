"""Information-directed sampling, by variances."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from unfog import validation
from unfog.agents.base import Chooser, View
from unfog.agents.choose.greedy import TIE, best, expected_scores
from unfog.agents.choose.ucb import check_level, moments
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints, pick
from unfog.maths.random import uniforms

CUTS = 6  # with 300 arms that all lie on the frontier, more would gain no more than rounding
LEAST = 1e-12  # information below this share of the largest counts as none


class Pair(NamedTuple):
    """A law on two arms, which may be the same."""

    first: Ints  # (...,)
    second: Ints  # (...,)
    share: Array  # (...,) probability of the first

    def probabilities(self, arms: int) -> Array:
        """The probability of every arm, (..., K)."""
        xp = self.share.__array_namespace__()
        arm, share = xp.arange(arms), self.share[..., None]
        shares: Array = share * (self.first[..., None] == arm) + (1 - share) * (self.second[..., None] == arm)
        return shares


@dataclass(frozen=True, kw_only=True)
class Ids(Chooser):
    """Information-directed sampling, by variances: pay little regret for each unit of information.

    D. Russo and B. Van Roy, *Learning to Optimize via Information-Directed Sampling*. With A* the best arm,

        D(a) = E[max_b score(b)] - E[score(a)],    v(a) = Var(E[score(a) | A*])
        A*: the best arm;   b: any arm;   score: that of an arm, psi(a)'theta

    The choice is drawn from the law pi over arms that minimises (sum pi D)^2 / (sum pi v). One on two arms
    does.

    With `samples` = n, D and v are those of n draws of theta, taken to be all there is; draws too few to meet
    the same best arm twice overstate v. With `samples` = 0 nothing is drawn: v(a) is the variance of the
    score, which bounds the other from above, and the largest upper quantile stands for the expected maximum,
    D(a) = max_b (mean(b) + z sd(b)) - mean(a), much as in J. Kirschner and A. Krause, *Information Directed
    Sampling and Bandits with Heteroscedastic Noise*.

    The minimum is found without the K^2 pairs. As D^2 / v = max over y of y (2 D - y v), minimum and maximum
    can be exchanged, and max over y of min over a of y (2 D(a) - y v(a)) is concave in one number. It lies
    between r and 2 r, r the least D(a) / v(a): at r every term still grows, at 2 r one is zero. For two arms,
    one the cheapest at a small y and one at a large, the best mixture and its y have a closed form; the arm
    that is cheapest there replaces one of them (J. E. Kelley, *The Cutting-Plane Method for Solving Convex
    Programs*), and when it is one of them they are the minimum.

    Settings
    --------
    `samples` of theta, or none; without them, the `quantile` that stands for the maximum.

    >>> import unfog
    >>> agent = unfog.Agent("mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.Ids())
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=30, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.9, 5.5]
    """

    samples: int = 0
    quantile: float = 0.9

    name = "ids"
    note = "information-directed sampling: the least squared regret for each unit of information"

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.count("samples", self.samples, 0, 10_000)
        check_level("quantile", self.quantile)

    @property
    def propensity(self) -> Literal["exact", "estimated"]:
        """Estimated with samples, since the law itself is random then."""
        return "estimated" if self.samples else "exact"

    def normals(self, known: Knowledge) -> int:
        """The draws of theta, and two to choose between two arms."""
        return self.samples * known.prior_mean.shape[-1] + 2

    def choose(self, view: View, normals: Array) -> Ints:
        """One of two arms."""
        xp = normals.__array_namespace__()
        pair = self._find_pair(view, normals)
        coin, _ = uniforms(normals[..., -2:])
        arm: Ints = xp.where(coin < pair.share, pair.first, pair.second)
        return arm

    def probabilities(self, view: View, draws: Array) -> Array:
        """What the law gives each arm; with samples, its mean over the draws (n, ..., w)."""
        arms = view.design.scores(view.belief.centre).shape[-1]
        probabilities = self._find_pair(view, draws).probabilities(arms)
        return probabilities.mean(0) if self.samples else probabilities

    def _find_pair(self, view: View, normals: Array) -> Pair:
        """The law to draw the arm from."""
        closed = None if view.arms is None else _Closed(view.arms, best(expected_scores(view)))
        if self.samples:
            pair = cheapest_pair(*_estimate_by_draws(view, closed, normals[..., :-2], self.samples))
        else:
            mean, variance = moments(view)
            if closed is not None:
                mean, variance = closed.replace_closed(mean), closed.replace_closed(variance)
            xp = mean.__array_namespace__()
            upper = mean + NormalDist().inv_cdf(self.quantile) * xp.sqrt(variance)
            largest = upper.max(-1)[..., None]
            pair = cheapest_pair(_drop_rounding(largest - mean, largest), variance)
        return pair if closed is None else closed.without_closed(pair)


class _Closed(NamedTuple):
    """Arms that may not be chosen: another stands in for them, and is chosen in their place."""

    arms: Array  # (..., K)  true where an arm may be chosen
    stand_in: Ints  # (...,)

    def replace_closed(self, values: Array) -> Array:
        """Values (..., K) with those of the closed arms replaced."""
        xp = values.__array_namespace__()
        return xp.where(self.arms, values, pick(values, self.stand_in)[..., None])

    def without_closed(self, pair: Pair) -> Pair:
        """The pair with closed arms replaced by the one that stands in."""
        xp = pair.share.__array_namespace__()
        arms = xp.broadcast_to(self.arms, (*pair.share.shape, self.arms.shape[-1]))
        first, second = (xp.where(pick(arms, arm), arm, self.stand_in) for arm in (pair.first, pair.second))
        return Pair(first, second, pair.share)


def _estimate_by_draws(
    view: View, closed: _Closed | None, normals: Array, samples: int
) -> tuple[Array, Array]:
    """Regret and information of every arm, (..., K) each, from draws of theta (..., n m)."""
    xp = normals.__array_namespace__()
    draws = xp.moveaxis(normals.reshape(*normals.shape[:-1], samples, -1), -2, 0)
    scores = xp.moveaxis(view.design.scores(view.belief.sample(draws)), 0, -2)
    if closed is not None:
        arm = xp.broadcast_to(closed.stand_in[..., None], scores.shape[:-1])
        scores = _Closed(closed.arms[..., None, :], arm).replace_closed(scores)
    scores = scores.reshape(-1).reshape(scores.shape)  # contiguous: strided, all below is half as fast
    winner, largest = best(scores), scores.max(-1).mean(-1)[..., None]
    mean = scores.mean(-2)
    # One row for each draw and not for each arm: n^2 K instead of n K^2.
    same = (winner[..., :, None] == winner[..., None, :]).astype(scores.dtype)
    deviation = same @ (scores - mean[..., None, :]) / same.sum(-1)[..., None]
    deviation = _drop_rounding(deviation, largest[..., None])  # zero where one arm is best in all draws
    return _drop_rounding(xp.maximum(largest - mean, 0.0), largest), (deviation**2).mean(-2)


def _drop_rounding(differences: Array, size: Array) -> Array:
    """The differences of numbers of this size, with zero for those within rounding."""
    xp = differences.__array_namespace__()
    significant: Array = xp.where(xp.abs(differences) <= TIE * xp.abs(size), 0.0, differences)
    return significant


def cheapest_pair(regret: Array, information: Array) -> Pair:
    """The law that minimises E[regret]^2 / E[information], of not negative values (..., K) each.

    Units cancel out; where no arm informs, it is the arm with the least regret.
    """
    xp = regret.__array_namespace__()
    tiny = xp.finfo(regret.dtype).tiny
    cost = regret / xp.maximum(regret.max(-1), tiny)[..., None]
    worth = xp.maximum(information / xp.maximum(information.max(-1), tiny)[..., None], LEAST)
    least = (cost / worth).min(-1)
    low, high = _find_cheapest(cost, worth, least), _find_cheapest(cost, worth, 2 * least)
    for _ in range(CUTS):
        cheapest = _find_cheapest(cost, worth, _mixing_price(low, high))
        grows = cheapest.cost >= _mixing_price(low, high) * cheapest.worth
        low, high = _where(grows, cheapest, low), _where(grows, high, cheapest)
    return Pair(low.arm, high.arm, _mixing_share(low, high))


class _Candidate(NamedTuple):
    """An arm with what it costs and what it is worth."""

    arm: Ints  # (...,)
    cost: Array  # (...,)
    worth: Array  # (...,)


def _find_cheapest(cost: Array, worth: Array, price: Array) -> _Candidate:
    """The arm with the least 2 cost - price worth, the first of those that are equal up to rounding."""
    double, gained = 2 * cost, price[..., None] * worth
    net_cost = double - gained  # near zero where both are large: rounding is relative to them
    arm: Ints = (net_cost - TIE * (double + gained) <= net_cost.min(-1)[..., None]).argmax(-1)
    return _Candidate(arm, pick(cost, arm), pick(worth, arm))


def _mixing_share(low: _Candidate, high: _Candidate) -> Array:
    """The share q of the first that minimises (q D1 + (1 - q) D2)^2 / (q v1 + (1 - q) v2).

    Its derivative is zero at q = 2 v2 / (v2 - v1) - D2 / (D2 - D1), and the function is convex. The second
    costs and is worth more; where it costs the same, or is worth the same, a quotient grows without bound, as
    it should, and q is 0 or 1.
    """
    xp = low.cost.__array_namespace__()
    tiny = xp.finfo(low.cost.dtype).tiny
    gained, paid = xp.maximum(high.worth - low.worth, tiny), xp.maximum(high.cost - low.cost, tiny)
    share: Array = xp.clip(2 * (high.worth / gained) - high.cost / paid, 0.0, 1.0)
    return share


def _mixing_price(low: _Candidate, high: _Candidate) -> Array:
    """Cost for each unit of worth of the best mixture."""
    share = _mixing_share(low, high)
    cost = share * low.cost + (1 - share) * high.cost
    return cost / (share * low.worth + (1 - share) * high.worth)


def _where(condition: Any, first: _Candidate, second: _Candidate) -> _Candidate:
    xp = first.cost.__array_namespace__()
    return _Candidate(*(xp.where(condition, x, y) for x, y in zip(first, second, strict=True)))
