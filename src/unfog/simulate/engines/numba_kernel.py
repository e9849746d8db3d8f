"""The kernel: a trial after the other, each through all rounds of a block, its belief in the nearest cache.

What a round does is what agents/round.py has it do, for the parts that `numba_split` lets through:

    choose    learn/conjugate.py, hetero.py or scaled.py `belief`; choose/thompson.py or rand_ucb.py
    pay       the true score of the arm and noise; the oracle's best score less the arm's is the regret
    learn     the reward within reach (agents/surprise.py), then Potter's rank-one update (maths/gaussian.py)

Features are quadratic (features/quadratic.py). All that a trial needs lies in one array, the desk `w`, at places
(`Plan`) that are constants of the compiled program: so the compiler knows all sizes, and that nothing overlaps,
and can turn every loop over arms or over columns of a root into vectors, which is most of the speed. There is
one program for every size of problem and every pair of learner and chooser.
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
    dim: int  # d
    size: int  # m
    long: int  # m, filled up
    rows: int  # of the table: 2 d + 1
    arms: int  # K
    across: int  # K, filled up
    scales: int
    wide: int  # columns of the belief's root: m, or those of all scales together, filled up


class Desk(NamedTuple):
    """What a trial has before it in a round; matrices are laid row by row."""

    table: Array  # (rows, across)
    root: Array  # (scales, size long)
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
    mixed: Array  # (size, wide)  its root, where it is that of all scales
    draw: Array  # (long,)  of theta
    lifted: Array  # (rows,)
    spread: Array  # (rows, wide)
    score: Array  # (across,)
    variance: Array  # (across,)
    bound: Array  # (across,)
    action: Array  # (rows,)
    row: Array  # (long,)
    half: Array  # (scales, long)
    whole: Array  # (wide,)  root'row of the belief
    gain: Array  # (long,)


def padded(size: int) -> int:
    """The next multiple of a vector."""
    return -(-size // LANES) * LANES


def plan(learner: int, chooser: int, dim: int, size: int, arms: int, scales: int) -> Plan:
    """The sizes for a problem and an agent."""
    long = padded(size)
    wide = padded(scales * (long + 1)) if learner == MIXED else long
    return Plan(learner, chooser, dim, size, long, 2 * dim + 1, arms, padded(arms), scales, wide)


def desk(p: Plan) -> Desk:
    """An empty desk."""
    d, s, n, one = (p.dim,), p.scales, p.long, (p.long,)
    arms, rows = (p.across,), (p.rows,)
    sizes = [
        (p.rows * p.across,), (s, p.size * n), (s, n * n), (s, n), (s,), (s,), one, d, d, (p.dim * p.dim,), one,
        one, (p.size * p.wide,), one, rows, (p.rows * p.wide,), arms, arms, arms, rows, one, (s, n), (p.wide,), one,
    ]  # fmt: skip
    return Desk(*map(np.zeros, sizes))


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
def _scores(w: Desk, rows: int, across: int) -> None:
    """The lifted weights times the table."""
    for a in range(across):
        total = 0.0
        for i in range(rows):
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
def _take(w: Desk, rows: int, across: int, arm: int) -> None:
    """The arm's column of the table."""
    for i in range(rows):
        w.action[i] = w.table[i * across + arm]


@inlined
def _variances(w: Desk, dim: int, rows: int, across: int, wide: int, root: Array) -> None:
    """The variance of every arm's score, two columns at a time of a root that is lifted to [a^2, a, 1]."""
    for j in range(wide):
        shared = 0.0
        for i in range(dim):
            w.spread[i * wide + j] = root[i * wide + j]
            turned = w.context[i] * root[(2 * dim + i) * wide + j]
            w.spread[(dim + i) * wide + j] = turned
            shared += w.square[i] * root[(dim + i) * wide + j]
        w.spread[2 * dim * wide + j] = shared
    for a in range(across):
        w.variance[a] = 0.0
    for j in range(0, wide, 2):
        for a in range(across):
            one, two = 0.0, 0.0
            for i in range(rows):
                one += w.spread[i * wide + j] * w.table[i * across + a]
                two += w.spread[i * wide + j + 1] * w.table[i * across + a]
            w.variance[a] += one * one + two * two


