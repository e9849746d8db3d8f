"""The engine of one GPU kernel: for Gaussian problems with quadratic features, many times the compiled scan.

JAX generates the truth of every trial as in its own engine; kernel.cu plays the rounds. The kernel supports
denoisers with gains that all trials share, `Conjugate` and `Scaled`, `Thompson` and `RandUcb`.

Its source, for one problem and one agent, is their numbers followed by kernel.cu. A denoiser is described by
numbers that `gains` finds by applying the denoiser itself to unit vectors, so that no formula of an agent is
written a second time.

It is compiled and launched by the driver and NVRTC alone, which come with JAX for GPUs. Arrays are JAX's own:
its context is the device's primary one, which our kernel shares, so that passing a pointer is enough.
Compiled kernels are cached beside JAX's (`XDG_CACHE_HOME/unfog/cuda`).
"""

import ctypes
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unfog._io import write_atomically
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.choose.greedy import TIE
from unfog.agents.denoise.bias import Tally
from unfog.agents.learn import Conjugate, Scaled
from unfog.channel.knowledge import Knowledge, known_shrinkage
from unfog.maths.arrays import Array, Ints
from unfog.simulation.engines import Cost
from unfog.simulation.engines import jax as jax_engine
from unfog.simulation.job import Job, Part, Tick
from unfog.theory import regret
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

BATCH = 2**17  # trials side by side
COST = Cost(BATCH, 3.0, call=1e-5, each=1e-10, root=1e-12, arm=4e-13, past=0.0, share=1.0)
OTHERS = "numpy, numba, jax, auto"
THREADS = 256, 128  # of a block; the larger is faster if there is memory for its actions
OPTIONS = ("--prec-div=false", "--prec-sqrt=false", "--std=c++17")
CAPABILITY = (75, 76)  # attributes of a device: major, minor
BLOCK_SHARED_MOST = 97  # attribute of a device: bytes of shared memory that a block can ask for
SHARED_MOST = 8  # attribute of a function: bytes of shared memory that a launch may ask for
NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
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
    """The trials that a block of threads plays, and the bytes of its shared memory for actions, or 0."""

    threads: int
    shared: int


class Gains(NamedTuple):
    """A denoiser as numbers: its belief is N(offset + on_noisy chat + on_total total, cov)."""

    offset: Array  # (rounds, d)
    cov: Array  # (rounds, d, d)
    on_noisy: Array  # (rounds, d, d)
    on_total: Array  # (rounds, d, d)


def kernel_source(
    problem: GaussianProblem, agent: Agent, decompose: bool, host_draws: bool, precision: str, block: Block
) -> str:
    """The source to compile for a GPU."""
    constants, text = numbers(problem, agent, decompose, host_draws), kernel()
    sizes = f"#define THREADS {block.threads}\n#define IN_SHARED {int(block.shared > 0)}"
    return "\n".join([_define_types(precision), sizes, constants, text, _ENTRY])


def block_size(problem: GaussianProblem, precision: str, most: int) -> Block:
    """The largest block whose actions fit into so much shared memory; if none does, they stay outside."""
    each = problem.arms() * problem.dim * np.dtype(precision).itemsize
    blocks = [Block(threads, threads * each) for threads in THREADS if threads * each <= most]
    return blocks[0] if blocks else Block(THREADS[-1], 0)


def kernel() -> str:
    """The source that all problems and agents share."""
    return (resources.files("unfog.simulation.engines") / "kernel.cu").read_text("utf-8")


def _define_types(precision: str) -> str:
    """Define the names of types and functions for a precision."""
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


def numbers(problem: GaussianProblem, agent: Agent, decompose: bool, host_draws: bool) -> str:
    """Define what all rounds and trials share: sizes and switches, settings, and arrays."""
    learner, chooser = agent.learner, agent.chooser
    scaled, bounds = isinstance(learner, Scaled), isinstance(chooser, RandUcb)
    switches = {
        "D": problem.dim,
        "ARMS": problem.arms(),
        "SCALES": learner.scales if isinstance(learner, Scaled) else 1,
        "SCALED": int(scaled),
        "RANDUCB": int(bounds),
        "GIVEN": int(host_draws),
        "SEES": int(agent.sees_context),
        "PRIVILEGED": int(agent.can.see_bias is not None),
        "DECOMPOSE": int(decompose),
        "LIMITED": int(agent.clip_sd is not None),
    }
    settings = {"TIE": TIE, "REWARD_VAR": problem.reward_var, "LIMIT": agent.clip_sd or 0.0}
    settings |= {"TRUST": learner.trust if isinstance(learner, Scaled) else 0.0}
    for field in ("level", "tail", "growth", "patience"):
        settings[field.upper()] = vars(chooser)[field] if bounds else 1.0
    lines = [f"#define {name} {value}" for name, value in switches.items()]
    lines += [f"#define {name} ((real){float(value)!r})" for name, value in settings.items()]
    lines += [_format_table(name, values) for name, values in _arrays(problem, agent).items()]
    return "\n".join(lines)


