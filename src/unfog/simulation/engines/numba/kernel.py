"""The kernel: it plays a block, one trial after the other, so that a trial's belief stays in the cache.

A round does what agents/round.py does, for the parts that numba/support.py admits:

    choose    learn/conjugate.py or learn/scaled.py `belief`; choose/thompson.py or choose/ucb.py
    pay       the true score of the arm and noise; the oracle's best score less the arm's is the regret
    learn     clip the reward (agents/round.py), then Potter's rank-one update (maths/gaussian.py)

Features are quadratic (features/quadratic.py). A trial is copied to a workspace (`Workspace`). Sizes are
constants of the compiled program (`KernelSizes`), so that loops over arms, and over columns of a root, are
vectorised: that is most of the speed. There is one program for every size of problem and every pair of
learner and chooser, and it is cached on disk (numba/compile.py).
"""

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, log, log1p, sqrt
from typing import Any

from unfog.agents.choose.greedy import TIE
from unfog.maths.arrays import Array
from unfog.simulation.engines.numba.arrays import (
    CONJUGATE,
    HETERO,
    LANES,
    MIXED,
    SCALED,
    THOMPSON,
    Believed,
    KernelSizes,
    Rules,
    State,
    Trace,
    Workspace,
    World,
)
from unfog.simulation.engines.numba.compile import compiled, inlined

# Up to these d, loops are unrolled completely; in stretches they would take up to 50% longer.
UNROLL_SUMS, UNROLL_COLUMNS = 5, 10


@inlined
def stretch(times: int, dim: int) -> int:
    """How many steps of a loop over so many times d are unrolled, so that the outer loop is vectorised.

    The compiler unrolls only short loops, and vectorises no loop around others.
    """
    if times * dim <= 16:
        return times * dim
    if dim <= 16:
        return dim
    return 10 if dim % 10 == 0 else 5 if dim % 5 == 0 else 4 if dim % 4 == 0 else times


@inlined
def combine(dim: int, wide: int, weights: Array, rows: Array, out: Array) -> None:
    """The sum of m rows, each with its weight."""
    if dim <= UNROLL_SUMS:
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
def lift_theta(w: Workspace, dim: int, theta: Array) -> None:
    """The weights of [a^2, a, 1] in the score of every arm, for this theta."""
    shared = 0.0
    for i in range(dim):
        w.lifted[i] = theta[i]
        w.lifted[dim + i] = theta[2 * dim + i] * w.context[i]
        shared += w.square[i] * theta[dim + i]
    w.lifted[2 * dim] = shared


@inlined
def score_arms(w: Workspace, dim: int, across: int) -> None:
    """The lifted weights times the table."""
    for a in range(across):
        total = w.lifted[2 * dim]
        for i in range(2 * dim):
            total += w.lifted[i] * w.table[i * across + a]
        w.score[a] = total


@inlined
def maximum(values: Array, lanes: Array, number: int) -> float:
    """The largest value: first of each lane of a vector, which is one instruction, then of the lanes."""
    most, full = values[0], number - number % LANES
    if full:
        for k in range(LANES):
            lanes[k] = values[k]
        for first in range(LANES, full, LANES):
            for k in range(LANES):
                value = values[first + k]
                lanes[k] = value if value > lanes[k] else lanes[k]
        for k in range(LANES):
            most = lanes[k] if lanes[k] > most else most
    for a in range(full, number):
        most = values[a] if values[a] > most else most
    return most


@inlined
def largest(values: Array, lanes: Array, number: int) -> int:
    """The index of the first of the largest values."""
    most = maximum(values, lanes, number)
    for a in range(number):
        if values[a] == most:
            return a
    return 0


@inlined
def tied(most: float) -> float:
    """The least value that counts as equal to the largest: agents/choose/greedy.py."""
    return (1 - TIE) * most if most > 0 else (1 + TIE) * most


@inlined
def first_best(values: Array, lanes: Array, number: int) -> int:
    """The index of the first value that equals the largest up to rounding."""
    least = tied(maximum(values, lanes, number))
    for a in range(number):
        if values[a] >= least:
            return a
    return 0


@inlined
def take_arm(w: Workspace, dim: int, across: int, arm: int) -> None:
    """Copy the arm's column of the table."""
    for i in range(2 * dim + 1):
        w.action[i] = w.table[i * across + arm]


@inlined
def spread_scores(w: Workspace, dim: int, across: int, columns: int, wide: int, root: Array) -> None:
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
    if dim <= UNROLL_COLUMNS:
        _add_three_columns(w, dim, across, columns, wide)
    else:
        _add_columns(w, dim, across, columns, wide)


