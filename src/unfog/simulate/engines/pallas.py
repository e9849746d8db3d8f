"""The engine of one GPU kernel: for Gaussian problems with quadratic features, many times the compiled scan.

The kernel is told of a denoiser by numbers that `gains` reads off the denoiser itself, by showing it unit
vectors, so that no formula of an agent is written a second time.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unfog.agents.assemble import Agent
from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import Thompson
from unfog.agents.denoise.bias import Tally
from unfog.agents.learn import Conjugate
from unfog.agents.parts import Privilege
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.model.shrinkage import as_told
from unfog.simulate.engines import device_draws, pallas_kernel
from unfog.simulate.engines import jax as jax_engine
from unfog.simulate.engines.cost import Cost
from unfog.simulate.engines.jax_program import Program
from unfog.simulate.engines.pallas_kernel import LANES, Belief, Constants, Streams
from unfog.simulate.engines.room import Term
from unfog.simulate.job import Job, Part, Tick
from unfog.theory import regret
from unfog.worlds.gaussian import GaussianProblem

STRIDE_BYTES = 2**31  # of draws made at once
BATCH = 2**17  # trials; a kernel takes a minute and a half to compile: one size serves all
COST = Cost(BATCH, 90.0, call=1e-5, each=1e-10, root=1e-12, arm=4e-13, past=0.0, share=1.0)


def refuse_what_it_cannot(job: Job) -> None:
    """Only one GPU, float32, the quadratic Gaussian problem, and denoisers of the catalogue.

    Denoisers of one's own are refused even where they look right: that one is affine can be tested for the
    catalogue alone.
    """
    if jax_engine.platform() != "gpu" and not interpreted():
        raise InputError("engine", "pallas needs a GPU", "numpy, jax, auto")
    if len(jax.devices()) > 1:
        raise InputError("engine", f"pallas runs on one device, not {len(jax.devices())}", "numpy, jax, auto")
    if job.precision == "float64":
        raise InputError("precision", job.precision, "float32 on the pallas engine")
    if not isinstance(job.problem, GaussianProblem) or job.problem.features != "quadratic":
        raise InputError(
            "engine", "pallas serves Gaussian problems with quadratic features", "numpy, jax, auto"
        )
    if not job.problem.plain:
        raise InputError("engine", "pallas serves plain channels", "numpy, jax, auto")
    for agent in job.agents:
        _, first = _denoiser(job.problem, agent)
        known = any(agent.denoiser == row.denoiser for row in AGENTS.values())
        affine = known and (first == () or isinstance(first, Tally))
        if not affine or agent.learner != Conjugate() or agent.chooser != Thompson():
            raise InputError("engine", f"pallas cannot run {agent.name}", "numpy, jax, auto")


def interpreted() -> bool:
    """Whether the kernel runs without a GPU, slowly, as its tests do."""
    return False


class Gains(NamedTuple):
    """A denoiser as numbers: its mean is offset + on_noisy chat + on_total total."""

    offset: Array  # (rounds, d)
    variance: Array  # (rounds, d)
    on_noisy: Array  # (rounds, d, d)
    on_total: Array  # (rounds, d, d)


def _denoiser(problem: GaussianProblem, agent: Agent) -> tuple[Any, Any]:
    """The denoiser set up; a bias that it is told is taken off the measurement, so here it is told zero."""
    privilege = None if agent.privileged is None else Privilege(np.zeros(problem.dim))
    setup = agent.denoiser.setup(problem.knowledge(), privilege)
    return setup, agent.denoiser.start(setup)


def _probes(dim: int) -> tuple[Array, Array]:
    """Two arguments, of which all are zero but one entry: (2d + 1, d) each."""
    unit = np.eye(2 * dim + 1, 2 * dim, k=-1)
    return unit[:, :dim], unit[:, dim:]


def gains(problem: GaussianProblem, agent: Agent, rounds: int) -> Gains:
    """What the denoiser does with a measurement and a total in every round."""
    d = problem.dim
    setup, first = _denoiser(problem, agent)
    noisy, total = _probes(d)
    every = np.arange(float(rounds)).reshape(rounds, 1)
    belief = agent.denoiser.predict(setup, Tally(every, total) if isinstance(first, Tally) else first, noisy)
    means = np.broadcast_to(belief.mean, (rounds, *noisy.shape))
    variances = np.broadcast_to(np.linalg.diagonal(belief.cov), (rounds, 1, d))[:, 0]
    slopes = (means[:, 1:] - means[:, :1]).swapaxes(1, 2)
    return Gains(means[:, 0], variances, slopes[:, :, :d], slopes[:, :, d:])


def constants(problem: GaussianProblem, agent: Agent, decompose: bool) -> Constants:
    """The numbers of the problem, and what the agent's update adds to its total."""
    known, d = problem.knowledge(), problem.dim
    shrinkage = as_told(known)
    setup, first = _denoiser(problem, agent)
    noisy, context = _probes(d)
    added = np.zeros((2 * d + 1, d))
    if isinstance(first, Tally):
        added = (
            added + agent.denoiser.update(setup, first, noisy, context if agent.sees_context else None).total
        )
    slopes = (added[1:] - added[0]).T
    return Constants(
        mean=known.context_mean.tolist(),
        context_root=np.linalg.cholesky(known.context_cov).tolist(),
        noise_root=np.linalg.cholesky(known.noise_cov).tolist(),
        reward_var=float(problem.reward_var),
        gain=shrinkage.gain.tolist(),
        centre=(shrinkage.mean - shrinkage.gain @ shrinkage.mean).tolist(),
        left=np.diagonal(shrinkage.cov).tolist(),
        on_noisy=slopes[:, :d].tolist(),
        on_context=slopes[:, d:].tolist(),
        start=added[0].tolist(),
        arms=problem.arms(),
        sees_context=agent.sees_context,
        privileged=agent.privileged is not None,
        decompose=decompose,
    )