def _format_table(name: str, values: Array) -> str:
    entries = ", ".join(repr(float(value)) for value in np.ravel(values))
    return f"TABLE {name}[] = {{{entries}}};"


def _arrays(problem: GaussianProblem, agent: Agent) -> dict[str, Array]:
    """The world's moments, the oracle's belief centre + gain (chat - gamma*), and the update of the total.

    The update adds start + on_noisy chat + on_context c.
    """
    known, d = problem.knowledge(), problem.dim
    shrinkage = known_shrinkage(known)
    setup, first = set_up(problem, agent)
    noisy, context = _make_probes(d)
    totals = np.zeros((2 * d + 1, d))
    if isinstance(first, Tally):
        revealed = context if agent.sees_context else None
        totals = totals + agent.denoiser.update(setup, first, noisy, revealed).total
    slopes = (totals[1:] - totals[0]).T
    return {
        "MEAN": known.context_mean,
        "CONTEXT_ROOT": np.linalg.cholesky(known.context_cov),
        "NOISE_ROOT": np.linalg.cholesky(known.noise_cov),
        "GAIN": shrinkage.gain,
        "CENTRE": shrinkage.mean - shrinkage.gain @ shrinkage.mean,
        "LEFT": np.diagonal(shrinkage.cov),
        "ON_NOISY": slopes[:, :d],
        "ON_CONTEXT": slopes[:, d:],
        "START": totals[0],
    }


def gains(problem: GaussianProblem, agent: Agent, rounds: int) -> Gains:
    """The denoiser's gains for a measurement and a total in every round."""
    d = problem.dim
    setup, first = set_up(problem, agent)
    noisy, total = _make_probes(d)
    counts = np.arange(float(rounds)).reshape(rounds, 1)
    belief = agent.denoiser.predict(setup, Tally(counts, total) if isinstance(first, Tally) else first, noisy)
    means = np.broadcast_to(belief.mean, (rounds, *noisy.shape))
    cov = np.broadcast_to(belief.cov, (rounds, 1, d, d))[:, 0]
    slopes = (means[:, 1:] - means[:, :1]).swapaxes(1, 2)
    return Gains(means[:, 0], cov, slopes[:, :, :d], slopes[:, :, d:])


def _make_probes(dim: int) -> tuple[Array, Array]:
    """Unit vectors over two arguments, after a row of zeros: (2d + 1, d) each."""
    unit = np.eye(2 * dim + 1, 2 * dim, k=-1)
    return unit[:, :dim], unit[:, dim:]


def set_up(problem: GaussianProblem, agent: Agent) -> tuple[Any, Any]:
    """Set up the denoiser; a bias that it knows is subtracted from the measurement, so here it is zero."""
    privilege = None if agent.can.see_bias is None else Privilege(np.zeros(problem.dim))
    setup = agent.denoiser.setup(problem.knowledge().limited(), privilege)
    return setup, agent.denoiser.start(setup)


