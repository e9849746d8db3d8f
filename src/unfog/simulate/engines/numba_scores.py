"""Pieces of the kernel: the scores of all arms, how far they spread, and what an arm's context hides."""

from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_desk import LANES, Desk
from unfog.simulate.engines.numba_jit import inlined


@inlined
def lift_theta(w: Desk, dim: int, theta: Array) -> None:
    """The weights of [a^2, a, 1] in the score of every arm, for this theta."""
    shared = 0.0
    for i in range(dim):
        w.lifted[i] = theta[i]
        w.lifted[dim + i] = theta[2 * dim + i] * w.context[i]
        shared += w.square[i] * theta[dim + i]
    w.lifted[2 * dim] = shared


@inlined
def score_arms(w: Desk, dim: int, across: int) -> None:
    """The lifted weights times the table."""
    for a in range(across):
        total = 0.0
        for i in range(2 * dim + 1):
            total += w.lifted[i] * w.table[i * across + a]
        w.score[a] = total


@inlined
def maximum(values: Array, lanes: Array, number: int) -> float:
    """The largest value: of every lane of a vector first, which is one instruction, then of the lanes."""
    most, whole = values[0], number - number % LANES
    if whole:
        for k in range(LANES):
            lanes[k] = values[k]
        for first in range(LANES, whole, LANES):
            for k in range(LANES):
                value = values[first + k]
                lanes[k] = value if value > lanes[k] else lanes[k]
        for k in range(LANES):
            most = lanes[k] if lanes[k] > most else most
    for a in range(whole, number):
        most = values[a] if values[a] > most else most
    return most


@inlined
def largest(values: Array, lanes: Array, number: int) -> int:
    """The first of the largest."""
    most = maximum(values, lanes, number)
    for a in range(number):
        if values[a] == most:
            return a
    return 0


@inlined
def take_arm(w: Desk, dim: int, across: int, arm: int) -> None:
    """The arm's column of the table."""
    for i in range(2 * dim + 1):
        w.action[i] = w.table[i * across + arm]


@inlined
def spread_scores(w: Desk, dim: int, across: int, columns: int, wide: int, root: Array) -> None:
    """The variance of every arm's score, three columns at a time of a root that is lifted to [a^2, a, 1]."""
    for j in range(wide):
        shared = 0.0
        for i in range(dim):
            w.spread[i * wide + j] = root[i * wide + j]
            w.spread[(dim + i) * wide + j] = w.context[i] * root[(2 * dim + i) * wide + j]
            shared += w.square[i] * root[(dim + i) * wide + j]
        w.spread[2 * dim * wide + j] = shared
    for a in range(across):
        w.variance[a] = 0.0
    for j in range(0, columns, 3):
        for a in range(across):
            one, two, three = 0.0, 0.0, 0.0
            for i in range(2 * dim + 1):
                entry, place = w.table[i * across + a], i * wide + j
                one += w.spread[place] * entry
                two += w.spread[place + 1] * entry
                three += w.spread[place + 2] * entry
            w.variance[a] += one * one + two * two + three * three


@inlined
def hidden_variance(w: Desk, dim: int, wide: int, root: Array, factor: float) -> float:
    """E[theta'Cov(phi(arm, c))theta], theta ~ N(centre, factor root root'): features/quadratic.py.

    With slopes s(theta) = a theta_3 + 2 v theta_2 it is E[s'C s + 2 theta_2'(C * C)theta_2]; for the centre,
    and for every column of the root in place of theta.
    """
    certain, total = 0.0, 0.0
    second, third = dim * wide, 2 * dim * wide
    for j in range(wide):
        for i in range(dim):
            line, bend = 0.0, 0.0
            for k in range(dim):
                share, bent = w.cov[i * dim + k], root[second + k * wide + j]
                line += share * (w.action[dim + k] * root[third + k * wide + j] + 2 * w.context[k] * bent)
                bend += share * share * bent
            bent = root[second + i * wide + j]
            slope = w.action[dim + i] * root[third + i * wide + j] + 2 * w.context[i] * bent
            total += slope * line + 2 * bend * bent
    for i in range(dim):
        bent = w.centre[dim + i]
        slope = w.action[dim + i] * w.centre[2 * dim + i] + 2 * w.context[i] * bent
        for k in range(dim):
            share, other = w.cov[i * dim + k], w.centre[dim + k]
            line = w.action[dim + k] * w.centre[2 * dim + k] + 2 * w.context[k] * other
            certain += share * (slope * line + 2 * share * bent * other)
    return certain + factor * total