@inlined
def _hidden(w: Desk, dim: int, wide: int, root: Array, factor: float) -> float:
    """E[theta'Cov(phi(arm, c))theta], theta ~ N(centre, factor root root'): features/quadratic.py.

    With slopes s(theta) = a theta_3 + 2 v theta_2 it is E[s'C s + 2 theta_2'(C * C)theta_2]; for the centre, and
    for every column of the root in place of theta.
    """
    certain, total = 0.0, 0.0
    second, third, wide = dim * wide, 2 * dim * wide, wide
    for j in range(wide):
        for i in range(dim):
            line, bend = 0.0, 0.0
            for k in range(dim):
                share, bent = w.cov[i * dim + k], root[second + k * wide + j]
                slope = w.action[dim + k] * root[third + k * wide + j] + 2 * w.context[k] * bent
                line += share * slope
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
def _mix(w: Desk, size: int, long: int, scales: int, wide: int, shape: float) -> float:
    """The moments of the belief at all scales, learn/scaled.py `_mixed`; the mean of their noise."""
    most, total, noise = -inf, 0.0, 0.0
    for s in range(scales):
        most = max(most, w.weights[s])
    for s in range(scales):
        total += exp(w.weights[s] - most)
    for k in range(size):
        w.centre[k] = 0.0
    for s in range(scales):
        share = exp(w.weights[s] - most) / total
        noise += share * w.rates[s] / shape
        for k in range(size):
            w.centre[k] += share * w.mean[s, k]
    for s in range(scales):
        share = exp(w.weights[s] - most) / total
        spread, apart = sqrt(share * w.rates[s] / shape), sqrt(share)
        for k in range(size):
            for j in range(long):
                w.mixed[k * wide + s * long + j] = spread * w.root[s, k * long + j]
            away = w.mean[s, k] - w.centre[k]
            w.mixed[k * wide + scales * long + s] = apart * away
    return noise


@inlined
def _sample(w: Desk, size: int, long: int, scale: int, spread: float) -> None:
    """A draw of theta."""
    turned = w.turned[scale]
    for k in range(long):
        total = 0.0
        for j in range(size):
            total += turned[j * long + k] * w.normals[j]
        w.draw[k] = w.centre[k] + spread * total


@inlined
def _bound(w: Desk, arm: int, level: float, growth: float, scale: float) -> float:
    """score + level slope, slope^2 = v (1 + growth ln(1 + scale v))."""
    variance = w.variance[arm]
    return w.score[arm] + level * sqrt(variance * (1 + growth * log1p(scale * variance)))


@inlined
def _largest_bound(w: Desk, arms: int, across: int, level: float, growth: float, scale: float) -> int:
    """The arm with the largest bound.

    With the largest v in the logarithm it is above every arm's, and one logarithm serves all: only arms for which
    that is above the best found so far are looked at.
    """
    most = w.variance[_largest(w.variance, arms)]
    stretch = 1 + growth * log1p(scale * most)
    for a in range(across):
        w.bound[a] = w.score[a] + level * sqrt(w.variance[a] * stretch)
    found = _largest(w.bound, arms)
    best = _bound(w, found, level, growth, scale)
    for a in range(arms):
        if w.bound[a] + 1e-12 * (abs(w.bound[a]) + abs(best)) >= best:
            value = _bound(w, a, level, growth, scale)
            if value > best or (value == best and a < found):
                found, best = a, value
    return found


@inlined
def _noise(learner: int, told: float, noise: float, hidden: float) -> float:
    """The variance of a reward given theta, where the context hides so much: learner.noise."""
    return told + hidden if learner <= HETERO else noise * (1 + hidden / told)