class Kernel:
    """A loaded kernel, whose pointers are passed in one structure."""

    def __init__(self, cubin: bytes, block: Block) -> None:
        """Load the kernel into the primary context."""
        module, self._function, self._block = ctypes.c_void_p(), ctypes.c_void_p(), block
        _enter_context()
        _check(_driver().cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
        _check(_driver().cuModuleGetFunction(ctypes.byref(self._function), module, b"play"), "play")
        _check(_driver().cuFuncSetAttribute(self._function, SHARED_MOST, block.shared), "cuFuncSetAttribute")

    def __call__(self, pointers: Sequence[int], trials: int, rounds: int, first: int) -> None:
        """Play the rounds, and wait until they are done."""
        _enter_context()
        arguments = (ctypes.c_void_p * len(pointers))(*pointers)
        counts = [ctypes.c_int(number) for number in (trials, rounds, first)]
        params = (ctypes.c_void_p * 4)(*(ctypes.addressof(x) for x in (arguments, *counts)))
        threads, shared = self._block
        grid = (-(-trials // threads), 1, 1, threads, 1, 1)
        code = _driver().cuLaunchKernel(self._function, *grid, shared, None, params, None)
        _check(code, "cuLaunchKernel")
        _check(_driver().cuCtxSynchronize(), "the kernel")


@lru_cache(maxsize=64)
def compiled(source: str, block: Block) -> Kernel:
    """The kernel of a source, compiled for this device, or read from the cache."""
    target = f"sm_{_read_capability()}"
    digest = hashlib.sha256("\n".join([source, target, *OPTIONS]).encode()).hexdigest()
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unfog" / "cuda" / digest
    cubin = _read_cubin(path)
    if cubin is None:
        cubin = _compile(source, target)
        _write_cubin(path, cubin)
    return Kernel(cubin, block)


def _read_cubin(path: Path) -> bytes | None:
    """Read a cached kernel; None if there is none, or its hash, which precedes it, is wrong."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None


def _write_cubin(path: Path, cubin: bytes) -> None:
    """Cache a kernel, if the folder can be written to."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, hashlib.sha256(cubin).digest() + cubin)


def _compile(source: str, target: str) -> bytes:
    rtc, program = _nvrtc(), ctypes.c_void_p()
    _check(
        rtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None), "NVRTC"
    )
    options = [option.encode() for option in (f"--gpu-architecture={target}", *OPTIONS)]
    code = rtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if code:
        log = _read_text(rtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
        raise RuntimeError(f"the kernel does not compile: {log.decode(errors='replace')}")
    return _read_text(rtc, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")


def _read_text(rtc: Any, program: Any, size_of: str, get: str) -> bytes:
    size = ctypes.c_size_t()
    _check(rtc[size_of](program, ctypes.byref(size)), size_of)
    text = ctypes.create_string_buffer(size.value)
    _check(rtc[get](program, text), get)
    return text.raw


def _read_capability() -> str:
    return "".join(str(_read_attribute(which)) for which in CAPABILITY)


def most_shared() -> int:
    """Bytes of shared memory that a block can have on this device."""
    return _read_attribute(BLOCK_SHARED_MOST)


def _read_attribute(which: int) -> int:
    device, value = ctypes.c_int(), ctypes.c_int()
    _check(_driver().cuInit(0), "cuInit")
    _check(_driver().cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    _check(_driver().cuDeviceGetAttribute(ctypes.byref(value), which, device), "cuDeviceGetAttribute")
    return value.value


@lru_cache(maxsize=1)
def _get_context() -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    _check(_driver().cuInit(0), "cuInit")
    _check(_driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    return context


def _enter_context() -> None:
    """Enter the context of JAX's arrays."""
    _check(_driver().cuCtxSetCurrent(_get_context()), "cuCtxSetCurrent")


@lru_cache(maxsize=1)
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise InputError("engine", "cuda needs NVIDIA's driver", "numpy, numba, jax, auto") from None


@lru_cache(maxsize=1)
def _nvrtc() -> Any:
    """Load the compiler: the system's, or the one in the packages that JAX needs on a GPU."""
    for name in (*NAMES, *_list_packaged()):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    allowed = "numpy, numba, jax, auto; it comes with JAX for GPUs: pip install 'jax[cuda13]'"
    raise InputError("engine", "cuda needs NVIDIA's compiler NVRTC", allowed)


def _list_packaged() -> list[str]:
    spec = find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    return [str(file) for folder in folders for file in sorted(folder.glob("*/lib/libnvrtc.so.*"))]


def _check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed on the GPU (error {code})")


def check_job(job: Job) -> None:
    """Raise unless there is one GPU, a quadratic Gaussian problem, and denoisers of the catalogue.

    Other denoisers are refused even if they look right: tests show only for the catalogue that they are
    affine.
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
        if not _can_play(job.problem, agent):
            raise InputError("engine", f"cuda cannot run {agent.name}", OTHERS)


def _can_play(problem: GaussianProblem, agent: Agent) -> bool:
    """Whether the kernel has the agent's denoiser, learner and chooser."""
    if not any(agent.denoiser == row.denoiser for row in AGENTS.values()):
        return False
    _, first = set_up(problem, agent)
    learner = agent.learner
    learns = type(learner) is Conjugate or (type(learner) is Scaled and not learner.mixed)
    affine = first == () or isinstance(first, Tally)
    return affine and learns and type(agent.chooser) in (Thompson, RandUcb)


def on_host() -> bool:
    """Whether the kernel runs without a GPU, as its tests do."""
    return False


class _Program:
    """The kernel of one agent on one problem, and its first state."""

    def __init__(
        self, problem: GaussianProblem, agent: Agent, decompose: bool, host_draws: bool, precision: str
    ):
        """Compile the kernel, or read it from the cache."""
        self.problem, self.agent, self.precision = problem, agent, precision
        self.losses = len(regret.names(decompose))
        block = block_size(problem, precision, most_shared())
        source = kernel_source(problem, agent, decompose, host_draws, precision, block)
        self.kernel = compiled(source, block)
        program = jax_engine.Program(problem, agent, decompose, host_draws, precision, trial_last=True)
        self.truth = program.truth
        self.begin = jax.jit(self._begin)

    def _begin(self, draws: dict[str, Array]) -> tuple[list[Array], list[Array]]:
        """The truth (actions, theta, bias) and the state that rounds change, trial-last in this precision."""
        d, truth = self.problem.dim, self.truth(draws)
        trials, features = truth.theta.shape[0], truth.features
        table: Any = features
        actions = jnp.moveaxis(table.table[..., d : 2 * d], 0, -1).reshape(-1, trials)
        root, mean, rates, weights = _read_prior(self.agent, self.problem.knowledge())
        lower = np.tril_indices(root.shape[-1])
        lines = [root[:, lower[0], lower[1]].reshape(-1), mean.reshape(-1), rates, weights, np.zeros(d)]
        lines += [np.zeros(self.losses)] * 2
        state = [jnp.repeat(jnp.asarray(x, self.precision)[:, None], trials, 1) for x in lines]
        return [x.astype(self.precision) for x in (actions, truth.theta.T, truth.bias.T)], state


def _read_prior(agent: Agent, known: Knowledge) -> tuple[Array, Array, Array, Array]:
    """Roots (scales, m, m), means, rates and logarithms of weights of the belief before any reward."""
    state: Any = agent.learner.start(known, None)
    if isinstance(agent.learner, Scaled):
        return state.beliefs.root, state.beliefs.mean, state.rates, state.weights
    return state.root[None], state.mean, np.zeros(1), np.zeros(1)


_program = lru_cache(maxsize=64)(_Program)


def _play(job: Job, agent: Agent, draws: jax_engine.Randomness, tick: Tick) -> tuple[Array, Array]:
    """Run one agent: totals (points, losses, trials) and moments (curve points, losses, 2)."""
    problem: Any = job.problem
    host_draws, size = job.draws == "numpy", len(draws.ids)
    program = _program(problem, agent, job.decompose, host_draws, draws.dtype)
    truth, state = program.begin(draws.truth)
    table = [x.reshape(job.rounds, -1) for x in gains(problem, agent, job.rounds)]
    schedule = np.concatenate(table, 1).astype(draws.dtype)
    choices = draws.rounds("agent", agent.chooser.normals(problem.knowledge()))
    stored, moments = [], []
    for first in range(0, job.rounds, jax_engine.STRIDE):
        last = min(first + jax_engine.STRIDE, job.rounds)
        points = np.union1d(*(x[(x > first) & (x <= last)] for x in (job.grid, job.curve)))
        totals = jnp.zeros((max(1, len(points)), program.losses, size), draws.dtype)
        inputs = [x[first:last] if host_draws else jnp.stack(x) for x in (draws.world, choices)]
        slots = np.full(last - first, -1, np.int32)
        slots[points - first - 1] = np.arange(len(points))
        arrays = [*truth, *inputs, jnp.asarray(schedule[first:last]), jnp.asarray(slots), *state, totals]
        # The kernel modifies arrays that nobody else has: they come from `begin` and the line above.
        pointers = [jax.block_until_ready(x).unsafe_buffer_pointer() for x in arrays]
        program.kernel(pointers, size, last - first, first)
        at_grid, at_curve = (np.flatnonzero(np.isin(points, x)) for x in (job.grid, job.curve))
        stored += [np.asarray(_take(totals, at_grid), np.float64)] if len(at_grid) else []
        moments += [_moments(_take(totals, at_curve)[:, :, : len(draws.trials)])] if len(at_curve) else []
        tick((last - first) * len(draws.trials))
    return np.concatenate(stored), np.concatenate(moments) if moments else np.empty((0, program.losses, 2))


def _take(totals: Any, indices: Ints) -> Any:
    """The totals at these indices; without a copy if that is all of them."""
    return totals if len(indices) == len(totals) else totals[indices]


def _moments(totals: Any) -> Array:
    """Mean over trials and sum of squared deviations: (points, losses, trials) -> (points, losses, 2)."""
    totals = totals.astype(jnp.float64)
    return np.stack([totals.mean(-1), totals.var(-1) * totals.shape[-1]], -1)


class Cuda(jax_engine.Jax):
    """The engine."""

    name = "cuda"

    def refuse(self, job: Job) -> None:
        """Refuse problems and agents that the kernel does not support."""
        super().refuse(job)
        check_job(job)

    def settle(self, wanted: str | None) -> str | None:
        """By default single precision."""
        return wanted or "float32"

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:  # noqa: ARG002
        """The estimate, including seconds for the compiler."""
        return COST.seconds(job, trials)

    def batch(self, job: Job, trials: int) -> int:  # noqa: ARG002
        """Equal batches of at most `BATCH` trials."""
        return -(-trials // -(-trials // BATCH))

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials, like those of the other engines."""
        jax_engine.keep_compiled_programs()
        settled = job._replace(precision=self.settle(job.precision))
        with jax.enable_x64(True):
            draws = jax_engine.Randomness(settled, trials, job.batch)
            results = [_play(settled, agent, draws, tick) for agent in job.agents]
        return jax_engine.part(job, results, len(trials))


ENGINE = Cuda()
