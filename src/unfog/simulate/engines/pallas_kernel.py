"""The whole loop in one GPU kernel: a trial to a thread, its belief in registers over many rounds.

What limits the compiled scan on a GPU is memory: the root of the belief is moved five times a round. Here it
never leaves the processor. To fit, the root is kept lower triangular by Carlson's form of the rank-one update
(N. A. Carlson, *Fast triangular formulation of the square root filter*), m (m + 1) / 2 numbers. A vector of
the maths is a Python list here, of arrays with a trial in each lane; loops over features are unrolled.

The kernel knows an agent by its `Gains`: the agents it serves have a denoiser that is affine in the noisy
context and in the sum of past observations, with gains that depend on the round alone.
"""

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from unfog.maths.arrays import Array

LANES = 128  # trials a program of the grid

Vector: TypeAlias = list[Any]  # of lanes
Matrix: TypeAlias = list[list[Any]]


class Constants(NamedTuple):
    """The numbers of a problem and an agent that are the same in every round and trial, as plain floats."""

    mean: list[float]  # mu_c
    context_root: Matrix
    noise_root: Matrix
    reward_var: float
    gain: Matrix  # of the oracle: its mean is centre + gain (chat - gamma*)
    centre: list[float]
    left: list[float]  # variances of the oracle's belief
    on_noisy: Matrix  # what is added to the total every round: start + on_noisy chat + on_context c
    on_context: Matrix
    start: list[float]
    arms: int
    sees_context: bool
    privileged: bool
    decompose: bool


class Streams(NamedTuple):
    """What the kernel reads; the last axis holds the trials unless said."""

    actions: Any  # (K d, trials)
    theta: Any  # (m, trials)
    bias: Any  # (d, trials)
    world: Any  # (rounds of the stride, 2d + 1, trials) the world's normals
    choices: Any  # (rounds of the stride, m, trials) the agent's
    schedule: Any  # (rounds of the stride, 2d + 2 d^2), no trials: offset, variances, gains on chat and total


class Belief(NamedTuple):
    """What a trial carries from round to round."""

    root: Any  # (m (m + 1) / 2, trials), by rows
    mean: Any  # (m, trials)
    total: Any  # (d, trials) sum of observations of the bias
    lost: Any  # (losses, trials)
    carry: Any  # (losses, trials) what rounding left out of it, by Kahan's summation


def dot(x: Vector, y: Vector) -> Any:
    """The inner product."""
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + a * b
    return total


def times(x: Vector, y: Vector) -> Vector:
    """Entry by entry."""
    return [a * b for a, b in zip(x, y, strict=True)]


def affine(start: Vector, matrix: Matrix, vector: Vector) -> Vector:
    """Start + matrix vector; entries that are the plain number zero cost nothing."""
    out = []
    for total, row in zip(start, matrix, strict=True):
        for entry, x in zip(row, vector, strict=True):
            if not (isinstance(entry, float) and entry == 0.0):
                total = total + entry * x
        out.append(total)
    return out


def condition(root: Matrix, mean: Vector, row: Vector, value: Any, variance: float) -> tuple[Matrix, Vector]:
    """Carlson's update on value = row'w + noise; row i of the lower triangular root has i + 1 entries."""
    m = len(mean)
    half = [dot([root[i][j] for i in range(j, m)], row[j:]) for j in range(m)]
    gain: Vector = [0.0] * m
    new: Matrix = [[None] * (i + 1) for i in range(m)]
    before = jnp.full_like(value, variance)
    for j in reversed(range(m)):
        after = before + half[j] * half[j]
        joint = jax.lax.rsqrt(before * after)
        shrink, push = before * joint, half[j] * joint
        for i in range(j, m):
            new[i][j] = root[i][j] * shrink - gain[i] * push
            gain[i] = gain[i] + root[i][j] * half[j]
        before = after
    step = (value - dot(row, mean)) / before
    return new, [old + g * step for old, g in zip(mean, gain, strict=True)]


def _round(k: Constants, streams: Streams, truth: Any, t: Any, belief: Belief) -> Belief:
    """One round of the trials of a program."""
    theta, bias = truth
    d, m = len(bias), len(theta)
    z = [streams.world[t, i, :] for i in range(2 * d + 1)]
    choice = [streams.choices[t, i, :] for i in range(m)]
    context = affine(k.mean, k.context_root, z[:d])
    noisy = affine([c + b for c, b in zip(context, bias, strict=True)], k.noise_root, z[d : 2 * d])
    clean = [x - b for x, b in zip(noisy, bias, strict=True)]
    row = [streams.schedule[t, i] for i in range(2 * d + 2 * d * d)]
    on_noisy, on_total = ([row[a + i * d : a + i * d + d] for i in range(d)] for a in (2 * d, 2 * d + d * d))
    own = affine(row[:d], on_noisy, clean if k.privileged else noisy)
    own = affine(own, on_total, belief.total)
    square = [v * v + left for v, left in zip(own, row[d : 2 * d], strict=True)]
    best = affine(k.centre, k.gain, clean)
    drawn = [mu + dot(line, choice[: len(line)]) for mu, line in zip(belief.mean, belief.root, strict=True)]
    views = [best, context, noisy, own] if k.decompose else [best]
    arm, scores, drawn_at_top = _arms(k, streams.actions, drawn, own, theta, views)
    seen = [*times(arm, arm), *times(context, context), *times(arm, context)]
    reward = dot(seen, theta) + k.reward_var**0.5 * z[2 * d]
    hidden = [*times(arm, arm), *square, *times(arm, own)]
    root, mean = condition(belief.root, belief.mean, seen if k.sees_context else hidden, reward, k.reward_var)
    added = affine(affine(k.start, k.on_noisy, noisy), k.on_context, context)
    total = [old + new for old, new in zip(belief.total, added, strict=True)]
    losses = _losses(k, theta[d : 2 * d], best, square, scores, drawn_at_top)
    return Belief(root, mean, total, *_add(belief, losses))


