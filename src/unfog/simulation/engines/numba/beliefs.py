"""An agent's beliefs about the contexts of a block of rounds, before the kernel plays any of them.

Denoisers that the kernel supports do not use rewards, so that all rounds can be denoised first: together if
nothing is remembered from one round to the next, in a kernel of their own if observations of the bias are
tallied, and otherwise one by one, by the round itself (agents/round.py).

For the denoisers that tally, `plugin` and `exact`, the belief about a context is affine in the noisy context
and in the tally's total, with coefficients that depend on the number of rounds seen and are the same for all
trials. They are found by applying the denoiser itself to one change at a time, so that no formula is written
a second time. Changes are a standard deviation and start at the mean, so that little is lost to rounding if
contexts are far from zero.
"""

from collections.abc import Callable
from functools import lru_cache
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, Evidence
from unfog.agents.denoise import Exact, PlugIn
from unfog.agents.denoise.bias import Tally
from unfog.agents.round import Decision, Denoised, Setup
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.simulation.engines.numba.compile import compiled, inlined
from unfog.simulation.engines.numpy import stacked
from unfog.simulation.player import Player, make_observation
from unfog.worlds.problem import Emission, Truth


class Beliefs(NamedTuple):
    """An agent's beliefs about the contexts of a block: (trials, rounds, ...)."""

    context: Context
    revealed: Array  # (trials, rounds, d)  the true context that the agent learns from; the mean if unknown


class Affine(NamedTuple):
    """value = at + on_noisy (chat - mu_c) + on_other other, in every round of a block."""

    at: Array  # (rounds, d)
    on_noisy: Array  # (rounds, d, d)
    on_other: Array  # (rounds, d, d)


class Gains(NamedTuple):
    """A denoiser as affine maps."""

    mean: Affine  # of the context; the other is the total
    expected: Affine  # of the noisy context; likewise
    added: Affine  # to the total, in every round alike: the other is the true context less mu_c
    cov: Array  # (rounds, d, d)  of the context
    variance: Array  # (rounds, d)  of the noisy context


class Reach(NamedTuple):
    """How outliers are clipped."""

    limit: float  # in standard deviations; infinite: no clipping
    centre: Array  # (d,)  mu_c
    variance: Array  # (d,)  of a true context


def ready(values: Array) -> Array:
    """Make an array contiguous and writable, as kernels need it, so that one program serves all."""
    return np.require(values, dtype=np.float64, requirements=["C", "W"])


def beliefs(
    player: Player, emission: Emission, truth: Truth, number: int, first: int, total: Array
) -> Beliefs:
    """Denoise the first rounds of a block; the player or the total remembers the observations of the bias."""
    denoiser: Any = player.agent.denoiser
    if emission.unit is None and can_tally(player.agent):
        return _denoise_tallied(player, emission, first, total)
    if emission.unit is None and type(denoiser).update is Denoiser.update:
        return _denoise_together(player, emission, truth)
    return _denoise_in_turn(player, emission, number, first)


def can_tally(agent: Agent) -> bool:
    """Whether its denoiser tallies observations of the bias in a way that the kernel supports."""
    return type(agent.denoiser) in (PlugIn, Exact)


def _denoise_tallied(player: Player, emission: Emission, first: int, total: Array) -> Beliefs:
    """Denoise in a kernel, which updates the total (trials, d) in place."""
    agent, setup, known = player.agent, player.runner.setup, player.problem.knowledge()
    noisy = rounds.mask_lost(agent, setup, make_observation(emission, np.asarray(first)))
    numbers = gains(agent, setup, known, first, noisy.shape[1])
    limit = np.inf if agent.clip_sd is None else float(agent.clip_sd)
    reach = Reach(limit, ready(setup.context_mean), ready(setup.context_var))
    mean, true, buffer = np.empty(noisy.shape), np.empty(noisy.shape), np.zeros((3, noisy.shape[-1]))
    follower(noisy.shape[-1])(
        numbers, reach, ready(noisy), ready(emission.context), total, mean, true, buffer
    )
    return Beliefs(Context(mean, numbers.cov), true if agent.sees_context else mean)


def gains(agent: Agent, setup: Setup, known: Knowledge, first: int, rounds: int) -> Gains:
    """The denoiser's affine maps in these rounds."""
    denoiser, steps = agent.denoiser, np.sqrt(np.diagonal(known.context_cov + known.noise_cov))
    dim, centre = len(steps), known.context_mean
    unit = np.eye(2 * dim + 1, 2 * dim, k=-1) * np.concat([steps, steps])
    noisy, other = centre + unit[:, :dim], unit[:, dim:]
    tally: Any = Tally(first + np.arange(float(rounds))[:, None], other)
    belief = denoiser.predict(setup.denoiser, tally, noisy)
    shape = rounds, 2 * dim + 1, dim
    expected, variance = np.zeros(shape), np.ones((rounds, 1, dim))
    if agent.can.predict_reading is not None:
        expected, variance = agent.can.predict_reading.predict_reading(setup.denoiser, tally)
    empty: Any = denoiser.start(setup.denoiser)
    added = denoiser.update(setup.denoiser, empty, noisy, centre + other if agent.sees_context else None)
    parts = (np.broadcast_to(x, shape) for x in (belief.mean, expected, added.total))
    cov = np.broadcast_to(belief.cov, (rounds, 1, dim, dim))[:, 0]
    spread = np.broadcast_to(variance, (rounds, 1, dim))[:, 0]
    mean, readings, more = (_fit_affine(x, steps) for x in parts)
    return Gains(mean, readings, more, np.array(cov), np.array(spread))


