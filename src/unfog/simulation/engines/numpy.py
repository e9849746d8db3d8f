"""The NumPy engine: a batch of trials side by side, one agent after the other on the same world.

A block of rounds is generated at once, for all trials (contexts, measurements, the mean reward of every arm);
each agent plays it round by round, and its losses are computed afterwards, again for the whole block. Blocks
always have the same length, so that the bits of a result do not depend on the size of batches. Most of the
memory goes to blocks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.knowledge import known_shrinkage
from unfog.features import Context
from unfog.maths.arrays import Array, Ints, pick
from unfog.simulation import engines
from unfog.simulation.engines import ACTIONS, BLOCK, DIM, LOSSES, NUMBER, ROUND, Cost, MemoryTerm
from unfog.simulation.job import (
    MOMENTS,
    Job,
    Nature,
    Part,
    Tick,
    emitted,
    refuse_nonsense,
    regular,
    truth_draws,
)
from unfog.simulation.player import Player
from unfog.theory import regret
from unfog.validation import LARGEST, InputError
from unfog.worlds.problem import Emission, Problem, Truth

BLOCK_ROUNDS = 128  # rounds
BATCH_BYTES = 64_000_000
BATCH_TRIALS = (50, 250)  # fewer are slow, more gain nothing
SHARES = 8  # batches of a job, if each has enough trials
BATCH_TRIALS_HISTORY = (5, 50)  # likewise for learners that keep past rounds
COST = Cost(250, 0.0, call=6e-5, each=1.5e-6, root=1.6e-9, arm=0.8e-9, past=3e-10, share=0.5)
PROCESS = 85e6  # bytes: NumPy and unfog take 45 MB, with the lab and its libraries 130, with pyarrow 170
TABLES, PLAIN_TABLES = 3, 2  # tables of scores that a block stores, with the parts of regret or without


class Block(NamedTuple):
    """A block of rounds without the agents: (trials, rounds, ...)."""

    emission: Emission
    normals: Array
    tables: regret.Tables


def make_block(job: Job, truth: Truth, normals: Array, uniforms: Array, numbers: Ints) -> Block:
    """Everything of a block that does not depend on the agents."""
    return tabled(job, truth, make_emission(job, truth, normals, uniforms, numbers), normals)


def make_emission(job: Job, truth: Truth, normals: Array, uniforms: Array, numbers: Ints) -> Emission:
    """The emission that these draws determine; it must be finite."""
    emission = emitted(job.problem, over_rounds(truth), normals, uniforms, numbers)
    validation.check_finite("problem.context", emission.context)
    validation.check_finite("problem.noisy", emission.noisy)
    return emission


def tabled(job: Job, truth: Truth, emission: Emission, normals: Array) -> Block:
    """An emission with the mean reward of every arm."""
    shrinkage = known_shrinkage(job.problem.knowledge())
    wide = over_rounds(truth)
    best = regret.best_context(shrinkage, emission, wide.bias, job.problem.has_bias)
    tables = regret.tables(
        job.problem.rewards,
        wide.features,
        wide.theta,
        best,
        emission.context,
        emission.noisy,
        job.decompose,
        job.problem.posterior(wide, emission) if job.decompose and job.problem.discrete else None,
    )
    return Block(emission, normals, tables)


def over_rounds(truth: Truth) -> Truth:
    """The truth with an axis for rounds after that for trials."""
    first = None if truth.first is None else truth.first[:, None]
    # Arrays that have an axis for rounds already, or are looked up by unit, stay as they are.
    features = truth.features.over_rounds()
    context = None if truth.context is None else truth.context[:, None]
    wide = truth._replace(theta=truth.theta[:, None], bias=truth.bias[:, None], features=features)
    return wide._replace(first=first, context=context)


def play(player: Player, problem: Problem, block: Block, rounds: int) -> tuple[Ints, Context]:
    """Play a block: the arms (trials, BLOCK) and the beliefs about the contexts.

    If the horizon ends within the block, its last round is repeated, so that shapes stay the same.
    """
    by_round: Any = [None if x is None else _swap_axes(x) for x in block.emission[:-1]]
    draws, normals = (
        _swap_axes(player.runner.normals.next(BLOCK_ROUNDS)),
        _swap_axes(block.normals),
    )
    arms, beliefs = [], []
    for t in range(rounds):
        fields: Any = [None if x is None else x[t] for x in by_round]
        emission = Emission(*fields)

        def pay(arm: Ints, t: int = t) -> Array:
            reward = problem.reward(pick(block.tables.true_context[:, t], arm), normals[t])
            validation.check_reward("problem.reward", reward, problem.rewards.kind)
            return reward

        decision = player.round(emission, draws[t], pay)
        player.reveal(decision, emission)
        arms.append(decision.arm)
        beliefs.append(decision.context)
    refuse_nonsense(player.agent.name, bool((np.abs(player.runner.theta().mean) <= LARGEST).all()))
    last = BLOCK_ROUNDS - rounds
    return np.stack(arms + arms[-1:] * last, 1), stacked(beliefs + beliefs[-1:] * last)


def _swap_axes(values: Any) -> Any:
    return np.ascontiguousarray(values.swapaxes(0, 1))


def stacked(beliefs: Sequence[Context]) -> Context:
    """Stack beliefs of single rounds to (trials, rounds, ...); covariances shared by all trials stay shared.

    A covariance that trials share only until they see different contexts is stacked for each of them.
    """
    first, mean = beliefs[0].cov, np.stack([belief.mean for belief in beliefs], -2)
    if all(belief.cov is first for belief in beliefs):  # stacking copies would take much memory
        *batch, d, _ = first.shape
        return Context(mean, np.broadcast_to(first[..., None, :, :], (*batch, len(beliefs), d, d)))
    shape = np.broadcast_shapes(*{belief.cov.shape for belief in beliefs})
    return Context(mean, np.stack([np.broadcast_to(belief.cov, shape) for belief in beliefs], -3))


def losses(job: Job, truth: Truth, block: Block, arms: Ints, beliefs: Context) -> dict[str, Array]:
    """The losses of the arms of a block, (trials, rounds) by name."""
    wide = over_rounds(truth)
    own = wide.features.design(beliefs) if job.decompose else None
    return regret.losses(job.problem.rewards, block.tables, arms, own, wide.theta)


class Meter:
    """Adds up losses and stores the totals, and their moments over trials, at the rounds of the job."""

    def __init__(self, job: Job, trials: int) -> None:
        self._grid, self._curve = job.grid, job.curve
        names, players = job.losses, len(job.agents)
        self.values: Part = {name: np.empty((players, trials, len(job.grid))) for name in names}
        self._totals = {name: np.zeros((players, trials)) for name in names}
        if len(job.curve):
            self.values |= {MOMENTS + name: np.empty((players, len(job.curve), 2)) for name in names}

    def add(self, player: int, first: int, losses: dict[str, Array]) -> None:
        """Add the losses (trials, rounds) of one player from round `first` on."""
        for name, loss in losses.items():
            running = self._totals[name][player][:, None] + np.cumsum(loss, 1)
            self._totals[name][player] = running[:, -1]
            here, index = _find_points(self._grid, first, loss.shape[1])
            self.values[name][player, :, here] = running[:, index]
            here, index = _find_points(self._curve, first, loss.shape[1])
            if len(index):
                spread = np.var(running[:, index], axis=0) * len(running)
                self.values[MOMENTS + name][player, here] = np.stack([running[:, index].mean(0), spread], -1)


def _find_points(points: Ints, first: int, rounds: int) -> tuple[slice, Ints]:
    """Which of the rounds `points` fall into a block, and where in it."""
    low, high = np.searchsorted(points, [first, first + rounds], side="right")
    return slice(low, high), points[low:high] - first - 1


def terms(job: Job, block: int) -> list[MemoryTerm]:
    """The terms of the memory of a batch, for blocks of so many rounds."""
    return [
        MemoryTerm("the interpreter and its libraries", (), fixed=PROCESS),
        *engines.world(job, copies=4),
        *engines.truth(job.problem),
        *_block_terms(job, block),
        *engines.beliefs(job, kept=1.0, made=3.5),
        *_round_terms(job, block),
        *_context_terms(job, block),
        *_history_terms(job),
        MemoryTerm("the curves of a batch", ("points", "agents"), engines.curves(job)),
    ]


def _block_terms(job: Job, block: int) -> list[MemoryTerm]:
    """Scores, contexts, measurements and draws of a block, and temporary arrays."""
    problem, arms = job.problem, job.problem.arms()
    dim = problem.knowledge().context_mean.shape[0]
    tables = (TABLES if job.decompose else PLAIN_TABLES) * arms
    numbers = 6 * dim + 2 * problem.round_normals()
    return [
        MemoryTerm("the scores of a block of rounds", ("problem.actions",), block * NUMBER * tables),
        MemoryTerm("the contexts of a block of rounds", DIM, block * NUMBER * numbers),
        MemoryTerm(
            "scores in the making",
            ("problem.actions",),
            block * NUMBER * (arms + problem.cells()),
            when=BLOCK,
        ),
        MemoryTerm("scores of an agent's own", ("problem.actions",), block * NUMBER * arms, when=LOSSES),
    ]


def _round_terms(job: Job, block: int) -> list[MemoryTerm]:
    """The terms of a choice: normals of a block, twice while axes are swapped; the spread of scores."""
    return [
        MemoryTerm("the draws of choices", ACTIONS, 2 * block * NUMBER * engines.drawn(job), when=ROUND),
        MemoryTerm("the spread of scores", ACTIONS, 1.5 * NUMBER * job.problem.table(), when=ROUND),
        MemoryTerm(
            "weights of a sample", ("problem.prior_contexts",), NUMBER * engines.weights(job), when=ROUND
        ),
    ]


def _context_terms(job: Job, block: int) -> list[MemoryTerm]:
    """The beliefs about the contexts of a block: in a list, stacked, and once more for the losses.

    All trials share a covariance or, if they differ in what they know, have one each.
    """
    known, problem = job.problem.knowledge(), job.problem
    differs = problem.several > 1 or problem.partial
    per_trial = differs or any(one.denoiser.squares or one.can.look_back is not None for one in job.agents)
    square, dim = block * NUMBER * known.context_cov.size, known.context_mean.shape[0]
    settled = all(one.denoiser.settled for one in job.agents)
    each, fixed = (square, 0) if per_trial else (0, 0 if settled else square)
    name, share = "the covariances of a block's contexts", min(1.0, job.rounds / block)
    return [
        MemoryTerm(name, DIM, share * each, share * fixed, when=ROUND),
        MemoryTerm(name, DIM, (2 + share) * each, (1 + share) * fixed, when=LOSSES),
        MemoryTerm("the beliefs about a block's contexts", DIM, 4 * block * NUMBER * dim, when=LOSSES),
    ]


def _history_terms(job: Job) -> list[MemoryTerm]:
    """Past rounds, for learners that keep them or wait for true contexts; a fourth of `room` is permanent."""
    rooms, known = [engines.history(agent, job) for agent in job.agents], job.problem.knowledge()
    waiting = any(agent.sees_context for agent in job.agents) * min(job.problem.reveal_delay, job.rounds)
    round_ = engines.theta(job) + known.context_cov.size
    return [
        MemoryTerm("the rounds that learners keep", ("rounds", *ACTIONS), NUMBER * sum(rooms) / 4),
        MemoryTerm("steps of a learner", ("rounds", *ACTIONS), 0.75 * NUMBER * max(rooms), when=ROUND),
        MemoryTerm(
            "rounds that wait for their context",
            ("problem.reveal_delay", *ACTIONS),
            NUMBER * len(job.agents) * waiting * round_,
        ),
    ]


def refuse_float32(job: Job, engine: str) -> None:
    """Raise if a job asks for float32, for engines that compute in float64."""
    if job.precision == "float32":
        raise InputError("precision", job.precision, f"float64 on the {engine} engine")


class Numpy(engines.Engine):
    """The engine. Batches of any size, in any number of processes, give the same bits."""

    name = "numpy"
    packages: tuple[str, ...] = ()
    shares_work = True

    def refuse(self, job: Job) -> None:
        """Refuse float32: it computes in float64."""
        refuse_float32(job, self.name)

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:
        """Processes share the batches."""
        return COST.seconds(job, trials, workers)

    def batch(self, job: Job, trials: int) -> int:
        """As many trials as fit easily into memory, and leave enough batches for several workers."""
        keeps_history = any(agent.can.keep_rounds is not None for agent in job.agents)
        least, most = BATCH_TRIALS_HISTORY if keeps_history else BATCH_TRIALS
        return max(
            1, min(BATCH_BYTES // engines.for_each(self.terms(job)), most, max(least, -(-trials // SHARES)))
        )

    def terms(self, job: Job) -> list[MemoryTerm]:
        """The terms of its memory."""
        return terms(job, BLOCK_ROUNDS)

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials at the rounds of the job's grid."""
        problem = job.problem
        truth = problem.truth(truth_draws(job.seed, trials, problem.truth_draws()))
        nature = Nature(problem, job.seed, trials)
        players = [Player(agent, problem, truth, job.seed, trials) for agent in job.agents]
        meter = Meter(job, len(trials))
        for first in range(0, job.rounds, BLOCK_ROUNDS):
            rounds = min(BLOCK_ROUNDS, job.rounds - first)
            block = make_block(job, truth, *nature.next(BLOCK_ROUNDS), first + np.arange(BLOCK_ROUNDS))
            for index, player in enumerate(players):
                # Results of overflows are refused afterwards.
                with np.errstate(over="ignore", invalid="ignore"), regular(player.agent.name):
                    arms, beliefs = play(player, problem, block, rounds)
                by_name = losses(job, truth, block, arms, beliefs)
                meter.add(index, first, {name: loss[:, :rounds] for name, loss in by_name.items()})
                tick(rounds * len(trials))
        return meter.values


ENGINE = Numpy()