def _play(job: Job, agent: Agent, draws: jax_engine.Randomness, tick: Tick) -> tuple[Array, Array]:
    """Run one agent: totals (points, losses, trials) and moments (curve points, losses, 2)."""
    problem: Any = job.problem
    wide = agent.chooser.normals(problem.knowledge())
    stride = max(
        1, min(jax_engine.STRIDE, STRIDE_BYTES // (4 * (problem.round_normals() + wide) * len(draws.ids)))
    )
    program = _program(problem, agent, job.decompose, job.draws == "numpy", stride)
    truth, belief = program.begin(draws.truth)
    numbers = [x.reshape(job.rounds, -1) for x in gains(problem, agent, job.rounds)]
    # Beyond the horizon the last row is repeated: tables keep their length, and the surplus is never played.
    whole = np.minimum(np.arange(-(-job.rounds // stride) * stride), job.rounds - 1)
    schedule = np.concatenate(numbers, 1)[whole].astype(np.float32)
    source, stored, moments = (draws.world, draws.rounds("agent", wide)), [], []
    for first in range(0, job.rounds, stride):
        rounds = min(stride, job.rounds - first)
        belief, totals = program.advance(
            first, jnp.asarray([rounds], jnp.int32), source, truth, schedule[first : first + stride], belief
        )
        at_grid, at_curve = (
            x[(x > first) & (x <= first + rounds)] - first - 1 for x in (job.grid, job.curve)
        )
        # Nothing is fetched from the device, or waited for, that is not wanted.
        stored += [np.asarray(totals[at_grid], np.float64)] if len(at_grid) else []
        moments += [_moments(totals[at_curve][:, :, : len(draws.trials)])] if len(at_curve) else []
        tick(rounds * len(draws.trials))
    return np.concatenate(stored), np.concatenate(moments) if moments else np.empty((0, program.losses, 2))


def _moments(totals: Any) -> Array:
    """Mean over trials and sum of squared deviations: (points, losses, trials) -> (points, losses, 2)."""
    totals = totals.astype(jnp.float64)
    return np.stack([totals.mean(-1), totals.var(-1) * totals.shape[-1]], -1)


class _KernelProgram:
    """The kernel for one agent and problem, with the making of its draws, compiled once."""

    def __init__(
        self, problem: GaussianProblem, agent: Agent, decompose: bool, given: bool, stride: int
    ) -> None:
        self.problem, self.agent, self.given, self.stride = problem, agent, given, stride
        self.constants = constants(problem, agent, decompose)
        self.losses = len(regret.names(decompose))
        self.truth = Program(problem, agent, decompose, given, "float32", trial_last=True).truth
        self.begin = jax.jit(self._begin)
        self.advance = jax.jit(self._advance)

    def _begin(self, draws: dict[str, Array]) -> tuple[Any, Belief]:
        known, d = self.problem.knowledge(), self.problem.dim
        truth = self.truth(draws)
        trials = truth.theta.shape[0]
        actions: Any = truth.features
        actions = jnp.moveaxis(actions.table[..., d : 2 * d], 0, -1).reshape(-1, trials)
        root = np.linalg.cholesky(known.prior_cov)
        lines = [
            np.concatenate([line[: i + 1] for i, line in enumerate(root)]),
            known.prior_mean,
            np.zeros(d),
        ]
        lines += [np.zeros(self.losses)] * 2
        belief = Belief(*(jnp.repeat(jnp.asarray(x, jnp.float32)[:, None], trials, 1) for x in lines))
        return (actions.astype(jnp.float32), truth.theta.T, truth.bias.T), belief

    def _advance(
        self, first: Any, rounds: Any, source: Any, truth: Any, schedule: Any, belief: Belief
    ) -> Any:
        """A stride from round `first` on."""
        now = first + jnp.arange(self.stride)
        widths = self.problem.round_normals(), self.agent.chooser.normals(self.problem.knowledge())
        world, choices = (
            x[jnp.minimum(now, len(x) - 1)] if self.given else device_draws.normals(x, now, width, "float32")
            for x, width in zip(source, widths, strict=True)
        )
        actions, theta, bias = truth
        streams = Streams(actions, theta, bias, world, choices, schedule)
        return pallas_kernel.advance(self.constants, rounds, streams, belief, interpreted())


_program = lru_cache(maxsize=64)(_KernelProgram)


class Pallas(jax_engine.Jax):
    """The engine."""

    name = "pallas"

    def refuse(self, job: Job) -> None:
        """All but the problems and agents that the kernel knows."""
        super().refuse(job)
        refuse_what_it_cannot(job)

    def settle(self, asked: str | None) -> str | None:  # noqa: ARG002
        """Single: the other is refused."""
        return "float32"

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:  # noqa: ARG002
        """Most of it is compiling."""
        return COST.seconds(job, trials)

    def batch(self, job: Job, trials: int, workers: int = 1) -> int:  # noqa: ARG002
        """One size, filled up."""
        return BATCH

    def terms(self, job: Job) -> list[Term]:
        """As of any compiled engine, and the draws of a stride of rounds."""
        return [*super().terms(job), Term("draws made at once", ("engine",), fixed=STRIDE_BYTES)]

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials, as the other engines give them."""
        jax_engine.keep_compiled_programs()
        whole = -(-max(job.batch, len(trials)) // LANES) * LANES
        single = job._replace(precision="float32")
        with jax.enable_x64(True):
            draws = jax_engine.Randomness(single, trials, whole)
            played = [_play(single, agent, draws, tick) for agent in job.agents]
        return jax_engine.part(job, played, len(trials))


ENGINE = Pallas()
