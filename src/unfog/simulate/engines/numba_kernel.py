"""The kernel: a trial after the other, each through all rounds of a block, its belief in the nearest cache.

What a round does is what agents/round.py has it do, for the parts that `numba_split` lets through:

    choose    learn/conjugate.py, hetero.py or scaled.py `belief`; choose/thompson.py or rand_ucb.py
    pay       the true score of the arm and noise; the oracle's best score less the arm's is the regret
    learn     the reward within reach (agents/surprise.py), then Potter's rank-one update (maths/gaussian.py)

Features are quadratic (features/quadratic.py). A trial sits down at a `Desk` with all its things. Sizes are
constants of the compiled program (`Plan`), so that loops over arms, and over columns of a root, become
vectors: that is most of the speed. There is one program for every size of problem and every pair of learner
and chooser, and it is kept on disk. All pieces stand in this file, because that is how Numba sees that what
it kept is out of date.
"""

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints
from unfog.simulate.engines.numba_jit import compiled, inlined

LANES = 8  # numbers in a vector, at most
CONJUGATE, HETERO, SCALED, MIXED = range(4)
THOMPSON, RAND_UCB = range(2)


class Rules(NamedTuple):
    """The agent, and what it is told, in numbers."""

    told: float  # sigma^2
    limit: float  # infinite: none
    shown: bool  # whether it learns from true contexts
    level: float  # of rand_ucb, as the next three
    tail: float
    growth: float
    patience: float


class World(NamedTuple):
    """A block of rounds as nature made it."""

    table: Array  # (trials, K, q)  [a^2, a, 1]; one entry where all trials share it
    theta: Array  # (trials, m)
    context: Array  # (trials, rounds, d)
    best: Array  # (trials, rounds, d)  its mean to the oracle
    best_square: Array  # (trials, rounds, d)  E[c^2] to the oracle
    noise: Array  # (trials, rounds)  of rewards
    counts: Array  # (trials, rounds)  1; 0 where the reward is all noise


class Believed(NamedTuple):
    """What the agent believes of contexts, and its own draws."""

    mean: Array  # (trials, rounds, d)
    cov: Array  # (trials, rounds, d, d), with one entry where trials or rounds share it
    shown: Array  # (trials, rounds, d)  the true context as it is learnt from; the mean where it is not shown
    normals: Array  # (trials, rounds, w)


class State(NamedTuple):
    """What the learner knows, as in learn/scaled.py; others have one scale, and use the beliefs alone."""

    mean: Array  # (trials, scales, m)
    root: Array  # (trials, scales, m, m)
    shape: Array  # (trials,)
    rates: Array  # (trials, scales)
    weights: Array  # (trials, scales)


class Trace(NamedTuple):
    """What comes of a block: (trials, rounds) each."""

    arm: Ints
    paid: Array
    regret: Array


class Plan(NamedTuple):
    """The sizes. Rows of roots are filled up with zeros to whole vectors, and so are those of the table."""

    learner: int
    chooser: int
    dim: int  # d; there are m = 3 d features
    long: int  # m, filled up
    arms: int  # K
    across: int  # K, filled up
    scales: int
    columns: int  # of the belief's root, in threes: m, or those of all scales together
    wide: int  # the same, filled up


class Desk(NamedTuple):
    """What a trial has before it in a round; matrices are laid row by row."""

    table: Array  # (2 d + 1, across)
    root: Array  # (scales, m long)
    turned: Array  # (scales, long long)  the roots, transposed
    mean: Array  # (scales, long)
    rates: Array  # (scales,)
    weights: Array  # (scales,)
    theta: Array  # (long,)  of the world
    context: Array  # (d,)  its mean
    square: Array  # (d,)  E[c^2]
    cov: Array  # (d, d)
    normals: Array  # (long,)
    centre: Array  # (long,)  of the belief about theta
    mixed: Array  # (m, wide)  its root, where it is that of all scales
    draw: Array  # (long,)  of theta
    lifted: Array  # (2 d + 1,)
    spread: Array  # (2 d + 1, wide)
    score: Array  # (across,)
    variance: Array  # (across,)
    bound: Array  # (across,)
    action: Array  # (2 d + 1,)
    row: Array  # (long,)
    half: Array  # (scales, long)
    whole: Array  # (wide,)  root'row of the belief
    gain: Array  # (long,)


