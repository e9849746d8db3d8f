"""Pieces of the kernel: rewards within reach (agents/surprise.py), Potter's update (maths/gaussian.py)."""

from math import log, log1p, sqrt

from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_desk import HETERO, SCALED, Desk
from unfog.simulate.engines.numba_jit import inlined


@inlined
def root_times_row(w: Desk, dim: int, wide: int, root: Array, out: Array) -> None:
    """The products root'row."""
    for j in range(wide):
        total = 0.0
        for k in range(3 * dim):
            total += w.row[k] * root[k * wide + j]
        out[j] = total


@inlined
def dot(left: Array, right: Array, number: int) -> float:
    """The sum of products."""
    total = 0.0
    for i in range(number):
        total += left[i] * right[i]
    return total


@inlined
def _condition(w: Desk, dim: int, long: int, scale: int, away: float, variance: float, total: float) -> None:
    """Potter's update of one belief, by a value so far away; the total is the variance and half'half."""
    root, turned, half, mean = w.root[scale], w.turned[scale], w.half[scale], w.mean[scale]
    slope = 1 / (total + sqrt(variance * total))
    for k in range(long):
        gain = 0.0
        for j in range(3 * dim):
            gain += turned[j * long + k] * half[j]
        w.gain[k] = gain
    for k in range(long):
        mean[k] += w.gain[k] * (away / total)
    for j in range(long):
        step = half[j] * slope
        for k in range(3 * dim):
            root[k * long + j] -= step * w.gain[k]
    for k in range(long):
        for j in range(3 * dim):
            turned[j * long + k] -= half[j] * slope * w.gain[k]


@inlined
def learn_reward(
    w: Desk, learner: int, dim: int, long: int, scales: int, told: float, shape: float, hidden: float,
    value: float,
) -> None:  # fmt: skip
    """Every scale's belief after a reward, and the weights of the scales."""
    for s in range(scales):
        root, half = w.root[s], w.half[s]
        root_times_row(w, dim, long, root, half)
        away, variance = value - dot(w.row, w.mean[s], long), told
        if learner == HETERO:
            variance += hidden
        if learner >= SCALED:
            variance = 1 + hidden / told
        total = variance + dot(half, half, long)
        if learner >= SCALED:
            rate, square = w.rates[s], away * away / (2 * total)
            w.weights[s] -= 0.5 * log(total * rate) + (shape + 0.5) * log1p(square / rate)
            w.rates[s] = rate + square
        _condition(w, dim, long, s, away, variance, total)


@inlined
def within_reach(
    w: Desk, dim: int, long: int, wide: int, root: Array, factor: float, noise: float, value: float,
    limit: float,
) -> float:  # fmt: skip
    """The reward within reach of what was expected."""
    expected = dot(w.row, w.centre, long)
    root_times_row(w, dim, wide, root, w.whole)
    reach, away = limit * sqrt(noise + factor * dot(w.whole, w.whole, wide)), value - expected
    if abs(away) > reach:
        return expected + (reach if away > 0 else -reach)
    return value
