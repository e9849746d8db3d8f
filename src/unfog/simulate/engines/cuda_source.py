"""The source of the GPU kernel for one problem and one agent: their numbers, in front of kernel.cu.

The kernel is told of a denoiser by numbers that `gains` reads off the denoiser itself, by showing it unit
vectors, so that no formula of an agent is written a second time.
"""

from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.choose import RandUcb
from unfog.agents.choose.greedy import TIE
from unfog.agents.denoise.bias import Tally
from unfog.agents.learn import Scaled
from unfog.channel.knowledge import as_told
from unfog.maths.arrays import Array
from unfog.worlds.synthetic import GaussianProblem

THREADS = 256, 128  # of a block, the larger first: it is faster where there is room for its actions

_MATHS = ("SQRT", "RSQRT", "LOG", "LOG1P", "EXP", "MAX")
_SINGLE = dict(zip(_MATHS, ("sqrtf", "rsqrtf", "logf", "log1pf", "expf", "fmaxf"), strict=True))
_DOUBLE = dict(zip(_MATHS, ("sqrt", "rsqrt", "log", "log1p", "exp", "fmax"), strict=True))

_ENTRY = """
extern "C" __global__ void __launch_bounds__(THREADS)
play(Arguments g, int n, int rounds, int first) {
  extern __shared__ real shared[];
  const int lane = threadIdx.x, trial = blockIdx.x * THREADS + lane;
  if (trial >= n) return;
  if (IN_SHARED)  // a thread reads what it wrote itself: nobody waits
    for (int i = 0; i < ARMS * D; ++i) shared[i * THREADS + lane] = g.actions[(long long)i * n + trial];
  one_trial(g, trial, n, rounds, first, shared, lane);
}
"""


# In single precision an error of 4e-7 in a draw is below what the sums of a round leave.
_SINCOS_SINGLE = """
FN void SINCOS(real turns, real *s, real *c) {
  __sincosf(6.2831853f * (turns - 0.5f), s, c);
  *s = -*s, *c = -*c;
}"""
_SINCOS_DOUBLE = "#define SINCOS(turns, s, c) sincospi(2 * (turns), s, c)"


class Block(NamedTuple):
    """How many trials a block of threads plays, and the bytes of its shared memory: 0, or their actions'."""

    threads: int
    shared: int


class Gains(NamedTuple):
    """A denoiser as numbers: its belief is N(offset + on_noisy chat + on_total total, cov)."""

    offset: Array  # (rounds, d)
    cov: Array  # (rounds, d, d)
    on_noisy: Array  # (rounds, d, d)
    on_total: Array  # (rounds, d, d)


def set_up(problem: GaussianProblem, agent: Agent) -> tuple[Any, Any]:
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
    setup, first = set_up(problem, agent)
    noisy, total = _probes(d)
    every = np.arange(float(rounds)).reshape(rounds, 1)
    belief = agent.denoiser.predict(setup, Tally(every, total) if isinstance(first, Tally) else first, noisy)
    means = np.broadcast_to(belief.mean, (rounds, *noisy.shape))
    cov = np.broadcast_to(belief.cov, (rounds, 1, d, d))[:, 0]
    slopes = (means[:, 1:] - means[:, :1]).swapaxes(1, 2)
    return Gains(means[:, 0], cov, slopes[:, :, :d], slopes[:, :, d:])


def source(
    problem: GaussianProblem, agent: Agent, decompose: bool, given: bool, precision: str, block: Block
) -> str:
    """The text to be compiled for a GPU."""
    told, text = numbers(problem, agent, decompose, given), kernel()
    sizes = f"#define THREADS {block.threads}\n#define IN_SHARED {int(block.shared > 0)}"
    return "\n".join([_on_device(precision), sizes, told, text, _ENTRY])


def block(problem: GaussianProblem, precision: str, most: int) -> Block:
    """The largest block whose actions fit into so much shared memory; where none does, they stay outside."""
    each = problem.arms() * problem.dim * np.dtype(precision).itemsize
    fitting = [Block(threads, threads * each) for threads in THREADS if threads * each <= most]
    return fitting[0] if fitting else Block(THREADS[-1], 0)


def kernel() -> str:
    """The text that all problems and agents share."""
    return (resources.files("unfog.simulate.engines") / "kernel.cu").read_text("utf-8")


def _on_device(precision: str) -> str:
    """What numbers and functions are called there."""
    single = precision == "float32"
    names = _SINGLE if single else _DOUBLE
    lines = [
        f"typedef {'float' if single else 'double'} real;",
        "#define FN static __device__ __forceinline__",
    ]
    lines += ["#define TABLE static __constant__ const real"]
    lines += [f"#define ROUGH_LOG {'__logf' if single else 'log'}"]
    lines += [_SINCOS_SINGLE if single else _SINCOS_DOUBLE]
    return "\n".join(lines + [f"#define {name} {called}" for name, called in names.items()])


def numbers(problem: GaussianProblem, agent: Agent, decompose: bool, given: bool) -> str:
    """What is the same in every round and trial: sizes and switches, settings, and arrays."""
    learner, chooser = agent.learner, agent.chooser
    scaled, bounds = isinstance(learner, Scaled), isinstance(chooser, RandUcb)
    switches = {
        "D": problem.dim,
        "ARMS": problem.arms(),
        "SCALES": learner.scales if isinstance(learner, Scaled) else 1,
        "SCALED": int(scaled),
        "RANDUCB": int(bounds),
        "GIVEN": int(given),
        "SEES": int(agent.sees_context),
        "PRIVILEGED": int(agent.privileged is not None),
        "DECOMPOSE": int(decompose),
        "LIMITED": int(agent.limit is not None),
    }
    settings = {"TIE": TIE, "REWARD_VAR": problem.reward_var, "LIMIT": agent.limit or 0.0}
    settings |= {"TRUST": learner.trust if isinstance(learner, Scaled) else 0.0}
    for field in ("level", "tail", "growth", "patience"):
        settings[field.upper()] = vars(chooser)[field] if bounds else 1.0
    lines = [f"#define {name} {value}" for name, value in switches.items()]
    lines += [f"#define {name} ((real){float(value)!r})" for name, value in settings.items()]
    return "\n".join(lines + [_table(name, values) for name, values in _arrays(problem, agent).items()])


def _table(name: str, values: Array) -> str:
    entries = ", ".join(repr(float(value)) for value in np.ravel(values))
    return f"TABLE {name}[] = {{{entries}}};"


def _arrays(problem: GaussianProblem, agent: Agent) -> dict[str, Array]:
    """The world's moments, the oracle's belief centre + gain (chat - gamma*), and what is added to the total.

    That is start + on_noisy chat + on_context c.
    """
    known, d = problem.knowledge(), problem.dim
    shrinkage = as_told(known)
    setup, first = set_up(problem, agent)
    noisy, context = _probes(d)
    added = np.zeros((2 * d + 1, d))
    if isinstance(first, Tally):
        seen = context if agent.sees_context else None
        added = added + agent.denoiser.update(setup, first, noisy, seen).total
    slopes = (added[1:] - added[0]).T
    return {
        "MEAN": known.context_mean,
        "CONTEXT_ROOT": np.linalg.cholesky(known.context_cov),
        "NOISE_ROOT": np.linalg.cholesky(known.noise_cov),
        "GAIN": shrinkage.gain,
        "CENTRE": shrinkage.mean - shrinkage.gain @ shrinkage.mean,
        "LEFT": np.diagonal(shrinkage.cov),
        "ON_NOISY": slopes[:, :d],
        "ON_CONTEXT": slopes[:, d:],
        "START": added[0],
    }
