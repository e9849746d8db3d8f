"""Bayes-UCB, and Bayes-UCB at a level that is drawn anew every round."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from unfog import validation
from unfog.agents.base import Chooser, View
from unfog.agents.choose.greedy import TIE, Largest, best, rounds_so_far
from unfog.agents.hedge import mix_moments
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import upper_quantile
from unfog.validation import InputError

PAIRS = 2**22  # pairs of arms, in all trials, that are compared at once


@dataclass(frozen=True, kw_only=True)
class Ucb(Largest):
    """Bayes-UCB: the arm whose score has the largest upper quantile under the belief about theta.

        argmax_a psi(a)'E[theta] + z_t sd(psi(a)'theta)
        z_t: the normal quantile at the level of round t

    E. Kaufmann, O. Cappe and A. Garivier, *On Bayesian Upper Confidence Bounds for Bandit Problems*. Their
    level is 1 - 1 / (t (ln n)^c); here it is 1 - (1 - quantile) / t^growth with rounds t = 1, 2, ..., so that
    growth 1 is theirs with c = 0 and growth 0, a constant level, needs no number of the round. A constant 1.7
    deviations above the mean costs least over all our experiments together, but locks in where contexts do
    not explore (`RandUcb` draws the level and does not): docs/notebook/agents.md.

    Settings
    --------
    `quantile` is the level of the first round, `growth` how fast it nears one.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.Ucb(quantile=0.9)
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.3, 8.0]
    """

    quantile: float = 0.955
    growth: float = 0.0

    name = "ucb"
    draws_theta = False
    note = "Bayes-UCB: the largest upper quantile"

    def __post_init__(self) -> None:
        """Check the settings."""
        check_level("quantile", self.quantile)
        validation.not_negative("growth", self.growth)

    def bounds(self, view: View) -> Array:
        """The upper quantile of the score of every arm that may be chosen: (..., K)."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        if self.growth == 0:
            return view.mask(mean + NormalDist().inv_cdf(self.quantile) * xp.sqrt(variance))
        tail = (1 - self.quantile) / rounds_so_far(view, mean) ** self.growth
        return view.mask(mean + upper_quantile(xp.asarray(tail))[..., None] * xp.sqrt(variance))


def moments(view: View) -> tuple[Array, Array]:
    """Mean and variance of every arm's score, over candidates if there are any: (..., K) each."""
    fitting: Any = view.belief  # a belief in blocks comes with a design in blocks
    mean, variance = view.design.scores(view.belief.centre), view.design.variances(fitting)
    return (
        (mean, variance) if view.weights is None else mix_moments(view.weights[..., None], mean, variance, -2)
    )


def check_level(field: str, value: object) -> float:
    """A level of at least one half, so that uncertain arms are not avoided, and less than one."""
    allowed = "a number, at least 0.5 and less than 1"
    try:
        level = validation.positive(field, value)
    except InputError:
        raise InputError(field, repr(value), allowed) from None
    if not 0.5 <= level < 1:
        raise InputError(field, repr(value), allowed)
    return level