@inlined
def _add_three_columns(w: Workspace, dim: int, across: int, columns: int, wide: int) -> None:
    """Add three whole columns at a time."""
    last = 2 * dim * wide
    for j in range(0, columns, 3):
        for a in range(across):
            one, two, three = w.spread[last + j], w.spread[last + j + 1], w.spread[last + j + 2]
            for i in range(2 * dim):
                entry, index = w.table[i * across + a], i * wide + j
                one += w.spread[index] * entry
                two += w.spread[index + 1] * entry
                three += w.spread[index + 2] * entry
            w.variance[a] += one * one + two * two + three * three


@inlined
def _add_columns(w: Workspace, dim: int, across: int, columns: int, wide: int) -> None:
    """Add long columns, a stretch of each at a time."""
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
def hidden_variance(w: Workspace, dim: int, wide: int, root: Array, factor: float) -> float:
    """E[theta'Cov(phi(arm, c))theta], theta ~ N(centre, factor root root'): features/quadratic.py.

    With slopes s(theta) = a theta_3 + 2 v theta_2 it is E[s'C s + 2 theta_2'(C * C)theta_2]; for the centre,
    and for every column of the root in place of theta.
    """
    total = 0.0
    if dim <= UNROLL_SUMS:
        for j in range(wide):
            total += _variance_of_column(w, dim, wide, root, j)
    else:
        total = _variance_of_all(w, dim, wide, root)
    return _variance_of_column(w, dim, 1, w.centre, 0) + factor * total


@inlined
def _variance_of_column(w: Workspace, dim: int, wide: int, root: Array, j: int) -> float:
    """The part of one column. C is symmetric, so that entries below its diagonal count twice."""
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
def _variance_of_all(w: Workspace, dim: int, wide: int, root: Array) -> float:
    """The part of all columns, a stretch of C's rows at a time; slopes are stored in `spread`."""
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


@inlined
def mix_scales(w: Workspace, dim: int, long: int, scales: int, wide: int, shape: float) -> float:
    """Compute the moments of the mixture of scales, as learn/scaled.py; return the mean of their noise."""
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
        _append_scale(w, dim, long, wide, s, share, sqrt(share * w.rates[s] / shape))
    return noise


@inlined
def _append_scale(
    w: Workspace, dim: int, long: int, wide: int, scale: int, share: float, spread: float
) -> None:
    """Copy one scale's columns of the mixture's root."""
    size = 3 * dim
    first = scale * (size + 1)
    for k in range(size):
        for j in range(size):
            w.mixed[k * wide + first + j] = spread * w.root[scale, k * long + j]
        w.mixed[k * wide + first + size] = sqrt(share) * (w.mean[scale, k] - w.centre[k])


@inlined
def _sample(w: Workspace, dim: int, long: int, scale: int, spread: float) -> None:
    """Draw theta."""
    combine(dim, long, w.normals, w.turned[scale], w.draw)
    for k in range(long):
        w.draw[k] = w.centre[k] + spread * w.draw[k]


@inlined
def _bound(w: Workspace, arm: int, level: float, growth: float, neglect: float) -> float:
    """An arm's score + level slope, slope^2 = v (1 + growth ln(1 + neglect v))."""
    variance = w.variance[arm]
    return w.score[arm] + level * sqrt(variance * (1 + growth * log1p(neglect * variance)))


@inlined
def _largest_bound(w: Workspace, arms: int, across: int, level: float, growth: float, neglect: float) -> int:
    """The arm with the largest bound.

    With the largest v in the logarithm, one logarithm gives an upper limit for all arms: the bound is
    computed only for arms whose limit is above the best bound so far, or may be equal to it.
    """
    stretch = 1 + growth * log1p(neglect * maximum(w.variance, w.lanes, arms))
    for a in range(across):
        w.bound[a] = w.score[a] + level * sqrt(w.variance[a] * stretch)
    first = largest(w.bound, w.lanes, arms)
    best = _bound(w, first, level, growth, neglect)
    least = tied(best) - 2e-12 * abs(best)
    count = 0
    for a in range(arms):
        count += w.bound[a] >= least
    if count == 1:
        return first
    for a in range(arms):
        if w.bound[a] >= least:
            w.bound[a] = _bound(w, a, level, growth, neglect)
            best = max(best, w.bound[a])
    least = tied(best)
    for a in range(arms):
        if w.bound[a] >= least:
            return a
    return first


@inlined
def reward_noise(learner: int, reward_var: float, noise: float, hidden: float) -> float:
    """The variance of a reward given theta, with the variance that the context hides: learner.noise."""
    return reward_var + hidden if learner <= HETERO else noise * (1 + hidden / reward_var)


