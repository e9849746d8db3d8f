"""Pieces of the kernel: choose/thompson.py and choose/rand_ucb.py, and the belief of learn/scaled.py."""

from math import exp, log1p, sqrt

from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_desk import HETERO, Desk, Rules
from unfog.simulate.engines.numba_jit import inlined
from unfog.simulate.engines.numba_scores import (
    combine,
    first_best,
    hidden_variance,
    largest,
    lift_theta,
    maximum,
    score_arms,
    spread_scores,
    take_arm,
    tied,
)


@inlined
def mix_scales(w: Desk, dim: int, long: int, scales: int, wide: int, shape: float) -> float:
    """The moments of the belief at all scales, learn/scaled.py `_mixed`; the mean of their noise."""
    most, total, noise = maximum(w.weights, w.lanes, scales), 0.0, 0.0
    for s in range(scales):
        total += exp(w.weights[s] - most)
    for k in range(long):
        w.centre[k] = 0.0
    for s in range(scales):
        share = exp(w.weights[s] - most) / total
        noise += share * w.rates[s] / shape
        for k in range(long):
            w.centre[k] += share * w.mean[s, k]
    for s in range(scales):
        share = exp(w.weights[s] - most) / total
        _put_beside(w, dim, long, wide, s, share, sqrt(share * w.rates[s] / shape))
    return noise


@inlined
def _put_beside(w: Desk, dim: int, long: int, wide: int, scale: int, share: float, spread: float) -> None:
    """One scale's columns of the mixture's root."""
    size = 3 * dim
    first = scale * (size + 1)
    for k in range(size):
        for j in range(size):
            w.mixed[k * wide + first + j] = spread * w.root[scale, k * long + j]
        w.mixed[k * wide + first + size] = sqrt(share) * (w.mean[scale, k] - w.centre[k])


@inlined
def _sample(w: Desk, dim: int, long: int, scale: int, spread: float) -> None:
    """A draw of theta."""
    combine(dim, long, w.normals, w.turned[scale], w.draw)
    for k in range(long):
        w.draw[k] = w.centre[k] + spread * w.draw[k]


@inlined
def _bound(w: Desk, arm: int, level: float, growth: float, neglect: float) -> float:
    """An arm's score + level slope, slope^2 = v (1 + growth ln(1 + neglect v))."""
    variance = w.variance[arm]
    return w.score[arm] + level * sqrt(variance * (1 + growth * log1p(neglect * variance)))


@inlined
def _largest_bound(w: Desk, arms: int, across: int, level: float, growth: float, neglect: float) -> int:
    """The arm with the largest bound.

    With the largest v in the logarithm it is above every arm's, and one logarithm serves all: only arms for
    which that is above the best found so far, or may be equal to it, are looked at.
    """
    stretch = 1 + growth * log1p(neglect * maximum(w.variance, w.lanes, arms))
    for a in range(across):
        w.bound[a] = w.score[a] + level * sqrt(w.variance[a] * stretch)
    found = largest(w.bound, w.lanes, arms)
    best = _bound(w, found, level, growth, neglect)
    least = tied(best) - 2e-12 * abs(best)
    near = 0
    for a in range(arms):
        near += w.bound[a] >= least
    if near == 1:
        return found
    for a in range(arms):
        if w.bound[a] >= least:
            w.bound[a] = _bound(w, a, level, growth, neglect)
            best = max(best, w.bound[a])
    least = tied(best)
    for a in range(arms):
        if w.bound[a] >= least:
            return a
    return found


@inlined
def reward_noise(learner: int, told: float, noise: float, hidden: float) -> float:
    """The variance of a reward given theta, where the context hides so much: learner.noise."""
    return told + hidden if learner <= HETERO else noise * (1 + hidden / told)


@inlined
def drawn_arm(w: Desk, dim: int, long: int, arms: int, across: int, scale: int, factor: float) -> int:
    """The best arm of one draw: choose/thompson.py."""
    _sample(w, dim, long, scale, sqrt(factor))
    lift_theta(w, dim, w.draw)
    score_arms(w, dim, across)
    return first_best(w.score, w.lanes, arms)


@inlined
def raised_arm(
    w: Desk, learner: int, dim: int, arms: int, across: int, columns: int, wide: int, rules: Rules,
    root: Array, factor: float, noise: float, time: int,
) -> tuple[int, int, float]:  # fmt: skip
    """The arm with the largest bound, choose/rand_ucb.py; the best expected one, and what it hides."""
    lift_theta(w, dim, w.centre)
    score_arms(w, dim, across)
    spread_scores(w, dim, across, columns, wide, root)
    level = rules.level * exp((w.normals[0] ** 2 + w.normals[1] ** 2) / (2 * rules.tail))
    neglect, best, hidden = 0.0, -1, 0.0
    if rules.growth > 0:
        best = first_best(w.score, w.lanes, arms)
        take_arm(w, dim, across, best)
        hidden = 0.0 if rules.shown else hidden_variance(w, dim, wide, root, factor)
        neglect = (
            factor * (1 + time) * arms / (rules.patience * reward_noise(learner, rules.told, noise, hidden))
        )
    # The variances are in units of the factor.
    arm = _largest_bound(w, arms, across, level * sqrt(factor), rules.growth, neglect)
    return arm, best, hidden