@dataclass(frozen=True, kw_only=True)
class RandUcb(Chooser):
    """Randomised Bayes-UCB: an upper bound on every arm's score, at a level that is drawn anew every round.

        argmax_a psi(a)'E[theta] + Z_t slope_t(a),    P(Z_t > z) = (level / z)^tail for z >= level
        slope_t(a)^2 = v(a) (1 + growth ln(1 + t K v(a) / (patience s^2))),    v(a) = Var(psi(a)'theta)
        Z_t: the level that is drawn;   z: any level;   K: the number of arms
        s^2: the variance of a reward given theta

    Most draws are near `level` (half of them below 1.5, three in a hundred above 2): nearly Bayes-UCB at a
    constant level, which explores least where contexts explore by themselves, but locks in where they do not:
    an arm whose bound has fallen below the others' is never tried again, though it be the best. A level
    without bounds tries every arm that is uncertain sooner or later, and Bayesian regret grows like sqrt(T),
    logarithms aside: docs/science/proofs.md has the proof.

    The logarithm is for many arms. The best of K untried arms is the farther above the average the larger K
    is, and worth the more tries the more rounds there are: t K v(a) / s^2, with s^2 the variance of the best
    expected arm's reward given theta, is large for an arm that was neglected, and where few rewards tell arms
    apart. The other arms' v are not in it: one of which all is known (to do nothing) must not make others
    look neglected.

    S. Vaswani, A. Mehrabian, A. Durand and B. Kveton, *Old Dog Learns New Tricks: Randomized UCB for Bandit
    Problems*, draw one level for all arms, too, from a bounded law; the power law here is ours. E. Kaufmann,
    O. Cappe and A. Garivier, *On Bayesian Upper Confidence Bounds for Bandit Problems*, is the rule without
    the draw (`Ucb`).

    As the level rises, the arm with the largest bound changes from the one that is best expected to the one
    that is least certain. Each arm leads on an interval of levels (the upper envelope of the lines mean + z
    sd), so that probabilities are exact: those of the intervals.

    Settings
    --------
    The least `level`, in deviations above the mean, and the power of the `tail` above it.

    Deviations of neglected arms grow by `growth` with the logarithm of their neglect in units of `patience`,
    where the number of the round and the noise of rewards are known; those of 0 or 1 gain nothing by it.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.4, 8.0]
    """

    level: float = 1.4
    tail: float = 10.0
    growth: float = 0.25
    patience: float = 3000.0

    name = "randucb"
    draws_theta = False
    takes_candidates = True
    note = "Bayes-UCB at a level that is drawn anew every round: it cannot lock in"
    propensity = "exact"

    def __post_init__(self) -> None:
        """Check the settings: without a second moment of the level there is no bound on regret."""
        validation.positive("level", self.level)
        if validation.positive("tail", self.tail) <= 2:
            raise InputError("tail", repr(self.tail), "a number greater than 2")
        validation.not_negative("growth", self.growth)
        validation.positive("patience", self.patience)

    def normals(self, known: Knowledge) -> int:
        """The level: two."""
        return 2

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest upper quantile at a level that is drawn."""
        return self._draw_arm(view, normals, *self.lines(view))

    def probabilities(self, view: View, draws: Array) -> Array:
        """The probability of the levels at which each arm leads."""
        return self._compute_probabilities(view, draws, *self.lines(view))

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """The arm and the probabilities, from the same lines."""
        lines = self.lines(view)
        return self._draw_arm(view, normals, *lines), self._compute_probabilities(view, draws, *lines)

    def _draw_arm(self, view: View, normals: Array, mean: Array, slope: Array) -> Ints:
        xp = normals.__array_namespace__()
        # exp(-(x^2 + y^2) / 2) is uniform (maths/random.py), and a power of it is the level.
        levels = self.level * xp.exp((normals**2).sum(-1) / (2 * self.tail))
        arm = best(view.mask(mean + levels[..., None] * slope))
        if view.by_lot is None:
            return arm
        chances = uniform_chances(view, mean)
        place = xp.exp(-(normals**2).sum(-1) / 2)[..., None] >= chances.cumsum(-1)
        drawn = xp.minimum(place.sum(-1), xp.where(chances > 0, xp.arange(chances.shape[-1]), 0).max(-1))
        return xp.where(view.by_lot, drawn, arm)

    def _compute_probabilities(self, view: View, draws: Array, mean: Array, slope: Array) -> Array:
        xp, arms = draws.__array_namespace__(), view.arms
        if xp is np and mean.size == mean.shape[-1] and (arms is None or arms.size == mean.size):
            share = self._one(mean, slope, arms)
        else:
            low, high = leads(mean, slope, arms)
            first, last = ((self.level / xp.maximum(z, self.level)) ** self.tail for z in (low, high))
            share = xp.maximum(first - last, 0.0)
        shares: Array = share / share.sum(-1)[..., None]
        if view.by_lot is not None:
            shares = xp.where(view.by_lot[..., None], uniform_chances(view, mean), shares)
        batch = draws.shape[1:-1]
        return shares if shares.shape[:-1] == batch else shares + xp.zeros((*batch, 1), dtype=draws.dtype)

    def _one(self, mean: Array, slope: Array, arms: Array | None) -> Array:
        """The probability of the levels at which each arm leads, (..., K), for one decision (`envelope`)."""
        share, last = np.zeros_like(mean), 0.0
        leaders, flat = envelope(mean.reshape(-1), slope.reshape(-1), self.level, arms), share.reshape(-1)
        for arm, low in reversed(leaders):
            above = (self.level / low) ** self.tail
            flat[arm], last = above - last, above
        return share

    def lines(self, view: View) -> tuple[Array, Array]:
        """Mean of every arm's score, and the slope of its bound in the level: (..., K) each."""
        mean, variance = moments(view)
        xp = mean.__array_namespace__()
        noise = view.noise(best(view.mask(mean))) if view.round is not None and self.growth else None
        if noise is None:
            return mean, xp.sqrt(variance)
        teaches = variance / noise[..., None]
        number = mean.shape[-1] if view.arms is None else view.arms.astype(mean.dtype).sum(-1)[..., None]
        neglect = rounds_so_far(view, mean)[..., None] * number * teaches / self.patience
        return mean, xp.sqrt(variance * (1 + self.growth * xp.log1p(neglect)))