@inlined
def choose_by_draw(
    w: Workspace, dim: int, long: int, arms: int, across: int, scale: int, factor: float
) -> int:
    """The best arm of one draw: choose/thompson.py."""
    _sample(w, dim, long, scale, sqrt(factor))
    lift_theta(w, dim, w.draw)
    score_arms(w, dim, across)
    return first_best(w.score, w.lanes, arms)


@inlined
def choose_by_bound(
    w: Workspace, learner: int, dim: int, arms: int, across: int, columns: int, wide: int, rules: Rules,
    root: Array, factor: float, noise: float, time: int,
) -> tuple[int, int, float]:  # fmt: skip
    """The arm with the largest bound, choose/ucb.py; the best expected arm, and its hidden variance."""
    lift_theta(w, dim, w.centre)
    score_arms(w, dim, across)
    spread_scores(w, dim, across, columns, wide, root)
    level = rules.level * exp((w.normals[0] ** 2 + w.normals[1] ** 2) / (2 * rules.tail))
    neglect, best, hidden = 0.0, -1, 0.0
    if rules.growth > 0:
        best = first_best(w.score, w.lanes, arms)
        take_arm(w, dim, across, best)
        hidden = 0.0 if rules.revealed else hidden_variance(w, dim, wide, root, factor)
        neglect = (
            factor
            * (1 + time)
            * arms
            / (rules.patience * reward_noise(learner, rules.reward_var, noise, hidden))
        )
    # The variances are in units of the factor.
    arm = _largest_bound(w, arms, across, level * sqrt(factor), rules.growth, neglect)
    return arm, best, hidden


@inlined
def dot(left: Array, right: Array, number: int) -> float:
    """The sum of products."""
    total = 0.0
    for i in range(number):
        total += left[i] * right[i]
    return total


@inlined
def _condition(w: Workspace, dim: int, long: int, scale: int, variance: float) -> None:
    """Potter's update of one belief by a deviation; `total` is the variance plus half'half."""
    root, turned, half, mean = w.root[scale], w.turned[scale], w.half[scale], w.mean[scale]
    away, total = w.away[scale], w.total[scale]
    slope = 1 / (total + sqrt(variance * total))
    combine(dim, long, half, turned, w.gain)
    for k in range(long):
        mean[k] += w.gain[k] * (away / total)
    _subtract_outer(dim, long, slope, w.gain, half, root)
    _subtract_outer(dim, long, slope, half, w.gain, turned)


@inlined
def _subtract_outer(dim: int, long: int, slope: float, down: Array, along: Array, rows: Array) -> None:
    """Subtract a multiple of an outer product from a matrix."""
    step = stretch(3, dim)
    for first in range(0, 3 * dim, step):
        for j in range(long):
            value = slope * along[j]
            for k in range(first, first + step):
                rows[k * long + j] -= down[k] * value


@inlined
def learn_reward(
    w: Workspace, learner: int, dim: int, long: int, scales: int, var: float, shape: float, hidden: float,
    value: float,
) -> None:  # fmt: skip
    """Update every scale's belief and weight after a reward.

    Each step is done for all scales before the next, so that a processor can overlap them.
    """
    variance = var if learner == CONJUGATE else var + hidden if learner == HETERO else 1 + hidden / var
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
def clip_reward(
    w: Workspace, dim: int, long: int, wide: int, root: Array, factor: float, noise: float, value: float,
    limit: float,
) -> float:  # fmt: skip
    """The reward, clipped if it is too far from its expectation."""
    expected = dot(w.row, w.centre, long)
    combine(dim, wide, w.row, root, w.whole)
    reach, away = limit * sqrt(noise + factor * dot(w.whole, w.whole, wide)), value - expected
    if abs(away) > reach:
        return expected + (reach if away > 0 else -reach)
    return value


@inlined
def _true_score(w: Workspace, dim: int, context: Array, i: int, t: int) -> float:
    """phi(arm, c)'theta."""
    total = 0.0
    for k in range(dim):
        at, action = context[i, t, k], w.action[dim + k]
        bent = at * (at * w.theta[dim + k] + action * w.theta[2 * dim + k])
        total += w.action[k] * w.theta[k] + bent
    return total


@inlined
def _at(index: int, size: int) -> int:
    """The index on an axis, of which one entry may serve all."""
    return index if size > 1 else 0


