"""What an agent believes of the contexts of a block of rounds, before it plays any of them.

No denoiser that the kernel plays hears of rewards, so that all rounds can be denoised first: at once where
nothing is remembered from one to the next, in a kernel where a tally is (`numba_tally`), else one by one, by
the round itself (agents/round.py).
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.base import Denoiser, Evidence
from unfog.agents.round import Decision, Denoised
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.simulate.engines.numba_tally import Reach, follower, gains, tallies
from unfog.simulate.engines.numpy import stacked
from unfog.simulate.player import Player, offered
from unfog.worlds.problem import Emission, Truth


class Beliefs(NamedTuple):
    """Of a block: (trials, rounds, ...)."""

    context: Context
    shown: Array  # (trials, rounds, d)  the true context as it is learnt from; the mean where it is not shown


def ready(values: Array) -> Array:
    """In one piece, and not for reading alone: as kernels take arrays, so that one program serves all."""
    return np.require(values, dtype=np.float64, requirements=["C", "W"])


def beliefs(
    player: Player, emission: Emission, truth: Truth, number: int, first: int, total: Array
) -> Beliefs:
    """Of the first so many rounds of a block; the player, or the total, remembers what the channel showed."""
    denoiser: Any = player.agent.denoiser
    if emission.unit is None and tallies(player.agent):
        return _tallied(player, emission, first, total)
    if emission.unit is None and type(denoiser).update is Denoiser.update:
        return _at_once(player, emission, truth)
    return _one_by_one(player, emission, number, first)


def _tallied(player: Player, emission: Emission, first: int, total: Array) -> Beliefs:
    """By the kernel; the total (trials, d) is moved on in place."""
    agent, setup, known = player.agent, player.setup, player.problem.knowledge()
    noisy = rounds.mask_lost(agent, setup, offered(emission, np.asarray(first)))
    told = gains(agent, setup, known, first, noisy.shape[1])
    limit = np.inf if agent.limit is None else float(agent.limit)
    reach = Reach(limit, ready(setup.context_mean), ready(setup.context_var))
    mean, shown, room = np.empty(noisy.shape), np.empty(noisy.shape), np.zeros((3, noisy.shape[-1]))
    follower(noisy.shape[-1])(told, reach, ready(noisy), ready(emission.context), total, mean, shown, room)
    return Beliefs(Context(mean, told.cov), shown if agent.sees_context else mean)


def _at_once(player: Player, emission: Emission, truth: Truth) -> Beliefs:
    """All rounds as if they were trials."""
    if emission.bias is None and player.agent.privileged is not None:
        emission = emission._replace(bias=truth.bias[:, None])
    told = player.agent, player.setup, player.memory, player.features
    context = rounds.denoise(*told, offered(emission, np.asarray(0))).context
    *_, d = context.mean.shape
    cov = context.cov if context.cov.ndim > 2 else context.cov[None]
    shape = (*cov.shape[:-3], context.mean.shape[1], d, d)
    return Beliefs(Context(context.mean, np.broadcast_to(cov, shape)), context.mean)


def _one_by_one(player: Player, emission: Emission, number: int, first: int) -> Beliefs:
    agent, setup, features = player.agent, player.setup, player.features
    made: Any = [None if x is None else np.ascontiguousarray(x.swapaxes(0, 1)) for x in emission[:-1]]
    contexts, shown = [], []
    for t in range(number):
        now: Any = [None if x is None else x[t] for x in made]
        offer = offered(Emission(*now), np.asarray(first + t))
        found = rounds.denoise(agent, setup, player.memory, features, offer)
        player.memory = rounds.observed(agent, setup, player.memory, found.reading)
        contexts.append(found.context)
        shown.append(_shown(player, found, now[0]) if agent.sees_context else found.context.mean)
    left = emission.context.shape[1] - number
    return Beliefs(stacked(contexts + contexts[-1:] * left), np.stack(shown + shown[-1:] * left, 1))


def _shown(player: Player, found: Denoised, context: Array) -> Array:
    """The true context, within reach, once the channel has learnt from it: no arm matters to that."""
    reading, anyone = found.reading, np.zeros(len(context), dtype=int)
    belief: Any = None
    evidence = Evidence(player.features, player.features.at(context), belief, anyone)
    decision = Decision(anyone, found.context, evidence, reading.noisy, reading.unit, reading.far)
    player.memory, decision = rounds.reveal(player.agent, player.setup, player.memory, decision, context)
    if decision.known is None:
        raise ValueError(f"{player.agent.name}: a true context was shown, and is not known")
    return decision.known
