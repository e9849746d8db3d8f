"""The round loop in NumPy: a batch of trials side by side, one agent after the other on the same world.

A block of rounds is made at once (contexts, measurements, the mean reward of every arm), each agent walks
through it round by round, and its losses are read off its trace afterwards, again for the whole block. Blocks
always have the same length, so the bits of a result do not depend on how trials were batched.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents import agent as agents
from unfog.agents.agent import Agent
from unfog.agents.denoise import known_bias
from unfog.agents.parts import Privilege
from unfog.arrays import Array, Ints, pick
from unfog.features import Context
from unfog.simulate.job import MOMENTS, Job, Part, Tick
from unfog.simulate.tape import RoundTape, truth_draws
from unfog.theory import regret
from unfog.world.problem import Emission, Problem, Truth

BLOCK = 128  # rounds


class _Block(NamedTuple):
    """A stretch of rounds, as nature made it: (trials, rounds, ...)."""

    emission: Emission
    normals: Array
    tables: regret.Tables


class _Player:
    """One agent in the middle of its run."""

    def __init__(self, agent: Agent, problem: Problem, truth: Truth, tape: RoundTape) -> None:
        privilege = Privilege(truth.bias) if agent.privileged else None
        self.agent, self.tape = agent, tape
        self.setup, self.memory = agents.begin(agent, problem.knowledge(), privilege)

    def play(self, problem: Problem, truth: Truth, block: _Block, rounds: int) -> tuple[Ints, Context]:
        """Walk through the block: the arms (trials, BLOCK) and the beliefs about the contexts.

        Where the horizon cuts the block short, its last round is repeated, so that shapes stay the same.
        """
        agent, features = self.agent, truth.features
        noisy, contexts, draws, normals = map(
            _by_round, (*block.emission[::-1], self.tape.next(BLOCK), block.normals)
        )
        arms, beliefs = [], []
        for t in range(rounds):
            decision = agents.decide(agent, self.setup, self.memory, features, noisy[t], draws[t])
            expected = pick(block.tables.true_context[:, t], decision.arm)
            reward = problem.reward(expected, normals[t])
            revealed = contexts[t] if agent.reveals else None
            self.memory = agents.learn(
                agent, self.setup, self.memory, features, decision, noisy[t], reward, revealed
            )
            arms.append(decision.arm)
            beliefs.append(decision.context)
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
    problem, known = job.problem, job.problem.knowledge()
    truth = problem.truth(truth_draws(job.seed, trials, problem.truth_draws()))
    world = RoundTape(job.seed, trials, "rounds", problem.round_normals())
    players = [
        _Player(a, problem, truth, RoundTape(job.seed, trials, "agent", a.chooser.normals(known)))
        for a in job.agents
    ]
    meter = _Meter(job, len(trials))
    for first in range(0, job.rounds, BLOCK):
        rounds = min(BLOCK, job.rounds - first)
        block = _make_block(job, truth, world.next(BLOCK))
        for index, player in enumerate(players):
            arms, beliefs = player.play(problem, truth, block, rounds)
            losses = _losses(truth, block, arms, beliefs, job.decompose)
            meter.add(index, first, {name: loss[:, :rounds] for name, loss in losses.items()})
            tick(rounds * len(trials))
    return meter.values


def _make_block(job: Job, truth: Truth, normals: Array) -> _Block:
    """Everything of a block that does not depend on the agents."""
    shrinkage = known_bias.shrinkage(job.problem.knowledge())
    wide = _over_rounds(truth)
    emission = job.problem.emit(wide, normals)
    best = regret.oracle_context(shrinkage, emission.noisy, wide.bias)
    tables = regret.tables(wide.features, wide.theta, best, *emission, job.decompose)
    return _Block(emission, normals, tables)


def _over_rounds(truth: Truth) -> Truth:
    return Truth(truth.theta[:, None], truth.bias[:, None], truth.features.over_rounds())


def _losses(truth: Truth, block: _Block, arms: Ints, beliefs: Context, decompose: bool) -> dict[str, Array]:
    losses = regret.losses(block.tables, arms)
    if not decompose:
        return {name: losses[name] for name in regret.names(decompose)}
    wide = _over_rounds(truth)
    return losses | regret.split(block.tables, arms, wide.features.design(beliefs), wide.theta)


class _Meter:
    """Adds losses up and keeps the totals, and their moments over trials, at the wanted rounds."""

    def __init__(self, job: Job, trials: int) -> None:
        self._grid, self._curve = job.grid, job.curve
        names, players = regret.names(job.decompose), len(job.agents)
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