@inlined
def _load_trial(
    w: Workspace, dim: int, long: int, arms: int, across: int, scales: int, world: World, state: State, i: int
) -> None:  # fmt: skip
    """Copy the data of a trial to the workspace."""
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
def _store_trial(w: Workspace, dim: int, long: int, scales: int, state: State, i: int) -> None:
    """Copy the learner's state from the workspace."""
    for s in range(scales):
        state.rates[i, s], state.weights[i, s] = w.rates[s], w.weights[s]
        for k in range(3 * dim):
            state.mean[i, s, k] = w.mean[s, k]
            for j in range(3 * dim):
                state.root[i, s, k, j] = w.root[s, k * long + j]


@inlined
def _load_round(w: Workspace, dim: int, believed: Believed, i: int, t: int) -> None:
    """Copy the belief about a round's context, and the agent's draws."""
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
def _compute_row(w: Workspace, dim: int) -> None:
    """Compute psi(arm) from the arm's column."""
    for k in range(dim):
        w.row[k] = w.action[k]
        w.row[dim + k] = w.square[k]
        w.row[2 * dim + k] = w.action[dim + k] * w.context[k]


@inlined
def _reveal_context(w: Workspace, dim: int, revealed: Array, i: int, t: int) -> None:
    """Replace the belief about the context by the true context."""
    for k in range(dim):
        context = revealed[i, t, k]
        w.context[k], w.square[k] = context, context * context


@inlined
def _regret(w: Workspace, dim: int, arms: int, across: int, world: World, i: int, t: int, arm: int) -> float:
    """The oracle's best score less the arm's."""
    for k in range(dim):
        w.context[k], w.square[k] = world.best[i, t, k], world.best_square[i, t, k]
    lift_theta(w, dim, w.theta)
    score_arms(w, dim, across)
    return maximum(w.score, w.lanes, arms) - w.score[arm]


@inlined
def _form_belief(
    w: Workspace, learner: int, dim: int, long: int, scales: int, wide: int, shape: float
) -> tuple[Array, float, float, int]:  # fmt: skip
    """The root and factor of theta ~ N(centre, factor root root'); the noise of rewards; the best scale."""
    if learner == MIXED:
        noise = mix_scales(w, dim, long, scales, wide, shape)
        return w.mixed, 1.0, noise, 0
    scale = largest(w.weights, w.lanes, scales)
    noise = w.rates[scale] / shape
    for k in range(long):
        w.centre[k] = w.mean[scale, k]
    return w.root[scale], noise if learner == SCALED else 1.0, noise, scale


@lru_cache
def program(sizes: KernelSizes) -> Callable[..., None]:
    """The program for these sizes: it plays so many rounds of every trial, from number `first` on.

    The state is updated in place. Sizes are unpacked, since single numbers are constants to the compiler
    and a tuple of them is not.
    """
    learner, chooser, dim, long, arms, across, scales, columns, wide = sizes

    def play(
        w: Workspace, rules: Rules, world: World, believed: Believed, state: State, trace: Trace, rounds: int,
        first: int,
    ) -> None:  # fmt: skip
        for i in range(world.theta.shape[0]):
            _load_trial(w, dim, long, arms, across, scales, world, state, i)
            shape = state.shape[i]
            for t in range(rounds):
                _load_round(w, dim, believed, i, t)
                root, factor, noise, scale = _form_belief(w, learner, dim, long, scales, wide, shape)
                best, hidden = -1, 0.0
                if chooser == THOMPSON:
                    arm = choose_by_draw(w, dim, long, arms, across, scale, factor)
                else:
                    arm, best, hidden = choose_by_bound(
                        w, learner, dim, arms, across, columns, wide, rules, root, factor, noise, first + t
                    )  # fmt: skip
                take_arm(w, dim, across, arm)
                reward = world.noise[i, t] + world.counts[i, t] * _true_score(w, dim, world.context, i, t)
                trace.arm[i, t], trace.paid[i, t] = arm, reward
                if rules.revealed:
                    hidden = 0.0
                    _reveal_context(w, dim, believed.revealed, i, t)
                elif arm != best and (learner > CONJUGATE or rules.limit < inf):
                    hidden = hidden_variance(w, dim, wide, root, factor)
                _compute_row(w, dim)
                if rules.limit < inf:
                    spread = reward_noise(learner, rules.reward_var, noise, hidden)
                    reward = clip_reward(w, dim, long, wide, root, factor, spread, reward, rules.limit)
                learn_reward(w, learner, dim, long, scales, rules.reward_var, shape, hidden, reward)
                trace.regret[i, t] = _regret(w, dim, arms, across, world, i, t, arm)
                shape += 0.5
            state.shape[i] = shape
            _store_trial(w, dim, long, scales, state, i)

    kernel: Any = compiled(play)
    return kernel
