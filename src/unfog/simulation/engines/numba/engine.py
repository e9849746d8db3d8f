"""The engine of one compiled kernel for CPUs: the NumPy engine's random numbers, actions and results.

NumPy generates a block of rounds, which is denoised (numba/beliefs.py); then one kernel (numba/kernel.py)
plays it, one trial after the other. Agents without a kernel (numba/support.py) are played by the NumPy
engine, so that everything that NumPy can play is accepted. Results agree with NumPy's to rounding; each trial
is played by itself, so that batches of any size, in any number of processes, give the same bits.
"""

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.choose import RandUcb
from unfog.channel.knowledge import Knowledge, known_shrinkage
from unfog.features.quadratic import Quadratic
from unfog.maths.arrays import Array
from unfog.simulation import engines
from unfog.simulation.engines import Cost, MemoryTerm
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.engines.numba.arrays import (
    MIXED,
    SCALED,
    Believed,
    Rules,
    State,
    Trace,
    World,
    make_workspace,
    plan,
)
from unfog.simulation.engines.numba.beliefs import Beliefs, beliefs, ready
from unfog.simulation.engines.numba.kernel import program
from unfog.simulation.engines.numba.support import learner_of, split
from unfog.simulation.engines.numpy import BLOCK_ROUNDS, Meter, losses, make_emission, over_rounds, tabled
from unfog.simulation.job import Job, Nature, Part, Tick, refuse_nonsense, truth_draws
from unfog.simulation.player import Player
from unfog.theory import regret
from unfog.validation import LARGEST
from unfog.worlds.problem import Emission, Truth

BATCH_BYTES = 256_000_000
COMPILER = 140e6  # bytes: Numba and LLVM
BATCH_TRIALS = (50, 500)  # fewer are slow, more gain nothing
COST = Cost(500, 3.0, call=6e-6, each=5e-7, root=2e-9, arm=3e-10, past=0.0, share=0.0)


def make_rules(agent: Agent, known: Knowledge) -> Rules:
    """The agent's settings as numbers."""
    chooser, limit = agent.chooser, np.inf if agent.clip_sd is None else float(agent.clip_sd)
    if known.reward_var is None:
        raise ValueError(f"{agent.name}: there is no kernel for such rewards")
    of_all = float(known.reward_var), limit, agent.sees_context
    if not isinstance(chooser, RandUcb):
        return Rules(*of_all, 0.0, 1.0, 0.0, 1.0)
    return Rules(*of_all, *map(float, (chooser.level, chooser.tail, chooser.growth, chooser.patience)))


def start(agent: Agent, known: Knowledge, trials: int) -> State:
    """The learner's own first state, for every trial."""
    first = agent.learner.start(known, None)
    scaled = learner_of(agent) in (SCALED, MIXED)
    belief = first.beliefs if scaled else first
    mean, root = (x if scaled else x[None] for x in (belief.mean, belief.root))
    one = np.ones(len(mean))
    others = (first.shape, first.rates, first.weights) if scaled else (1.0, one, 0 * one)
    return State(*(np.repeat(np.asarray(x, dtype=float)[None], trials, 0) for x in (mean, root, *others)))


class Session:
    """An agent during its run: the player, and the kernel's state."""

    def __init__(self, agent: Agent, job: Job, truth: Truth, trials: range) -> None:
        """Before the first round."""
        known, arms, learner = job.problem.knowledge(), truth.features.arms, learner_of(agent)
        if learner is None:
            raise ValueError(f"{agent.name}: there is no kernel for its learner")
        self.player = Player(agent, job.problem, truth, job.seed, trials)
        self.rules, self.state = make_rules(agent, known), start(agent, known, len(trials))
        dim, scales = known.context_mean.shape[0], self.state.rates.shape[1]
        pair = learner, int(isinstance(agent.chooser, RandUcb))
        sizes = plan(*pair, dim, arms, scales)
        self.program, self.workspace = program(sizes), make_workspace(sizes)
        self.total = np.zeros((len(trials), dim))  # of observations of the bias, if they are tallied

    def play(self, world: World, beliefs: Beliefs, number: int, first: int) -> Trace:
        """Play so many rounds of a block."""
        shape = len(self.state.shape), BLOCK_ROUNDS
        trace = Trace(np.zeros(shape, dtype=np.intp), np.zeros(shape), np.zeros(shape))
        mean, cov = beliefs.context
        believed = Believed(
            ready(mean),
            _share(cov, 4),
            ready(beliefs.revealed),
            self.player.runner.normals.next(BLOCK_ROUNDS),
        )
        self.program(self.workspace, self.rules, world, believed, self.state, trace, number, first)
        for values in trace:
            values[:, number:] = values[:, number - 1 : number]
        validation.check_reward("problem.reward", trace.paid, "gaussian")
        refuse_nonsense(self.player.agent.name, bool((np.abs(self.state.mean) <= LARGEST).all()))
        return trace