def _arms(k: Constants, actions: Any, drawn: Vector, own: Vector, theta: Vector, views: list[Vector]) -> Any:
    """The best action for the drawn theta; for every view of the context the best score and the chosen.

    And where there are several views, the score that the best arm of the first one has in the second.
    """
    d = len(own)
    tilt = times(own, drawn[2 * d :])
    slopes = [times(view, theta[2 * d :]) for view in views]
    low = jnp.full_like(tilt[0], -jnp.inf)

    def step(arm: Any, found: Any) -> Any:
        top, chosen, scores, beside = found
        action = [actions[arm * d + i, :] for i in range(d)]
        score = dot(action, [a * w + v for a, w, v in zip(action, drawn[:d], tilt, strict=True)])
        better = score > top
        bend = times(action, theta[:d])
        values = [dot(action, [b + s for b, s in zip(bend, slope, strict=True)]) for slope in slopes]
        now = [
            (jnp.maximum(most, value), jnp.where(better, value, picked))
            for value, (most, picked) in zip(values, scores, strict=True)
        ]
        kept = [jnp.where(better, a, c) for a, c in zip(action, chosen, strict=True)]
        if len(views) > 1:
            beside = jnp.where(values[0] > scores[0][0], values[1], beside)
        return jnp.where(better, score, top), kept, now, beside

    start = (low, [jnp.zeros_like(low)] * d, [(low, low)] * len(views), low)
    _, chosen, scores, beside = jax.lax.fori_loop(0, k.arms, step, start)
    return chosen, scores, beside


def _losses(k: Constants, middle: Vector, best: Vector, square: Vector, scores: Any, at_top: Any) -> Vector:
    """In the order of `regret.names`; the terms equal for all arms matter to EE1 and EE2 alone."""
    gaps = [most - picked for most, picked in scores]
    if not k.decompose:
        return gaps
    shared = dot([v * v + left - s for v, left, s in zip(best, k.left, square, strict=True)], middle)
    (top, picked), (own_top, own_picked) = scores[0], scores[3]
    realised, (*plain, learning) = at_top - scores[1][1], gaps
    return [*plain, realised, learning, top - own_top + shared, own_picked - picked - shared]


def _add(belief: Belief, losses: Vector) -> tuple[Vector, Vector]:
    """Kahan's summation: float32 totals of long runs stay exact to their last digits."""
    sums, left = [], []
    for old, carry, loss in zip(belief.lost, belief.carry, losses, strict=True):
        term = loss - carry
        new = old + term
        sums.append(new)
        left.append((new - old) - term)
    return sums, left


def _lines(ref: Any, count: int) -> Vector:
    return [ref[i, :] for i in range(count)]


def _kernel(k: Constants, m: int, d: int, rounds: Any, *refs: Any) -> None:
    """The trials of one program, in the rounds of a stride."""
    streams, before, after = Streams(*refs[:6]), Belief(*refs[6:11]), Belief(*refs[11:16])
    stored, losses = refs[16], 7 if k.decompose else 1
    flat = _lines(before.root, m * (m + 1) // 2)
    root = [[flat[i * (i + 1) // 2 + j] for j in range(i + 1)] for i in range(m)]
    start = Belief(
        root, _lines(before.mean, m), _lines(before.total, d), *(_lines(x, losses) for x in before[3:])
    )
    truth = _lines(streams.theta, m), _lines(streams.bias, d)

    def step(t: Any, belief: Belief) -> Belief:
        belief = _round(k, streams, truth, t, belief)
        for i, total in enumerate(belief.lost):
            stored[t, i, :] = total
        return belief

    end = jax.lax.fori_loop(0, rounds[0], step, start)
    end = end._replace(root=[entry for line in end.root for entry in line])
    for ref, lines in zip(after, end, strict=True):
        for i, line in enumerate(lines):
            ref[i, :] = line


def advance(k: Constants, rounds: Array, streams: Streams, belief: Belief, interpret: bool) -> Any:
    """Play the first rounds[0] rounds of a stride: the belief after them, and the totals after each.

    The shapes do not depend on how many rounds there are, so that one kernel serves every horizon.
    """
    stride, trials = streams.world.shape[0], streams.world.shape[2]
    totals = jax.ShapeDtypeStruct((stride, *belief.lost.shape), belief.lost.dtype)

    def spec(x: Any) -> Any:
        if x is rounds or x is streams.schedule:
            return pl.BlockSpec(x.shape, lambda _: (0,) * len(x.shape))
        return pl.BlockSpec((*x.shape[:-1], LANES), lambda i: (*[0] * (len(x.shape) - 1), i))

    given, out = [rounds, *streams, *belief], [*belief, totals]
    m, d = streams.theta.shape[0], streams.bias.shape[0]
    *after, stored = pl.pallas_call(
        lambda *refs: _kernel(k, m, d, *refs),
        grid=(trials // LANES,),
        in_specs=[spec(x) for x in given],
        out_specs=[spec(x) for x in out],
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in out],
        interpret=interpret,
        **({} if interpret else {"compiler_params": _compiler_parameters()}),
    )(*given)
    return Belief(*after), stored


def _compiler_parameters() -> Any:
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=LANES // 32, num_stages=1)
