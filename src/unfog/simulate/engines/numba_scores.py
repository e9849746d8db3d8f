"""Pieces of the kernel: the scores of all arms, how far they spread, and what an arm's context hides."""

from unfog.agents.choose.greedy import TIE
from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_desk import LANES, Desk
from unfog.simulate.engines.numba_jit import inlined

# Up to these d loops are unrolled whole; as stretches they would take up to a half longer.
WHOLE_SUMS, WHOLE_COLUMNS = 5, 10


@inlined
def stretch(times: int, dim: int) -> int:
    """How many steps of a loop over so many times d are unrolled, so that the loop around it is a vector's.

    The compiler unrolls short loops alone; around others nothing would be vectors.
    """
    if times * dim <= 16:
        return times * dim
    if dim <= 16:
        return dim
    return 10 if dim % 10 == 0 else 5 if dim % 5 == 0 else 4 if dim % 4 == 0 else times


@inlined
def combine(dim: int, wide: int, weights: Array, rows: Array, out: Array) -> None:
    """The sum of m rows, each with its weight."""
    if dim <= WHOLE_SUMS:
        for j in range(wide):
            total = 0.0
            for k in range(3 * dim):
                total += weights[k] * rows[k * wide + j]
            out[j] = total
        return
    step = stretch(3, dim)
    for first in range(0, 3 * dim, step):
        for j in range(wide):
            total = out[j] if first else 0.0
            for k in range(first, first + step):
                total += weights[k] * rows[k * wide + j]
            out[j] = total


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
        total = w.lifted[2 * dim]
        for i in range(2 * dim):
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
def tied(most: float) -> float:
    """The least that counts as equal to the largest: agents/choose/greedy.py."""
    return (1 - TIE) * most if most > 0 else (1 + TIE) * most


@inlined
def first_best(values: Array, lanes: Array, number: int) -> int:
    """The first of those that are the largest, or equal to it but for rounding."""
    least = tied(maximum(values, lanes, number))
    for a in range(number):
        if values[a] >= least:
            return a
    return 0


@inlined
def take_arm(w: Desk, dim: int, across: int, arm: int) -> None:
    """The arm's column of the table."""
    for i in range(2 * dim + 1):
        w.action[i] = w.table[i * across + arm]


@inlined
def spread_scores(w: Desk, dim: int, across: int, columns: int, wide: int, root: Array) -> None:
    """The variance of every arm's score, by the columns of a root that is lifted to [a^2, a, 1]."""
    for j in range(wide):
        shared = 0.0
        for i in range(dim):
            w.spread[i * wide + j] = root[i * wide + j]
            w.spread[(dim + i) * wide + j] = w.context[i] * root[(2 * dim + i) * wide + j]
            shared += w.square[i] * root[(dim + i) * wide + j]
        w.spread[2 * dim * wide + j] = shared
    for a in range(across):
        w.variance[a] = 0.0
    if dim <= WHOLE_COLUMNS:
        _add_threes(w, dim, across, columns, wide)
    else:
        _add_columns(w, dim, across, columns, wide)


@inlined
def _add_threes(w: Desk, dim: int, across: int, columns: int, wide: int) -> None:
    """Three columns at a time, each whole."""
    last = 2 * dim * wide
    for j in range(0, columns, 3):
        for a in range(across):
            one, two, three = w.spread[last + j], w.spread[last + j + 1], w.spread[last + j + 2]
            for i in range(2 * dim):
                entry, place = w.table[i * across + a], i * wide + j
                one += w.spread[place] * entry
                two += w.spread[place + 1] * entry
                three += w.spread[place + 2] * entry
            w.variance[a] += one * one + two * two + three * three


@inlined
def _add_columns(w: Desk, dim: int, across: int, columns: int, wide: int) -> None:
    """Long columns, a stretch of each at a time."""
    last, step = 2 * dim * wide, stretch(2, dim)
    for j in range(columns):
        for first in range(0, 2 * dim, step):
            for a in range(across):
                total = w.bound[a] if first else w.spread[last + j]
                for i in range(first, first + step):
                    total += w.spread[i * wide + j] * w.table[i * across + a]
                w.bound[a] = total
        for a in range(across):
            w.variance[a] += w.bound[a] * w.bound[a]


@inlined
def hidden_variance(w: Desk, dim: int, wide: int, root: Array, factor: float) -> float:
    """E[theta'Cov(phi(arm, c))theta], theta ~ N(centre, factor root root'): features/quadratic.py.

    With slopes s(theta) = a theta_3 + 2 v theta_2 it is E[s'C s + 2 theta_2'(C * C)theta_2]; for the centre,
    and for every column of the root in place of theta.
    """
    total = 0.0
    if dim <= WHOLE_SUMS:
        for j in range(wide):
            total += _hidden_by(w, dim, wide, root, j)
    else:
        total = _hidden_by_all(w, dim, wide, root)
    return _hidden_by(w, dim, 1, w.centre, 0) + factor * total


@inlined
def _hidden_by(w: Desk, dim: int, wide: int, root: Array, j: int) -> float:
    """By one column. C is symmetric, so that what is below its diagonal counts twice."""
    total, second, third = 0.0, dim * wide, 2 * dim * wide
    for i in range(dim):
        share, bent = w.cov[i * dim + i], root[second + i * wide + j]
        slope = w.action[dim + i] * root[third + i * wide + j] + 2 * w.context[i] * bent
        line, bend = share * slope, share * share * bent
        for k in range(i):
            share, other = 2 * w.cov[i * dim + k], root[second + k * wide + j]
            line += share * (w.action[dim + k] * root[third + k * wide + j] + 2 * w.context[k] * other)
            bend += 0.5 * share * share * other
        total += slope * line + 2 * bend * bent
    return total


@inlined
def _hidden_by_all(w: Desk, dim: int, wide: int, root: Array) -> float:
    """By all columns side by side, a stretch of C's rows at a time; slopes lie where roots are lifted."""
    total, second, third, step = 0.0, dim * wide, 2 * dim * wide, stretch(1, dim)
    for i in range(dim):
        for j in range(wide):
            bent = root[second + i * wide + j]
            w.spread[i * wide + j] = w.action[dim + i] * root[third + i * wide + j] + 2 * w.context[i] * bent
    for i in range(dim):
        for first in range(0, dim, step):
            for j in range(wide):
                line, bend = 0.0, 0.0
                for k in range(first, first + step):
                    share = w.cov[i * dim + k]
                    line += share * w.spread[k * wide + j]
                    bend += share * share * root[second + k * wide + j]
                total += line * w.spread[i * wide + j] + 2 * bend * root[second + i * wide + j]
    return total