def _share(values: Array, axes: int) -> Array:
    """Add axes for trials and rounds, or only for trials; an axis has one entry if all share it."""
    values = values.reshape(*[1] * (axes - values.ndim), *values.shape)
    values = values[:1] if values.strides[0] == 0 else values
    return ready(values[:, :1] if values.strides[1] == 0 else values)


def make_table(truth: Truth) -> Array:
    """[a^2, a, 1] of every arm: (trials, K, 2 d + 1), or with one entry for all trials."""
    if not isinstance(truth.features, Quadratic):
        raise TypeError(f"there is no kernel for the features {type(truth.features).__name__}")
    return _share(truth.features.table, 3)


def make_world(job: Job, truth: Truth, table: Array, emission: Emission, normals: Array) -> World:
    """A block as the kernel's arrays. A reward is the score plus noise, or only noise: an outlier."""
    problem, shape = job.problem, emission.context.shape
    best = regret.best_context(
        known_shrinkage(problem.knowledge()), emission, over_rounds(truth).bias, problem.has_bias
    )
    square = best.mean**2 + np.linalg.diagonal(best.cov)
    noise = problem.reward(np.zeros(shape[:2]), normals)
    counts = (problem.reward(np.ones(shape[:2]), normals) != noise).astype(float)
    mean, square = (x if x.shape == shape else np.broadcast_to(x, shape) for x in (best.mean, square))
    theta, context, mean, square = (ready(x) for x in (truth.theta, emission.context, mean, square))
    return World(table, theta, context, mean, square, ready(noise), counts)


def _merge(parts: list[tuple[list[int], Part]]) -> Part:
    """Merge the parts of several groups of agents, in the agents' order."""
    order = np.argsort(np.concatenate([which for which, _ in parts]))
    return {name: np.concatenate([part[name] for _, part in parts])[order] for name in parts[0][1]}


class Numba(engines.Engine):
    """The engine."""

    name = "numba"
    packages: tuple[str, ...] = ("numba",)
    shares_work = True

    def refuse(self, job: Job) -> None:
        """Refuse what the NumPy engine refuses."""
        numpy_engine.refuse_float32(job, self.name)

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:
        """The estimate for agents with and without a kernel; denoisers cost as much as with NumPy."""
        with_kernel, without = split(job)
        seconds = 0.0
        for index in with_kernel:
            agent = job.agents[index]
            single, slow = job._replace(agents=(agent,)), agent.denoiser.cost
            usual = numpy_engine.COST.seconds(single, trials, workers)
            seconds += COST.seconds(single, trials, workers) + usual * slow / (1 + slow + agent.learner.cost)
        rest = job._replace(agents=tuple(job.agents[index] for index in without))
        return seconds + numpy_engine.COST.seconds(rest, trials, workers)

    def batch(self, job: Job, trials: int) -> int:
        """As many trials as fit easily into memory, and leave enough batches for several workers."""
        if split(job)[1]:
            return numpy_engine.ENGINE.batch(job, trials)
        least, most = BATCH_TRIALS
        fitting = BATCH_BYTES // engines.for_each(self.terms(job))
        return max(1, min(fitting, most, max(least, -(-trials // numpy_engine.SHARES))))

    def terms(self, job: Job) -> list[MemoryTerm]:
        """The terms of the NumPy engine, and the compiler."""
        return [*numpy_engine.ENGINE.terms(job), MemoryTerm("the compiler", (), fixed=COMPILER)]

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials at the rounds of the job's grid."""
        parts = []
        for which, engine in zip(split(job), (_run, numpy_engine.ENGINE.run), strict=True):
            if which:
                own = job._replace(agents=tuple(job.agents[index] for index in which))
                parts.append((which, engine(own, trials, tick)))
        return _merge(parts)


def _run(job: Job, trials: range, tick: Tick) -> Part:
    """Play these trials with agents that all have a kernel."""
    problem = job.problem
    truth = problem.truth(truth_draws(job.seed, trials, problem.truth_draws()))
    nature, meter = Nature(problem, job.seed, trials), Meter(job, len(trials))
    sessions = [Session(agent, job, truth, trials) for agent in job.agents]
    table = make_table(truth)
    for first in range(0, job.rounds, BLOCK_ROUNDS):
        number = min(BLOCK_ROUNDS, job.rounds - first)
        draws, numbers = nature.next(BLOCK_ROUNDS), first + np.arange(BLOCK_ROUNDS)
        emission = make_emission(job, truth, *draws, numbers)
        world = make_world(job, truth, table, emission, draws[0])
        block = tabled(job, truth, emission, draws[0]) if job.decompose else None
        for index, session in enumerate(sessions):
            denoised = beliefs(session.player, emission, truth, number, first, session.total)
            trace = session.play(world, denoised, number, first)
            by_name = {"regret": trace.regret}
            if block is not None:
                by_name = losses(job, truth, block, trace.arm, denoised.context)
            meter.add(index, first, {name: loss[:, :number] for name, loss in by_name.items()})
            tick(number * len(trials))
    return meter.values


ENGINE = Numba()
