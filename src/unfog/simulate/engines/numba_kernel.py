"""The kernel: a trial after the other, each through all rounds of a block, its belief in the nearest cache.

What a round does is what agents/round.py has it do, for the parts that `numba_split` lets through:

    choose    learn/conjugate.py, hetero.py or scaled.py `belief`; choose/thompson.py or rand_ucb.py
    pay       the true score of the arm and noise; the oracle's best score less the arm's is the regret
    learn     the reward within reach (agents/round.py), then Potter's rank-one update (maths/gaussian.py)

Features are quadratic (features/quadratic.py). A trial sits down at a `Desk` with all its things. Sizes are
constants of the compiled program (`Plan`), so that loops over arms, and over columns of a root, become
vectors: that is most of the speed. There is one program for every size of problem and every pair of learner
and chooser, and it is kept on disk (`numba_kept`).
"""

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Any

from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_choose import drawn_arm, mix_scales, raised_arm, reward_noise
from unfog.simulate.engines.numba_desk import (
    CONJUGATE,
    MIXED,
    SCALED,
    THOMPSON,
    Believed,
    Desk,
    Plan,
    Rules,
    State,
    Trace,
    World,
)
from unfog.simulate.engines.numba_jit import compiled, inlined
from unfog.simulate.engines.numba_learn import learn_reward, within_reach
from unfog.simulate.engines.numba_scores import (
    hidden_variance,
    largest,
    lift_theta,
    maximum,
    score_arms,
    take_arm,
)


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
    lift_theta(w, dim, w.theta)
    score_arms(w, dim, across)
    return maximum(w.score, w.lanes, arms) - w.score[arm]


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
        noise, root = mix_scales(w, dim, long, scales, wide, shape), w.mixed
    else:
        scale = largest(w.weights, w.lanes, scales)
        noise, root = w.rates[scale] / shape, w.root[scale]
        for k in range(long):
            w.centre[k] = w.mean[scale, k]
    if learner == SCALED:
        factor = noise
    best, hidden = -1, 0.0
    if chooser == THOMPSON:
        arm = drawn_arm(w, dim, long, arms, across, scale, factor)
    else:
        arm, best, hidden = raised_arm(
            w, learner, dim, arms, across, columns, wide, rules, root, factor, noise, time
        )  # fmt: skip
    take_arm(w, dim, across, arm)
    paid = world.noise[i, t] + world.counts[i, t] * _true_score(w, dim, world.context, i, t)
    trace.arm[i, t], trace.paid[i, t] = arm, paid
    if rules.shown:
        hidden = 0.0
        _show(w, dim, believed.shown, i, t)
    elif arm != best and (learner > CONJUGATE or rules.limit < inf):
        hidden = hidden_variance(w, dim, wide, root, factor)
    _row(w, dim)
    if rules.limit < inf:
        spread = reward_noise(learner, rules.told, noise, hidden)
        paid = within_reach(w, dim, long, wide, root, factor, spread, paid, rules.limit)
    learn_reward(w, learner, dim, long, scales, rules.told, shape, hidden, paid)
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
