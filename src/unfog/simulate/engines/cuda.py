"""The engine of one GPU kernel: for Gaussian problems with quadratic features, many times the compiled scan.

JAX makes the truth of every trial, where and as its own engine does; kernel.cu plays the rounds. It serves
denoisers with gains that all trials share, `Conjugate` and `Scaled`, `Thompson` and `RandUcb`.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.denoise.bias import Tally
from unfog.agents.learn import Conjugate, Scaled
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints
from unfog.simulate.engines import cuda_driver, cuda_source
from unfog.simulate.engines import jax as jax_engine
from unfog.simulate.engines.cost import Cost
from unfog.simulate.engines.jax_program import Program
from unfog.simulate.job import Job, Part, Tick
from unfog.theory import regret
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

BATCH = 2**17  # trials side by side
COST = Cost(BATCH, 3.0, call=1e-5, each=1e-10, root=1e-12, arm=4e-13, past=0.0, share=1.0)
OTHERS = "numpy, numba, jax, auto"


def refuse_what_it_cannot(job: Job) -> None:
    """Only one GPU, the quadratic Gaussian problem, and denoisers of the catalogue.

    Denoisers of one's own are refused even where they look right: that one is affine can be tested for the
    catalogue alone.
    """
    if jax_engine.platform() != "gpu" and not on_host():
        raise InputError("engine", "cuda needs a GPU", OTHERS)
    if len(jax.devices()) > 1:
        raise InputError("engine", f"cuda runs on one device, not {len(jax.devices())}", OTHERS)
    if not isinstance(job.problem, GaussianProblem) or job.problem.features != "quadratic":
        raise InputError("engine", "cuda serves Gaussian problems with quadratic features", OTHERS)
    if not job.problem.plain:
        raise InputError("engine", "cuda serves plain channels", OTHERS)
    for agent in job.agents:
        if not _serves(job.problem, agent):
            raise InputError("engine", f"cuda cannot run {agent.name}", OTHERS)


def _serves(problem: GaussianProblem, agent: Agent) -> bool:
    """A denoiser with shared gains, two learners, of which one without a mixture, and two choosers."""
    if not any(agent.denoiser == row.denoiser for row in AGENTS.values()):
        return False
    _, first = cuda_source.set_up(problem, agent)
    learner = agent.learner
    learns = type(learner) is Conjugate or (type(learner) is Scaled and not learner.mixed)
    affine = first == () or isinstance(first, Tally)
    return affine and learns and type(agent.chooser) in (Thompson, RandUcb)


def on_host() -> bool:
    """Whether the kernel runs without a GPU, as its tests do."""
    return False


class _Program:
    """The kernel of one agent on one problem, and what it starts from."""

    def __init__(self, problem: GaussianProblem, agent: Agent, decompose: bool, given: bool, precision: str):
        """Compiled at once, or kept from another time."""
        self.problem, self.agent, self.precision = problem, agent, precision
        self.losses = len(regret.names(decompose))
        block = cuda_source.block(problem, precision, cuda_driver.most_shared())
        source = cuda_source.source(problem, agent, decompose, given, precision, block)
        self.kernel = cuda_driver.compiled(source, block)
        self.truth = Program(problem, agent, decompose, given, precision, trial_last=True).truth
        self.begin = jax.jit(self._begin)

    def _begin(self, draws: dict[str, Array]) -> tuple[list[Array], list[Array]]:
        """The truth (actions, theta, bias) and all that rounds change, trial-last and in this precision."""
        d, truth = self.problem.dim, self.truth(draws)
        trials, features = truth.theta.shape[0], truth.features
        table: Any = features
        actions = jnp.moveaxis(table.table[..., d : 2 * d], 0, -1).reshape(-1, trials)
        root, mean, rates, weights = _prior(self.agent, self.problem.knowledge())
        lower = np.tril_indices(root.shape[-1])
        lines = [root[:, lower[0], lower[1]].reshape(-1), mean.reshape(-1), rates, weights, np.zeros(d)]
        lines += [np.zeros(self.losses)] * 2
        state = [jnp.repeat(jnp.asarray(x, self.precision)[:, None], trials, 1) for x in lines]
        return [x.astype(self.precision) for x in (actions, truth.theta.T, truth.bias.T)], state


def _prior(agent: Agent, known: Knowledge) -> tuple[Array, Array, Array, Array]:
    """Roots (scales, m, m), means, rates and logarithms of weights of what is believed before any reward."""
    state: Any = agent.learner.start(known, None)
    if isinstance(agent.learner, Scaled):
        return state.beliefs.root, state.beliefs.mean, state.rates, state.weights
    return state.root[None], state.mean, np.zeros(1), np.zeros(1)


_program = lru_cache(maxsize=64)(_Program)


def _play(job: Job, agent: Agent, draws: jax_engine.Randomness, tick: Tick) -> tuple[Array, Array]:
    """Run one agent: totals (points, losses, trials) and moments (curve points, losses, 2)."""
    problem: Any = job.problem
    given, size = job.draws == "numpy", len(draws.ids)
    program = _program(problem, agent, job.decompose, given, draws.dtype)
    truth, state = program.begin(draws.truth)
    table = [x.reshape(job.rounds, -1) for x in cuda_source.gains(problem, agent, job.rounds)]
    schedule = np.concatenate(table, 1).astype(draws.dtype)
    choices = draws.rounds("agent", agent.chooser.normals(problem.knowledge()))
    stored, moments = [], []
    for first in range(0, job.rounds, jax_engine.STRIDE):
        last = min(first + jax_engine.STRIDE, job.rounds)
        points = np.union1d(*(x[(x > first) & (x <= last)] for x in (job.grid, job.curve)))
        totals = jnp.zeros((max(1, len(points)), program.losses, size), draws.dtype)
        told = [x[first:last] if given else jnp.stack(x) for x in (draws.world, choices)]
        slots = np.full(last - first, -1, np.int32)
        slots[points - first - 1] = np.arange(len(points))
        arrays = [*truth, *told, jnp.asarray(schedule[first:last]), jnp.asarray(slots), *state, totals]
        # Arrays that the kernel changes are nobody else's: they come of `begin` and of the line above.
        pointers = [jax.block_until_ready(x).unsafe_buffer_pointer() for x in arrays]
        program.kernel(pointers, size, last - first, first)
        at_grid, at_curve = (np.flatnonzero(np.isin(points, x)) for x in (job.grid, job.curve))
        stored += [np.asarray(_at(totals, at_grid), np.float64)] if len(at_grid) else []
        moments += [_moments(_at(totals, at_curve)[:, :, : len(draws.trials)])] if len(at_curve) else []
        tick((last - first) * len(draws.trials))
    return np.concatenate(stored), np.concatenate(moments) if moments else np.empty((0, program.losses, 2))


def _at(totals: Any, places: Ints) -> Any:
    """The totals at these places; no copy where they are all of them."""
    return totals if len(places) == len(totals) else totals[places]


def _moments(totals: Any) -> Array:
    """Mean over trials and sum of squared deviations: (points, losses, trials) -> (points, losses, 2)."""
    totals = totals.astype(jnp.float64)
    return np.stack([totals.mean(-1), totals.var(-1) * totals.shape[-1]], -1)


class Cuda(jax_engine.Jax):
    """The engine."""

    name = "cuda"

    def refuse(self, job: Job) -> None:
        """All but the problems and agents that the kernel knows."""
        super().refuse(job)
        refuse_what_it_cannot(job)

    def settle(self, asked: str | None) -> str | None:
        """Single unless told."""
        return asked or "float32"

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:  # noqa: ARG002
        """Compiling takes seconds."""
        return COST.seconds(job, trials)

    def batch(self, job: Job, trials: int) -> int:  # noqa: ARG002
        """Equal ones."""
        return -(-trials // -(-trials // BATCH))

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials, as the other engines give them."""
        jax_engine.keep_compiled_programs()
        told = job._replace(precision=self.settle(job.precision))
        with jax.enable_x64(True):
            draws = jax_engine.Randomness(told, trials, job.batch)
            played = [_play(told, agent, draws, tick) for agent in job.agents]
        return jax_engine.part(job, played, len(trials))


ENGINE = Cuda()