def uniform_chances(view: View, like: Array) -> Array:
    """The probability of each arm, (..., K), where those that may be chosen are equally likely."""
    xp = like.__array_namespace__()
    allowed = xp.ones_like(like) if view.arms is None else view.arms + xp.zeros_like(like)
    chances: Array = allowed / allowed.sum(-1)[..., None]
    return chances


def envelope(mean: Array, slope: Array, least: float, arms: Array | None = None) -> list[tuple[int, float]]:
    """Which arms lead at levels from the least on, in their order, and from which level each one does.

    As `leads`, for one decision (K,) on NumPy, and without the pairs. In the order of their bounds at the
    least level, arms can lead later only if they are steeper than all before them. Those are few, and each of
    them ends the lead of the last one, or of several, where it meets it. Arms whose lines are equal up to
    rounding lie side by side in that order: the first of them leads.
    """
    bounds = mean + least * slope
    if arms is not None:
        bounds = np.where(arms.reshape(-1), bounds, -np.inf)
    order = (-bounds).argsort(kind="stable")
    slopes, first = slope[order], order.item(0)
    slack = TIE * (abs(mean.item(first)) + slope.item(first))
    is_steeper = slopes[1:] > np.maximum.accumulate(slopes)[:-1] + slack
    positions = 1 + (is_steeper & (bounds[order[1:]] > -np.inf)).nonzero()[0]
    later = order[positions]
    leaders, low, lines = [0], [least], [(mean.item(first), slope.item(first))]
    for position, height, rise in zip(
        positions.tolist(), mean[later].tolist(), slope[later].tolist(), strict=True
    ):
        start = least
        while leaders:
            start = (lines[-1][0] - height) / (rise - lines[-1][1])
            if start > low[-1]:
                break
            start = least
            for values in (leaders, low, lines):
                values.pop()
        leaders.append(position)
        low.append(start)
        lines.append((height, rise))
    firsts = [_first_alike(bounds, slope, order[position:]) for position in leaders]
    return list(zip(firsts, low, strict=True))


def _first_alike(bounds: Array, slope: Array, order: Ints) -> int:
    """The lowest of the arms whose lines equal that of this order's first, up to rounding."""
    first, *others = order.tolist()
    height, rise, arm = bounds.item(first), slope.item(first), first
    slack = TIE * (abs(height) + rise)
    for other in others:
        if bounds.item(other) < height - slack:
            break
        if abs(slope.item(other) - rise) <= slack:
            arm = min(arm, other)
    return int(arm)


def leads(mean: Array, sd: Array, arms: Array | None = None) -> tuple[Array, Array]:
    """From which level to which each arm's mean + z sd is the largest, (..., K) each: from < to, or never.

    Of arms that are equal up to rounding the first one leads; one that may not be chosen never does.
    """
    xp, number = mean.__array_namespace__(), mean.shape[-1]
    low, high = xp.full_like(mean, -xp.inf), xp.full_like(mean, xp.inf)
    if arms is not None:
        low = xp.where(arms, low, xp.inf)
    step = max(1, PAIRS // mean.size)
    for first in range(0, number, step):
        above, below = _compare(mean, sd, arms, slice(first, first + step))
        low, high = xp.maximum(low, above.max(-1)), xp.minimum(high, below.min(-1))
    return low, high


def _compare(mean: Array, sd: Array, arms: Array | None, others: slice) -> tuple[Array, Array]:
    """The levels between which each arm is above each of these others: (..., K, n) each."""
    xp = mean.__array_namespace__()
    order = xp.arange(mean.shape[-1])
    mean_gap = mean[..., None, others] - mean[..., :, None]
    slope_gap = sd[..., :, None] - sd[..., None, others]
    slack = TIE * (abs(mean) + sd)[..., None]
    is_parallel = abs(slope_gap) <= slack
    level = mean_gap / xp.where(is_parallel, 1.0, slope_gap)
    later = order[:, None] > order[None, others]
    never = is_parallel & ((mean_gap > slack) | ((mean_gap >= -slack) & later))
    end = xp.full_like(level, xp.inf)
    low = xp.where((slope_gap > 0) & ~is_parallel, level, xp.where(never, end, -end))
    high = xp.where((slope_gap < 0) & ~is_parallel, level, end)
    if arms is None:
        return low, high
    may_lead = arms[..., None, others]
    return xp.where(may_lead, low, -end), xp.where(may_lead, high, end)
