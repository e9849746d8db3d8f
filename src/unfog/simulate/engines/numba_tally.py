"""Denoisers that tally observations of the bias, in a kernel: what they believe of a block of contexts.

Given how many rounds were seen, what `plugin` and `exact` believe of a context is affine in the noisy context and
in the tally's total, and the same for all trials. So they are told by numbers, which are read off the denoiser
itself by showing it one thing at a time: no formula of theirs is written a second time. Steps are a deviation
long and start at the mean, so that little is lost to rounding where contexts are far from zero.
"""

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.assemble import Agent
from unfog.agents.denoise import Exact, PlugIn
from unfog.agents.denoise.bias import Tally
from unfog.agents.round import Setup
from unfog.maths.arrays import Array
from unfog.model.knowledge import Knowledge
from unfog.simulate.engines.numba_jit import compiled


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
    return Affine(*map(np.ascontiguousarray, parts))


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
    return Gains(*(_affine(x, steps) for x in parts), *map(np.ascontiguousarray, (cov, spread)))


@compiled
def follow(
    gains: Gains, reach: Reach, noisy: Array, context: Array, total: Array, mean: Array, shown: Array,
    seen: Array,
) -> None:  # fmt: skip
    """Walk every trial through the block: the means of contexts, true ones within reach, and the new totals.

    `seen` is room for a noisy context and a true one, (2, d).
    """
    limit, centre, (trials, rounds, dim) = reach.limit, reach.centre, noisy.shape
    for i in range(trials):
        for t in range(rounds):
            for k in range(dim):
                away = noisy[i, t, k] - centre[k]
                if limit < inf:
                    expected = gains.expected.at[t, k] - centre[k]
                    for j in range(dim):
                        expected += gains.expected.on_other[t, k, j] * total[i, j]
                    far = limit * sqrt(gains.variance[t, k])
                    away = min(max(away, expected - far), expected + far)
                seen[0, k] = away
                away, far = context[i, t, k] - centre[k], limit * sqrt(reach.variance[k])
                seen[1, k] = min(max(away, -far), far)
                shown[i, t, k] = centre[k] + seen[1, k]
            for k in range(dim):
                value = gains.mean.at[t, k]
                for j in range(dim):
                    value += gains.mean.on_noisy[t, k, j] * seen[0, j]
                    value += gains.mean.on_other[t, k, j] * total[i, j]
                mean[i, t, k] = value
            for k in range(dim):
                value = gains.added.at[t, k]
                for j in range(dim):
                    value += gains.added.on_noisy[t, k, j] * seen[0, j]
                    value += gains.added.on_other[t, k, j] * seen[1, j]
                total[i, k] += value
