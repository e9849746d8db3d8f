"""Denoisers that tally observations of the bias, in a kernel: what they believe of a block of contexts.

Given how many rounds were seen, what `plugin` and `exact` believe of a context is affine in the noisy context
and in the tally's total, and the same for all trials. So they are told by numbers, which are read off the
denoiser itself by showing it one thing at a time: no formula of theirs is written a second time. Steps are a
deviation long and start at the mean, so that little is lost to rounding where contexts are far from zero.
"""

from collections.abc import Callable
from functools import lru_cache
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.denoise import Exact, PlugIn
from unfog.agents.denoise.bias import Tally
from unfog.agents.round import Setup
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_jit import compiled, inlined


class Affine(NamedTuple):
    """value = at + on_noisy (chat - mu_c) + on_other other, in every round of a block."""

    at: Array  # (rounds, d)
    on_noisy: Array  # (rounds, d, d)
    on_other: Array  # (rounds, d, d)


class Gains(NamedTuple):
    """A denoiser in numbers."""

    mean: Affine  # of the context; the other is the total
    expected: Affine  # of the noisy context; likewise
    added: Affine  # to the total, in every round alike: the other is the true context less mu_c
    cov: Array  # (rounds, d, d)  of the context
    variance: Array  # (rounds, d)  of the noisy context


class Reach(NamedTuple):
    """What is brought within reach, and of what."""

    limit: float  # infinite: nothing is
    centre: Array  # (d,)  mu_c
    variance: Array  # (d,)  of a true context


def tallies(agent: Agent) -> bool:
    """Whether its denoiser is one of these."""
    return type(agent.denoiser) in (PlugIn, Exact)


def _affine(probed: Array, steps: Array) -> Affine:
    """From values (rounds, 2 d + 1, d) at the start, and one step off it in each direction."""
    slopes = ((probed[:, 1:] - probed[:, :1]) / np.concat([steps, steps])[:, None]).swapaxes(1, 2)
    parts = probed[:, 0], slopes[..., : len(steps)], slopes[..., len(steps) :]
    return Affine(*(np.array(x) for x in parts))


def gains(agent: Agent, setup: Setup, known: Knowledge, first: int, rounds: int) -> Gains:
    """What the denoiser does in these rounds."""
    denoiser, steps = agent.denoiser, np.sqrt(np.diagonal(known.context_cov + known.noise_cov))
    dim, centre = len(steps), known.context_mean
    unit = np.eye(2 * dim + 1, 2 * dim, k=-1) * np.concat([steps, steps])
    noisy, other = centre + unit[:, :dim], unit[:, dim:]
    tally: Any = Tally(first + np.arange(float(rounds))[:, None], other)
    belief = denoiser.predict(setup.denoiser, tally, noisy)
    shape = rounds, 2 * dim + 1, dim
    expected, variance = np.zeros(shape), np.ones((rounds, 1, dim))
    if agent.expects is not None:
        expected, variance = agent.expects.expected(setup.denoiser, tally)
    empty: Any = denoiser.start(setup.denoiser)
    added = denoiser.update(setup.denoiser, empty, noisy, centre + other if agent.sees_context else None)
    parts = (np.broadcast_to(x, shape) for x in (belief.mean, expected, added.total))
    cov = np.broadcast_to(belief.cov, (rounds, 1, dim, dim))[:, 0]
    spread = np.broadcast_to(variance, (rounds, 1, dim))[:, 0]
    mean, readings, more = (_affine(x, steps) for x in parts)
    return Gains(mean, readings, more, np.array(cov), np.array(spread))


@inlined
def _value(dim: int, affine: Affine, t: int, k: int, noisy: Array, other: Array) -> float:
    """A coordinate of what is affine in a noisy context and another."""
    value = affine.at[t, k]
    for j in range(dim):
        value += affine.on_noisy[t, k, j] * noisy[j] + affine.on_other[t, k, j] * other[j]
    return value


@inlined
def _within(away: float, expected: float, reach: float) -> float:
    """What is too far from what was expected, brought within reach: agents/round.py."""
    return min(max(away, expected - reach), expected + reach)


@inlined
def _step(
    dim: int, gains: Gains, reach: Reach, noisy: Array, context: Array, mean: Array, shown: Array, i: int,
    t: int, seen: Array, true: Array, total: Array,
) -> None:  # fmt: skip
    """A round of a trial: bring within reach, denoise, and add to the total."""
    limit, centre = reach.limit, reach.centre
    for k in range(dim):
        true[k], seen[k] = context[i, t, k] - centre[k], noisy[i, t, k] - centre[k]
    if limit < inf:
        for k in range(dim):
            true[k] = _within(true[k], 0.0, limit * sqrt(reach.variance[k]))
            expected = _value(dim, gains.expected, t, k, total, total) - centre[k]
            seen[k] = _within(seen[k], expected, limit * sqrt(gains.variance[t, k]))
    for k in range(dim):
        shown[i, t, k] = centre[k] + true[k]
        mean[i, t, k] = _value(dim, gains.mean, t, k, seen, total)
    for k in range(dim):
        total[k] += _value(dim, gains.added, t, k, seen, true)


@lru_cache
def follower(dim: int) -> Callable[..., None]:
    """The program for so many coordinates, as numba_kernel.py `program`."""

    def follow(
        gains: Gains, reach: Reach, noisy: Array, context: Array, totals: Array, mean: Array, shown: Array,
        room: Array,
    ) -> None:  # fmt: skip
        """Walk every trial through the block: means of contexts, true ones within reach, and the new totals.

        The room is for a noisy context and a true one less mu_c, and a total, (3, d). Nothing is expected by
        the noisy context itself: its slope is zero there.
        """
        seen, true, total = room[0], room[1], room[2]
        for i in range(noisy.shape[0]):
            for k in range(dim):
                total[k] = totals[i, k]
            for t in range(noisy.shape[1]):
                _step(dim, gains, reach, noisy, context, mean, shown, i, t, seen, true, total)
            for k in range(dim):
                totals[i, k] = total[k]

    found: Any = compiled(follow)
    return found