@inlined
def _choose(w: Desk, learner: int, chooser: int, dim: int, size: int, long: int, rows: int, arms: int, across: int, wide: int, rules: Rules, scale: int, factor: float, noise: float, time: int) -> int:
    """The chooser's arm; the belief is at one scale, or all mixed."""
    if chooser == THOMPSON:
        _sample(w, size, long, scale, sqrt(factor))
        _lift(w, dim, w.draw)
        _scores(w, rows, across)
        return _largest(w.score, arms)
    root = w.mixed if learner == MIXED else w.root[scale]
    _lift(w, dim, w.centre)
    _scores(w, rows, across)
    _variances(w, dim, rows, across, wide, root)
    level = rules.level * exp((w.normals[0] ** 2 + w.normals[1] ** 2) / (2 * rules.tail))
    neglect = 0.0
    if rules.growth > 0:
        _take(w, rows, across, _largest(w.score, arms))
        hidden = 0.0 if rules.shown else _hidden(w, dim, wide, root, factor)
        spread = rules.patience * _noise(learner, rules.told, noise, hidden)
        neglect = factor * (1 + time) * arms / spread
    # The variances are in units of the factor.
    return _largest_bound(w, arms, across, level * sqrt(factor), rules.growth, neglect)


@inlined
def _half(w: Desk, size: int, root: Array, wide: int, out: Array) -> None:
    """root'row."""
    for j in range(wide):
        total = 0.0
        for k in range(size):
            total += w.row[k] * root[k * wide + j]
        out[j] = total


@inlined
def _dot(left: Array, right: Array, number: int) -> float:
    total = 0.0
    for i in range(number):
        total += left[i] * right[i]
    return total


@inlined
def _condition(w: Desk, size: int, long: int, scale: int, away: float, variance: float, total: float) -> None:
    """Potter's update of one belief, by a value so far away; the total is the variance and half'half."""
    root, turned, half, mean = w.root[scale], w.turned[scale], w.half[scale], w.mean[scale]
    slope = 1 / (total + sqrt(variance * total))
    for k in range(long):
        gain = 0.0
        for j in range(size):
            gain += turned[j * long + k] * half[j]
        w.gain[k] = gain
    for k in range(long):
        mean[k] += w.gain[k] * (away / total)
    for j in range(long):
        step = half[j] * slope
        for k in range(size):
            root[k * long + j] -= step * w.gain[k]
    for k in range(long):
        step = w.gain[k]
        for j in range(size):
            turned[j * long + k] -= half[j] * slope * step


@inlined
def _learn(w: Desk, learner: int, size: int, long: int, scales: int, told: float, shape: float, hidden: float, value: float) -> None:
    """Every scale's belief after a reward, and the weights of the scales."""
    for s in range(scales):
        half = w.half[s]
        away = value - _dot(w.row, w.mean[s], long)
        variance = told
        if learner == HETERO:
            variance += hidden
        if learner >= SCALED:
            variance = 1 + hidden / told
        total = variance + _dot(half, half, long)
        if learner >= SCALED:
            rate, square = w.rates[s], away * away / (2 * total)
            w.weights[s] -= 0.5 * log(total * rate) + (shape + 0.5) * log1p(square / rate)
            w.rates[s] = rate + square
        _condition(w, size, long, s, away, variance, total)


@inlined
def _within(w: Desk, size: int, long: int, wide: int, root: Array, factor: float, noise: float, value: float, limit: float) -> float:
    """The reward within reach of what was expected."""
    expected = _dot(w.row, w.centre, long)
    _half(w, size, root, wide, w.whole)
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
def _sit_down(w: Desk, size: int, long: int, rows: int, arms: int, across: int, scales: int, world: World, state: State, i: int) -> None:
    """A trial's things, put on the desk."""
    actions = _at(i, world.table.shape[0])
    for k in range(rows):
        for a in range(arms):
            w.table[k * across + a] = world.table[actions, a, k]
    for k in range(size):
        w.theta[k] = world.theta[i, k]
    for s in range(scales):
        w.rates[s], w.weights[s] = state.rates[i, s], state.weights[i, s]
        for k in range(size):
            w.mean[s, k] = state.mean[i, s, k]
            for j in range(size):
                entry = state.root[i, s, k, j]
                w.root[s, k * long + j] = w.turned[s, j * long + k] = entry


