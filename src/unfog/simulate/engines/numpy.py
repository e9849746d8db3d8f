"""The round loop in NumPy: a batch of trials side by side, one agent after the other on the same world.

A block of rounds is made at once (contexts, measurements, the mean reward of every arm), each agent walks
through it round by round, and its losses are read off its trace afterwards, again for the whole block. Blocks
always have the same length, so the bits of a result do not depend on how trials were batched.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.features import Context
from unfog.inputs import LARGEST
from unfog.maths.arrays import Array, Ints, pick
from unfog.model.shrinkage import as_told
from unfog.simulate.draws import RoundTape, truth_draws
from unfog.simulate.job import MOMENTS, Job, Part, Tick, refuse_nonsense
from unfog.simulate.player import Player, offered, shown
from unfog.theory import regret
from unfog.worlds.problem import Emission, Problem, Truth

BLOCK = 128  # rounds


class _Block(NamedTuple):
    """A stretch of rounds, as nature made it: (trials, rounds, ...)."""

    emission: Emission
    normals: Array
    tables: regret.Tables


def _play(player: Player, problem: Problem, block: _Block, rounds: int) -> tuple[Ints, Context]:
    """Walk through the block: the arms (trials, BLOCK) and the beliefs about the contexts.

    Where the horizon cuts the block short, its last round is repeated, so that shapes stay the same.
    """
    made: Any = [None if x is None else _by_round(x) for x in block.emission[:-1]]
    draws, normals = _by_round(player.tape.next(BLOCK)), _by_round(block.normals)
    arms, beliefs = [], []
    for t in range(rounds):
        now: Any = [None if x is None else x[t] for x in made]
        emission = Emission(*now)

        def pay(arm: Ints, t: int = t) -> Array:
            return problem.reward(pick(block.tables.true_context[:, t], arm), normals[t])

        decision = player.round(offered(emission), draws[t], pay)
        player.reveal(decision, shown(emission), problem.late)
        arms.append(decision.arm)
        beliefs.append(decision.context)
    refuse_nonsense(player.agent.name, bool((np.abs(player.belief().mean) <= LARGEST).all()))
    last = BLOCK - rounds
    return np.stack(arms + arms[-1:] * last, 1), _stack(beliefs + beliefs[-1:] * last)


def _by_round(values: Array) -> Array:
    return np.ascontiguousarray(values.swapaxes(0, 1))


def _stack(beliefs: Sequence[Context]) -> Context:
    """Beliefs round by round to (trials, rounds, ...); covariances shared by all trials stay shared."""
    cov = np.stack([belief.cov for belief in beliefs], -3)
    return Context(np.stack([belief.mean for belief in beliefs], -2), cov)


def run_trials(job: Job, trials: Sequence[int], tick: Tick) -> Part:
    """Cumulative losses of these trials at the rounds of the job's grid."""
    problem = job.problem
    truth = problem.truth(truth_draws(job.seed, trials, problem.truth_draws()))
    world = RoundTape(job.seed, trials, "rounds", problem.round_normals())
    players = [Player(agent, problem.knowledge(), truth, job.seed, trials) for agent in job.agents]
    meter = _Meter(job, len(trials))
    for first in range(0, job.rounds, BLOCK):
        rounds = min(BLOCK, job.rounds - first)
        block = _make_block(job, truth, world.next(BLOCK), first + np.arange(BLOCK))
        for index, player in enumerate(players):
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused afterwards
                arms, beliefs = _play(player, problem, block, rounds)
            losses = _losses(job, truth, block, arms, beliefs)
            meter.add(index, first, {name: loss[:, :rounds] for name, loss in losses.items()})
            tick(rounds * len(trials))
    return meter.values


def _make_block(job: Job, truth: Truth, normals: Array, numbers: Ints) -> _Block:
    """Everything of a block that does not depend on the agents."""
    shrinkage = as_told(job.problem.knowledge())
    wide = _over_rounds(truth)
    emission = job.problem.emit(wide, normals, numbers)
    best = regret.best_context(shrinkage, emission, wide.bias, job.problem.has_bias)
    tables = regret.tables(
        job.problem.rewards,
        wide.features,
        wide.theta,
        best,
        emission.context,
        emission.noisy,
        job.decompose,
    )
    return _Block(emission, normals, tables)


def _over_rounds(truth: Truth) -> Truth:
    first = None if truth.first is None else truth.first[:, None]
    # The path of a bias that drifts has an axis for rounds already.
    return Truth(truth.theta[:, None], truth.bias[:, None], truth.features.over_rounds(), first, truth.path)


def _losses(job: Job, truth: Truth, block: _Block, arms: Ints, beliefs: Context) -> dict[str, Array]:
    wide = _over_rounds(truth)
    own = wide.features.design(beliefs) if job.decompose else None
    return regret.losses(job.problem.rewards, block.tables, arms, own, wide.theta)


class _Meter:
    """Adds losses up and keeps the totals, and their moments over trials, at the wanted rounds."""

    def __init__(self, job: Job, trials: int) -> None:
        self._grid, self._curve = job.grid, job.curve
        names, players = job.losses, len(job.agents)
        self.values: Part = {name: np.empty((players, trials, len(job.grid))) for name in names}
        self._totals = {name: np.zeros((players, trials)) for name in names}
        if len(job.curve):
            self.values |= {MOMENTS + name: np.empty((players, len(job.curve), 2)) for name in names}

    def add(self, player: int, first: int, losses: dict[str, Array]) -> None:
        """Take in the losses (trials, rounds) of one player from round `first` on."""
        for name, loss in losses.items():
            running = self._totals[name][player][:, None] + np.cumsum(loss, 1)
            self._totals[name][player] = running[:, -1]
            here, at = _within(self._grid, first, loss.shape[1])
            self.values[name][player, :, here] = running[:, at]
            here, at = _within(self._curve, first, loss.shape[1])
            if len(at):
                spread = np.var(running[:, at], axis=0) * len(running)
                self.values[MOMENTS + name][player, here] = np.stack([running[:, at].mean(0), spread], -1)


def _within(points: Ints, first: int, rounds: int) -> tuple[slice, Ints]:
    """Which of the wanted rounds fall into a block, and where in it."""
    low, high = np.searchsorted(points, [first, first + rounds], side="right")
    return slice(low, high), points[low:high] - first - 1
