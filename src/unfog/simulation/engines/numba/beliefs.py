"""What an agent believes of the contexts of a block of rounds, before the kernel plays any of them.

No denoiser that the kernel plays hears of rewards, so that all rounds can be denoised first: at once where
nothing is remembered from one round to the next, in a kernel of their own where observations of the bias are
tallied, and else one by one, by the round itself (agents/round.py).

Of the denoisers that tally: given how many rounds were seen, what `plugin` and `exact` believe of a context
is affine in the noisy context and in the tally's total, and the same for all trials. So the kernel is told of
them by numbers, which are read off the denoiser itself by showing it one thing at a time: no formula of
theirs is written a second time. Steps are a deviation long and start at the mean, so that little is lost to
rounding where contexts are far from zero.
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
from unfog.simulation.player import Player, offered
from unfog.worlds.problem import Emission, Truth


class Beliefs(NamedTuple):
    """What an agent believes of the contexts of a block: (trials, rounds, ...)."""

    context: Context
    shown: Array  # (trials, rounds, d)  the true context as it is learnt from; the mean where it is not shown


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


def ready(values: Array) -> Array:
    """In one piece, and not for reading alone: as kernels take arrays, so that one program serves all."""
    return np.require(values, dtype=np.float64, requirements=["C", "W"])


def beliefs(
    player: Player, emission: Emission, truth: Truth, number: int, first: int, total: Array
) -> Beliefs:
    """Denoise the first rounds of a block; the player, or the total, remembers what the channel showed."""
    denoiser: Any = player.agent.denoiser
    if emission.unit is None and tallies(player.agent):
        return _tallied(player, emission, first, total)
    if emission.unit is None and type(denoiser).update is Denoiser.update:
        return _at_once(player, emission, truth)
    return _one_by_one(player, emission, number, first)


def tallies(agent: Agent) -> bool:
    """Whether its denoiser tallies observations of the bias, in a way that the kernel knows."""
    return type(agent.denoiser) in (PlugIn, Exact)


def _tallied(player: Player, emission: Emission, first: int, total: Array) -> Beliefs:
    """Denoise in a kernel; the total (trials, d) is moved on in place."""
    agent, setup, known = player.agent, player.runner.setup, player.problem.knowledge()
    noisy = rounds.mask_lost(agent, setup, offered(emission, np.asarray(first)))
    told = gains(agent, setup, known, first, noisy.shape[1])
    limit = np.inf if agent.limit is None else float(agent.limit)
    reach = Reach(limit, ready(setup.context_mean), ready(setup.context_var))
    mean, shown, room = np.empty(noisy.shape), np.empty(noisy.shape), np.zeros((3, noisy.shape[-1]))
    follower(noisy.shape[-1])(told, reach, ready(noisy), ready(emission.context), total, mean, shown, room)
    return Beliefs(Context(mean, told.cov), shown if agent.sees_context else mean)


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
    if agent.can.expect is not None:
        expected, variance = agent.can.expect.expected(setup.denoiser, tally)
    empty: Any = denoiser.start(setup.denoiser)
    added = denoiser.update(setup.denoiser, empty, noisy, centre + other if agent.sees_context else None)
    parts = (np.broadcast_to(x, shape) for x in (belief.mean, expected, added.total))
    cov = np.broadcast_to(belief.cov, (rounds, 1, dim, dim))[:, 0]
    spread = np.broadcast_to(variance, (rounds, 1, dim))[:, 0]
    mean, readings, more = (_affine(x, steps) for x in parts)
    return Gains(mean, readings, more, np.array(cov), np.array(spread))


def _affine(probed: Array, steps: Array) -> Affine:
    """What goes through values (rounds, 2 d + 1, d) at the start, and one step off it in each direction."""
    slopes = ((probed[:, 1:] - probed[:, :1]) / np.concat([steps, steps])[:, None]).swapaxes(1, 2)
    parts = probed[:, 0], slopes[..., : len(steps)], slopes[..., len(steps) :]
    return Affine(*(np.array(x) for x in parts))


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
    """The program for so many coordinates, as `program` of numba/kernel.py."""

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


def _at_once(player: Player, emission: Emission, truth: Truth) -> Beliefs:
    """Denoise all rounds at once, as if they were trials."""
    if emission.bias is None and player.agent.can.see_bias is not None:
        emission = emission._replace(bias=truth.bias[:, None])
    context = player.runner.denoise("", offered(emission, np.asarray(0)), player.features).context
    *_, d = context.mean.shape
    cov = context.cov if context.cov.ndim > 2 else context.cov[None]
    shape = (*cov.shape[:-3], context.mean.shape[1], d, d)
    return Beliefs(Context(context.mean, np.broadcast_to(cov, shape)), context.mean)


def _one_by_one(player: Player, emission: Emission, number: int, first: int) -> Beliefs:
    made: Any = [None if x is None else np.ascontiguousarray(x.swapaxes(0, 1)) for x in emission[:-1]]
    contexts, shown = [], []
    for t in range(number):
        now: Any = [None if x is None else x[t] for x in made]
        offer = offered(Emission(*now), np.asarray(first + t))
        found = player.runner.denoise("", offer, player.features)
        player.runner.observe("", found)
        contexts.append(found.context)
        shown.append(_shown(player, found, now[0]) if player.agent.sees_context else found.context.mean)
    left = emission.context.shape[1] - number
    return Beliefs(stacked(contexts + contexts[-1:] * left), np.stack(shown + shown[-1:] * left, 1))


def _shown(player: Player, found: Denoised, context: Array) -> Array:
    """The true context, within reach, once the channel has learnt from it: no arm matters to that."""
    reading, anyone = found.reading, np.zeros(len(context), dtype=int)
    theta = player.runner.theta()
    evidence = Evidence(player.features, player.features.at(context), theta, anyone)
    decision = Decision(anyone, found.context, evidence, reading.noisy, reading.unit, reading.far)
    decision = player.runner.reveal("", decision, context)
    if decision.known is None:
        raise ValueError(f"{player.agent.name}: a true context was shown, and is not known")
    return decision.known
