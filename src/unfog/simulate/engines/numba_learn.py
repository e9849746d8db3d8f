"""Pieces of the kernel: rewards within reach (agents/round.py), Potter's update (maths/gaussian.py)."""

from math import log, log1p, sqrt

from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_desk import CONJUGATE, HETERO, SCALED, Desk
from unfog.simulate.engines.numba_jit import inlined
from unfog.simulate.engines.numba_scores import combine, stretch


@inlined
def dot(left: Array, right: Array, number: int) -> float:
    """The sum of products."""
    total = 0.0
    for i in range(number):
        total += left[i] * right[i]
    return total


@inlined
def _condition(w: Desk, dim: int, long: int, scale: int, variance: float) -> None:
    """Potter's update of one belief, by a value so far away; the total is the variance and half'half."""
    root, turned, half, mean = w.root[scale], w.turned[scale], w.half[scale], w.mean[scale]
    away, total = w.away[scale], w.total[scale]
    slope = 1 / (total + sqrt(variance * total))
    combine(dim, long, half, turned, w.gain)
    for k in range(long):
        mean[k] += w.gain[k] * (away / total)
    _take_off(dim, long, slope, w.gain, half, root)
    _take_off(dim, long, slope, half, w.gain, turned)


@inlined
def _take_off(dim: int, long: int, slope: float, down: Array, along: Array, rows: Array) -> None:
    """A matrix less a multiple of an outer product."""
    step = stretch(3, dim)
    for first in range(0, 3 * dim, step):
        for j in range(long):
            value = slope * along[j]
            for k in range(first, first + step):
                rows[k * long + j] -= down[k] * value


@inlined
def learn_reward(
    w: Desk, learner: int, dim: int, long: int, scales: int, told: float, shape: float, hidden: float,
    value: float,
) -> None:  # fmt: skip
    """Every scale's belief after a reward, and the weights of the scales.

    A step for all scales, then the next: no scale waits for another, and a processor looks ahead a little.
    """
    variance = told if learner == CONJUGATE else told + hidden if learner == HETERO else 1 + hidden / told
    for s in range(scales):
        combine(dim, long, w.row, w.root[s], w.half[s])
    for s in range(scales):
        w.away[s] = value - dot(w.row, w.mean[s], long)
        w.total[s] = variance + dot(w.half[s], w.half[s], long)
    if learner >= SCALED:
        for s in range(scales):
            rate, total = w.rates[s], w.total[s]
            square = w.away[s] * w.away[s] / (2 * total)
            w.weights[s] -= 0.5 * log(total * rate) + (shape + 0.5) * log1p(square / rate)
            w.rates[s] = rate + square
    for s in range(scales):
        _condition(w, dim, long, s, variance)


@inlined
def within_reach(
    w: Desk, dim: int, long: int, wide: int, root: Array, factor: float, noise: float, value: float,
    limit: float,
) -> float:  # fmt: skip
    """The reward within reach of what was expected."""
    expected = dot(w.row, w.centre, long)
    combine(dim, wide, w.row, root, w.whole)
    reach, away = limit * sqrt(noise + factor * dot(w.whole, w.whole, wide)), value - expected
    if abs(away) > reach:
        return expected + (reach if away > 0 else -reach)
    return value