def padded(size: int) -> int:
    """The next multiple of a vector."""
    return -(-size // LANES) * LANES


def plan(learner: int, chooser: int, dim: int, arms: int, scales: int) -> Plan:
    """The sizes for a problem and an agent."""
    size = 3 * dim
    columns = -(-scales * (size + 1) // 3) * 3 if learner == MIXED else size
    return Plan(learner, chooser, dim, padded(size), arms, padded(arms), scales, columns, padded(columns))


def desk(p: Plan) -> Desk:
    """An empty desk."""
    size, rows, s, n = 3 * p.dim, 2 * p.dim + 1, p.scales, p.long
    shapes: dict[str, tuple[int, ...]] = {
        "table": (rows * p.across,),
        "root": (s, size * n),
        "turned": (s, n * n),
        "mixed": (size * p.wide,),
        "cov": (p.dim * p.dim,),
        "spread": (rows * p.wide,),
        "whole": (p.wide,),
    }
    shapes |= dict.fromkeys(("mean", "half"), (s, n)) | dict.fromkeys(("rates", "weights"), (s,))
    shapes |= dict.fromkeys(("theta", "normals", "centre", "draw", "row", "gain"), (n,))
    shapes |= dict.fromkeys(("context", "square"), (p.dim,)) | dict.fromkeys(("lifted", "action"), (rows,))
    shapes |= dict.fromkeys(("score", "variance", "bound"), (p.across,))
    return Desk(**{name: np.zeros(shape) for name, shape in shapes.items()})


@inlined
def _lift(w: Desk, dim: int, theta: Array) -> None:
    """The weights of [a^2, a, 1] in the score of every arm, for this theta."""
    shared = 0.0
    for i in range(dim):
        w.lifted[i] = theta[i]
        w.lifted[dim + i] = theta[2 * dim + i] * w.context[i]
        shared += w.square[i] * theta[dim + i]
    w.lifted[2 * dim] = shared


@inlined
def _scores(w: Desk, dim: int, across: int) -> None:
    """The lifted weights times the table."""
    for a in range(across):
        total = 0.0
        for i in range(2 * dim + 1):
            total += w.lifted[i] * w.table[i * across + a]
        w.score[a] = total


@inlined
def _largest(values: Array, number: int) -> int:
    """The first of the largest."""
    found, most = 0, values[0]
    for a in range(1, number):
        if values[a] > most:
            found, most = a, values[a]
    return found


@inlined
def _take(w: Desk, dim: int, across: int, arm: int) -> None:
    """The arm's column of the table."""
    for i in range(2 * dim + 1):
        w.action[i] = w.table[i * across + arm]


@inlined
def _variances(w: Desk, dim: int, across: int, columns: int, wide: int, root: Array) -> None:
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
def _hidden(w: Desk, dim: int, wide: int, root: Array, factor: float) -> float:
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


@inlined
def _mix(w: Desk, dim: int, long: int, scales: int, wide: int, shape: float) -> float:
    """The moments of the belief at all scales, learn/scaled.py `_mixed`; the mean of their noise."""
    most, total, noise = w.weights[_largest(w.weights, scales)], 0.0, 0.0
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
    turned = w.turned[scale]
    for k in range(long):
        total = 0.0
        for j in range(3 * dim):
            total += turned[j * long + k] * w.normals[j]
        w.draw[k] = w.centre[k] + spread * total


@inlined
def _bound(w: Desk, arm: int, level: float, growth: float, neglect: float) -> float:
    """An arm's score + level slope, slope^2 = v (1 + growth ln(1 + neglect v))."""
    variance = w.variance[arm]
    return w.score[arm] + level * sqrt(variance * (1 + growth * log1p(neglect * variance)))


@inlined
def _largest_bound(w: Desk, arms: int, across: int, level: float, growth: float, neglect: float) -> int:
    """The arm with the largest bound.

    With the largest v in the logarithm it is above every arm's, and one logarithm serves all: only arms for
    which that is above the best found so far are looked at.
    """
    stretch = 1 + growth * log1p(neglect * w.variance[_largest(w.variance, arms)])
    for a in range(across):
        w.bound[a] = w.score[a] + level * sqrt(w.variance[a] * stretch)
    found = _largest(w.bound, arms)
    best = _bound(w, found, level, growth, neglect)
    for a in range(arms):
        if w.bound[a] + 1e-12 * (abs(w.bound[a]) + abs(best)) >= best:
            value = _bound(w, a, level, growth, neglect)
            if value > best or (value == best and a < found):
                found, best = a, value
    return found


@inlined
def _noise(learner: int, told: float, noise: float, hidden: float) -> float:
    """The variance of a reward given theta, where the context hides so much: learner.noise."""
    return told + hidden if learner <= HETERO else noise * (1 + hidden / told)


@inlined
def _drawn(w: Desk, dim: int, long: int, arms: int, across: int, scale: int, factor: float) -> int:
    """The best arm of one draw: choose/thompson.py."""
    _sample(w, dim, long, scale, sqrt(factor))
    _lift(w, dim, w.draw)
    _scores(w, dim, across)
    return _largest(w.score, arms)


@inlined
def _raised(
    w: Desk, learner: int, dim: int, arms: int, across: int, columns: int, wide: int, rules: Rules,
    root: Array, factor: float, noise: float, time: int,
) -> tuple[int, int, float]:  # fmt: skip
    """The arm with the largest bound, choose/rand_ucb.py; the best expected one, and what it hides."""
    _lift(w, dim, w.centre)
    _scores(w, dim, across)
    _variances(w, dim, across, columns, wide, root)
    level = rules.level * exp((w.normals[0] ** 2 + w.normals[1] ** 2) / (2 * rules.tail))
    neglect, best, hidden = 0.0, -1, 0.0
    if rules.growth > 0:
        best = _largest(w.score, arms)
        _take(w, dim, across, best)
        hidden = 0.0 if rules.shown else _hidden(w, dim, wide, root, factor)
        neglect = factor * (1 + time) * arms / (rules.patience * _noise(learner, rules.told, noise, hidden))
    # The variances are in units of the factor.
    arm = _largest_bound(w, arms, across, level * sqrt(factor), rules.growth, neglect)
    return arm, best, hidden


@inlined
def _half(w: Desk, dim: int, wide: int, root: Array, out: Array) -> None:
    """The products root'row."""
    for j in range(wide):
        total = 0.0
        for k in range(3 * dim):
            total += w.row[k] * root[k * wide + j]
        out[j] = total


@inlined
def _dot(left: Array, right: Array, number: int) -> float:
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
def _learn(
    w: Desk, learner: int, dim: int, long: int, scales: int, told: float, shape: float, hidden: float,
    value: float,
) -> None:  # fmt: skip
    """Every scale's belief after a reward, and the weights of the scales."""
    for s in range(scales):
        root, half = w.root[s], w.half[s]
        _half(w, dim, long, root, half)
        away, variance = value - _dot(w.row, w.mean[s], long), told
        if learner == HETERO:
            variance += hidden
        if learner >= SCALED:
            variance = 1 + hidden / told
        total = variance + _dot(half, half, long)
        if learner >= SCALED:
            rate, square = w.rates[s], away * away / (2 * total)
            w.weights[s] -= 0.5 * log(total * rate) + (shape + 0.5) * log1p(square / rate)
            w.rates[s] = rate + square
        _condition(w, dim, long, s, away, variance, total)


@inlined
def _within(
    w: Desk, dim: int, long: int, wide: int, root: Array, factor: float, noise: float, value: float,
    limit: float,
) -> float:  # fmt: skip
    """The reward within reach of what was expected."""
    expected = _dot(w.row, w.centre, long)
    _half(w, dim, wide, root, w.whole)
    reach, away = limit * sqrt(noise + factor * _dot(w.whole, w.whole, wide)), value - expected
    if abs(away) > reach:
        return expected + (reach if away > 0 else -reach)
    return value


@inlined
def _true_score(w: Desk, dim: int, context: Array, i: int, t: int) -> float:
    """phi(arm, c)'theta."""
    total = 0.0
    for k in range(dim):
        at, action = context[i, t, k], w.action[dim + k]
        bent = at * (at * w.theta[dim + k] + action * w.theta[2 * dim + k])
        total += w.action[k] * w.theta[k] + bent
    return total


@inlined
def _at(place: int, size: int) -> int:
    """The place on an axis, of which one entry may serve all."""
    return place if size > 1 else 0


@inlined
def _sit_down(
    w: Desk, dim: int, long: int, arms: int, across: int, scales: int, world: World, state: State, i: int
) -> None:  # fmt: skip
    """A trial's things, put on the desk."""
    actions = _at(i, world.table.shape[0])
    for k in range(2 * dim + 1):
        for a in range(arms):
            w.table[k * across + a] = world.table[actions, a, k]
    for k in range(3 * dim):
        w.theta[k] = world.theta[i, k]
    for s in range(scales):
        w.rates[s], w.weights[s] = state.rates[i, s], state.weights[i, s]
        for k in range(3 * dim):
            w.mean[s, k] = state.mean[i, s, k]
            for j in range(3 * dim):
                w.root[s, k * long + j] = w.turned[s, j * long + k] = state.root[i, s, k, j]


@inlined
def _stand_up(w: Desk, dim: int, long: int, scales: int, state: State, i: int) -> None:
    """What was learnt, taken off the desk."""
    for s in range(scales):
        state.rates[i, s], state.weights[i, s] = w.rates[s], w.weights[s]
        for k in range(3 * dim):
            state.mean[i, s, k] = w.mean[s, k]
            for j in range(3 * dim):
                state.root[i, s, k, j] = w.root[s, k * long + j]


@inlined
def _look(w: Desk, dim: int, believed: Believed, i: int, t: int) -> None:
    """A round's context as it is believed to be, and the agent's draws."""
    trial, time = _at(i, believed.cov.shape[0]), _at(t, believed.cov.shape[1])
    for k in range(dim):
        mean = believed.mean[i, t, k]
        w.context[k] = mean
        for j in range(dim):
            w.cov[k * dim + j] = believed.cov[trial, time, k, j]
        w.square[k] = mean * mean + w.cov[k * dim + k]
    for k in range(believed.normals.shape[2]):
        w.normals[k] = believed.normals[i, t, k]


@inlined
def _row(w: Desk, dim: int) -> None:
    """psi(arm), the arm's column being there."""
    for k in range(dim):
        w.row[k] = w.action[k]
        w.row[dim + k] = w.square[k]
        w.row[2 * dim + k] = w.action[dim + k] * w.context[k]


@inlined
def _show(w: Desk, dim: int, shown: Array, i: int, t: int) -> None:
    """The true context in place of what was believed of it."""
    for k in range(dim):
        context = shown[i, t, k]
        w.context[k], w.square[k] = context, context * context


@inlined
def _regret(w: Desk, dim: int, arms: int, across: int, world: World, i: int, t: int, arm: int) -> float:
    """The oracle's best score less the arm's."""
    for k in range(dim):
        w.context[k], w.square[k] = world.best[i, t, k], world.best_square[i, t, k]
    _lift(w, dim, w.theta)
    _scores(w, dim, across)
    return w.score[_largest(w.score, arms)] - w.score[arm]


@inlined
def _round(
    w: Desk, learner: int, chooser: int, dim: int, long: int, arms: int, across: int, scales: int,
    columns: int, wide: int, rules: Rules, world: World, believed: Believed, trace: Trace, i: int, t: int,
    time: int, shape: float,
) -> None:  # fmt: skip
    """One round of one trial: choose, pay, learn. Theta ~ N(centre, factor root root')."""
    _look(w, dim, believed, i, t)
    scale, factor = 0, 1.0
    if learner == MIXED:
        noise, root = _mix(w, dim, long, scales, wide, shape), w.mixed
    else:
        scale = _largest(w.weights, scales)
        noise, root = w.rates[scale] / shape, w.root[scale]
        for k in range(long):
            w.centre[k] = w.mean[scale, k]
    if learner == SCALED:
        factor = noise
    best, hidden = -1, 0.0
    if chooser == THOMPSON:
        arm = _drawn(w, dim, long, arms, across, scale, factor)
    else:
        arm, best, hidden = _raised(
            w, learner, dim, arms, across, columns, wide, rules, root, factor, noise, time
        )  # fmt: skip
    _take(w, dim, across, arm)
    paid = world.noise[i, t] + world.counts[i, t] * _true_score(w, dim, world.context, i, t)
    trace.arm[i, t], trace.paid[i, t] = arm, paid
    if rules.shown:
        hidden = 0.0
        _show(w, dim, believed.shown, i, t)
    elif arm != best and (learner > CONJUGATE or rules.limit < inf):
        hidden = _hidden(w, dim, wide, root, factor)
    _row(w, dim)
    if rules.limit < inf:
        spread = _noise(learner, rules.told, noise, hidden)
        paid = _within(w, dim, long, wide, root, factor, spread, paid, rules.limit)
    _learn(w, learner, dim, long, scales, rules.told, shape, hidden, paid)
    trace.regret[i, t] = _regret(w, dim, arms, across, world, i, t, arm)


@lru_cache
def program(sizes: Plan) -> Callable[..., None]:
    """The program for these sizes: so many rounds of every trial, of which the first has this number.

    The state is moved on in place. Sizes are handed on one by one: single numbers are constants to the
    compiler, a tuple of them is not.
    """
    learner, chooser, dim, long, arms, across, scales, columns, wide = sizes

    def play(
        w: Desk, rules: Rules, world: World, believed: Believed, state: State, trace: Trace, rounds: int,
        first: int,
    ) -> None:  # fmt: skip
        for i in range(world.theta.shape[0]):
            _sit_down(w, dim, long, arms, across, scales, world, state, i)
            shape = state.shape[i]
            for t in range(rounds):
                _round(
                    w, learner, chooser, dim, long, arms, across, scales, columns, wide, rules, world,
                    believed, trace, i, t, first + t, shape,
                )  # fmt: skip
                shape += 0.5
            state.shape[i] = shape
            _stand_up(w, dim, long, scales, state, i)

    found: Any = compiled(play)
    return found