@inlined
def _stand_up(w: Desk, size: int, long: int, scales: int, state: State, i: int) -> None:
    """What was learnt, taken off the desk."""
    for s in range(scales):
        state.rates[i, s], state.weights[i, s] = w.rates[s], w.weights[s]
        for k in range(size):
            state.mean[i, s, k] = w.mean[s, k]
            for j in range(size):
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
def _learn_from(
    w: Desk, learner: int, dim: int, size: int, long: int, scales: int, wide: int, rules: Rules, believed: Believed, i: int, t: int, scale: int, factor: float,
    noise: float, shape: float, paid: float,
) -> None:  # fmt: skip
    """What a reward says, its arm's column being there."""
    root = w.mixed if learner == MIXED else w.root[scale]
    hidden = 0.0
    if rules.shown:
        for k in range(dim):
            context = believed.shown[i, t, k]
            w.context[k], w.square[k] = context, context * context
    elif learner > CONJUGATE or rules.limit < inf:
        hidden = _hidden(w, dim, wide, root, factor)
    _row(w, dim)
    if rules.limit < inf:
        spread = _noise(learner, rules.told, noise, hidden)
        paid = _within(w, size, long, wide, root, factor, spread, paid, rules.limit)
    for s in range(scales):
        _half(w, size, w.root[s], long, w.half[s])
    _learn(w, learner, size, long, scales, rules.told, shape, hidden, paid)


@inlined
def _regret(w: Desk, dim: int, rows: int, arms: int, across: int, world: World, i: int, t: int, arm: int) -> float:
    """The oracle's best score less the arm's."""
    for k in range(dim):
        w.context[k], w.square[k] = world.best[i, t, k], world.best_square[i, t, k]
    _lift(w, dim, w.theta)
    _scores(w, rows, across)
    return w.score[_largest(w.score, arms)] - w.score[arm]


@inlined
def _round(
    w: Desk, learner: int, chooser: int, dim: int, size: int, long: int, rows: int, arms: int, across: int, scales: int, wide: int, rules: Rules, world: World, believed: Believed, trace: Trace, i: int, t: int,
    time: int, shape: float,
) -> None:  # fmt: skip
    """One round of one trial: choose, pay, learn."""
    _look(w, dim, believed, i, t)
    scale, factor = 0, 1.0
    if learner == MIXED:
        noise = _mix(w, size, long, scales, wide, shape)
    else:
        scale = _largest(w.weights, scales)
        noise = w.rates[scale] / shape
        for k in range(long):
            w.centre[k] = w.mean[scale, k]
    if learner == SCALED:
        factor = noise
    arm = _choose(w, learner, chooser, dim, size, long, rows, arms, across, wide, rules, scale, factor, noise, time)
    _take(w, rows, across, arm)
    paid = world.noise[i, t] + world.counts[i, t] * _true_score(w, dim, world.context, i, t)
    trace.arm[i, t], trace.paid[i, t] = arm, paid
    _learn_from(w, learner, dim, size, long, scales, wide, rules, believed, i, t, scale, factor, noise, shape, paid)
    trace.regret[i, t] = _regret(w, dim, rows, arms, across, world, i, t, arm)


@lru_cache
def program(sizes: Plan) -> Callable[..., None]:
    """The program for these sizes: so many rounds of every trial, of which the first has this number.

    The state is moved on in place. Single numbers are constants to the compiler, a tuple of them is not.
    """
    learner, chooser, dim, size, long, rows, arms, across, scales, wide = sizes

    def play(
        w: Desk, rules: Rules, world: World, believed: Believed, state: State, trace: Trace, rounds: int,
        first: int,
    ) -> None:  # fmt: skip
        for i in range(world.theta.shape[0]):
            _sit_down(w, size, long, rows, arms, across, scales, world, state, i)
            shape = state.shape[i]
            for t in range(rounds):
                _round(
                    w, learner, chooser, dim, size, long, rows, arms, across, scales, wide, rules, world, believed,
                    trace, i, t, first + t, shape,
                )  # fmt: skip
                shape += 0.5
            state.shape[i] = shape
            _stand_up(w, size, long, scales, state, i)

    found: Any = compiled(play)
    return found