def _fit_affine(probed: Array, steps: Array) -> Affine:
    """The affine map through values (rounds, 2 d + 1, d) at the start, and one step off in each direction."""
    slopes = ((probed[:, 1:] - probed[:, :1]) / np.concat([steps, steps])[:, None]).swapaxes(1, 2)
    parts = probed[:, 0], slopes[..., : len(steps)], slopes[..., len(steps) :]
    return Affine(*(np.array(x) for x in parts))


@inlined
def _evaluate(dim: int, affine: Affine, t: int, k: int, noisy: Array, other: Array) -> float:
    """A coordinate of an affine map of a noisy context and another vector."""
    value = affine.at[t, k]
    for j in range(dim):
        value += affine.on_noisy[t, k, j] * noisy[j] + affine.on_other[t, k, j] * other[j]
    return value


@inlined
def _clip(away: float, expected: float, reach: float) -> float:
    """Clip a value that is too far from its expectation: agents/round.py."""
    return min(max(away, expected - reach), expected + reach)


@inlined
def _follow_round(
    dim: int, gains: Gains, reach: Reach, noisy: Array, context: Array, mean: Array, revealed: Array, i: int,
    t: int, seen: Array, true: Array, total: Array,
) -> None:  # fmt: skip
    """Play a round of a trial: clip, denoise, and add to the total."""
    limit, centre = reach.limit, reach.centre
    for k in range(dim):
        true[k], seen[k] = context[i, t, k] - centre[k], noisy[i, t, k] - centre[k]
    if limit < inf:
        for k in range(dim):
            true[k] = _clip(true[k], 0.0, limit * sqrt(reach.variance[k]))
            expected = _evaluate(dim, gains.expected, t, k, total, total) - centre[k]
            seen[k] = _clip(seen[k], expected, limit * sqrt(gains.variance[t, k]))
    for k in range(dim):
        revealed[i, t, k] = centre[k] + true[k]
        mean[i, t, k] = _evaluate(dim, gains.mean, t, k, seen, total)
    for k in range(dim):
        total[k] += _evaluate(dim, gains.added, t, k, seen, true)


@lru_cache
def follower(dim: int) -> Callable[..., None]:
    """The program for so many coordinates, like `program` of numba/kernel.py."""

    def follow(
        gains: Gains, reach: Reach, noisy: Array, context: Array, totals: Array, mean: Array, revealed: Array,
        buffer: Array,
    ) -> None:  # fmt: skip
        """Play the block for every trial: means of contexts, clipped true ones, and the new totals.

        The buffer is for a noisy context and a true one less mu_c, and a total, (3, d). The expectation of a
        noisy context does not depend on that context: its slope is zero there.
        """
        seen, true, total = buffer[0], buffer[1], buffer[2]
        for i in range(noisy.shape[0]):
            for k in range(dim):
                total[k] = totals[i, k]
            for t in range(noisy.shape[1]):
                _follow_round(dim, gains, reach, noisy, context, mean, revealed, i, t, seen, true, total)
            for k in range(dim):
                totals[i, k] = total[k]

    kernel: Any = compiled(follow)
    return kernel


def _denoise_together(player: Player, emission: Emission, truth: Truth) -> Beliefs:
    """Denoise all rounds together, as if they were trials."""
    if emission.bias is None and player.agent.can.see_bias is not None:
        emission = emission._replace(bias=truth.bias[:, None])
    context = player.runner.denoise("", make_observation(emission, np.asarray(0)), player.features).context
    *_, d = context.mean.shape
    cov = context.cov if context.cov.ndim > 2 else context.cov[None]
    shape = (*cov.shape[:-3], context.mean.shape[1], d, d)
    return Beliefs(Context(context.mean, np.broadcast_to(cov, shape)), context.mean)


def _denoise_in_turn(player: Player, emission: Emission, number: int, first: int) -> Beliefs:
    by_round: Any = [None if x is None else np.ascontiguousarray(x.swapaxes(0, 1)) for x in emission[:-1]]
    contexts, true = [], []
    for t in range(number):
        fields: Any = [None if x is None else x[t] for x in by_round]
        observation = make_observation(Emission(*fields), np.asarray(first + t))
        denoised = player.runner.denoise("", observation, player.features)
        player.runner.observe("", denoised)
        contexts.append(denoised.context)
        true.append(
            _reveal(player, denoised, fields[0]) if player.agent.sees_context else denoised.context.mean
        )
    padding = emission.context.shape[1] - number
    return Beliefs(stacked(contexts + contexts[-1:] * padding), np.stack(true + true[-1:] * padding, 1))


def _reveal(player: Player, denoised: Denoised, context: Array) -> Array:
    """Let the denoiser learn from the true context, and return it clipped; any arm will do."""
    reading, anyone = denoised.reading, np.zeros(len(context), dtype=int)
    theta = player.runner.theta()
    evidence = Evidence(player.features, player.features.at(context), theta, anyone)
    decision = Decision(anyone, denoised.context, evidence, reading.noisy, reading.unit, reading.clipped)
    decision = player.runner.reveal("", decision, context)
    if decision.known is None:
        raise ValueError(f"{player.agent.name}: a true context was shown, and is not known")
    return decision.known
