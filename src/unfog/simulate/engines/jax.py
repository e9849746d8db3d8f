"""The engine compiled by JAX, on CPU, GPU or several devices: the same contract as the NumPy engine.

Random numbers are made on the device, one threefry stream per (seed, trial, purpose, round), so they do not
depend on the batch or on how trials are spread over devices. With `draws="numpy"` those of the
NumPy engine are fed instead: both engines then take the same actions and agree to rounding.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.channel.knowledge import as_told
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import RoundDraws
from unfog.simulate.draws import StepDraws, reveal_uniforms, truth_draws
from unfog.simulate.engines import device_draws, jax_room, room
from unfog.simulate.engines.cost import Cost
from unfog.simulate.engines.jax_program import Inputs, Program, Stretch, offer_flow
from unfog.simulate.engines.room import Term
from unfog.simulate.job import MOMENTS, Job, Part, Tick, refuse_nonsense
from unfog.validation import InputError

COSTS = {  # by platform
    "cpu": Cost(2**12, 2.5, call=5e-6, each=3.5e-7, root=2.3e-9, arm=9.5e-10, past=2e-10, share=1.0, parts=2),
    "gpu": Cost(2**17, 3.0, call=6e-5, each=3e-10, root=6e-12, arm=1.7e-12, past=1e-12, share=1.0),
}
STRIDE = 500  # rounds between two looks at the clock, so that progress shows and an interrupt is heard


def platform() -> str:
    """Where JAX runs: cpu, gpu, ..."""
    return str(jax.default_backend())


def precision(asked: str | None) -> str:
    """The precision of the maths: float32 on a GPU and float64 elsewhere, unless told."""
    return asked or ("float32" if platform() == "gpu" else "float64")


def keep_compiled_programs() -> None:
    """Cache compiled programs between processes, unless the user has set a cache of their own."""
    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "unfog" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def part(job: Job, played: list[tuple[Array, Array]], trials: int) -> Part:
    """What each agent gave, totals (points, losses, trials) and moments, under the names of the losses."""
    names = job.losses
    found = {n: np.stack([stored[:, i, :trials].T for stored, _ in played]) for i, n in enumerate(names)}
    if len(job.curve):
        found |= {MOMENTS + n: np.stack([m[:, i] for _, m in played]) for i, n in enumerate(names)}
    return found


class Randomness:
    """The draws of a batch of trials, on the device, trial-last; the same for every agent."""

    def __init__(self, job: Job, trials: range, batch: int) -> None:
        """Fill the batch up, evenly for all devices."""
        devices = len(jax.devices())
        size = -(-max(batch, len(trials)) // devices) * devices
        self.job, self.trials, self.padded = job, trials, range(trials.start, trials.start + size)
        self.dtype = precision(job.precision)
        self.ids = spread(jnp.arange(trials.start, trials.start + size, dtype=jnp.uint32))
        self.active = (self.ids < trials.stop).astype(jnp.float64)
        self.truth = self._truth()
        self.world = self.rounds("rounds", job.problem.round_normals())
        self.shown = self._shown()

    def _truth(self) -> dict[str, Array]:
        """The draws that make the truth: (size, trials) by name."""
        wanted, seed = self.job.problem.truth_draws(), self.job.seed
        if self.job.draws == "numpy":
            given = truth_draws(seed, self.padded, wanted)
            return {n: spread(jnp.asarray(x.reshape(len(x), -1).T, self.dtype)) for n, x in given.items()}

        shapes = tuple((name, draws.law, prod(draws.shape)) for name, draws in wanted.items())
        return _draws(device_draws.seed_words(seed), self.ids, shapes, self.dtype)

    def rounds(self, purpose: str, width: int) -> Any:
        """A key per trial, or the draws themselves: (rounds, width, trials)."""
        if self.job.draws == "numpy":
            given = RoundDraws(self.job.seed, self.padded, purpose, width).next(self.job.rounds)
            return spread(jnp.asarray(given.transpose(1, 2, 0), self.dtype))
        return _keys(device_draws.seed_words(self.job.seed), self.ids, purpose)

    def _shown(self) -> Any:
        """Likewise for what is shown of true contexts, in double precision; nothing where all is."""
        width = reveal_uniforms(self.job.problem)
        if not width:
            return ()
        if self.job.draws == "device":
            return _keys(device_draws.seed_words(self.job.seed), self.ids, "revealed")
        drawn = RoundDraws(self.job.seed, self.padded, "revealed", width, law="uniform").next(self.job.rounds)
        return spread(jnp.asarray(drawn.transpose(1, 2, 0)))

    def steps(self, agent: Agent) -> Any:
        """A key per trial for the learner's chain, or its draws: (rounds, steps, width, trials)."""
        job, chain = self.job, agent.chain
        if chain is None:
            return ()
        if job.draws == "device":
            return _keys(device_draws.seed_words(job.seed), self.ids, "learner")
        known = job.problem.knowledge()
        shape = job.rounds, chain.steps, chain.normals(known, job.rounds), len(self.padded)
        whole, given = np.zeros(shape, self.dtype), StepDraws(job.seed, self.padded, chain, known)
        for seen in range(job.rounds):
            drawn = given.next(seen).transpose(0, 2, 1)
            whole[seen, :, : drawn.shape[1]] = drawn
        return spread(jnp.asarray(whole))


# Compiled, because hundreds of small steps one by one would take longer than a batch of rounds.
_keys = jax.jit(device_draws.keys, static_argnames="purpose")


@partial(jax.jit, static_argnames=("shapes", "dtype"))
def _draws(seed: Any, trials: Any, shapes: tuple[tuple[str, str, int], ...], dtype: str) -> dict[str, Array]:
    """The draws that make the truth: (size, trials) by name."""
    make = {"normal": device_draws.normals, "uniform": device_draws.uniforms}
    zero = jnp.zeros((), jnp.uint32)
    return {
        name: make[law](device_draws.keys(seed, trials, name), zero, size, dtype)
        for name, law, size in shapes
    }


def spread(values: Array) -> Array:
    """An array split over all devices along its last axis, the trials."""
    devices = jax.devices()
    if len(devices) == 1:
        return values
    mesh = jax.sharding.Mesh(np.array(devices), ("trials",))
    split = jax.sharding.PartitionSpec(*[None] * (values.ndim - 1), "trials")
    return jax.device_put(values, jax.sharding.NamedSharding(mesh, split))


def _play(job: Job, agent: Agent, draws: Randomness, tick: Tick) -> tuple[Array, Array]:
    """Run one agent: totals (points, losses, trials) and moments (curve points, losses, 2)."""
    gpu, given = platform() == "gpu", job.draws == "numpy"
    space = None if agent.keeps is None else job.rounds
    program = _program(job.problem, agent, job.decompose, given, draws.dtype, gpu, space)
    privilege = Privilege(program.truth(draws.truth).bias) if agent.privileged is not None else None
    setup, memory = program.cast(rounds.begin(agent, program.known, privilege, space, late=False))
    inputs = Inputs(
        draws=draws.truth,
        setup=setup,
        shrinkage=program.cast(as_told(program.known)),
        world=draws.world,
        shown=draws.shown,
        choices=draws.rounds("agent", agent.chooser.normals(program.known)),
        steps=draws.steps(agent),
        active=draws.active,
    )
    carry = program.begin(inputs, memory, points=len(job.grid), curve=len(job.curve))
    for first in range(0, job.rounds, STRIDE):
        last = min(first + STRIDE, job.rounds)
        stretch = Stretch(first, last, _slots(job.grid, first), _slots(job.curve, first))
        carry = program.advance(carry, inputs, stretch)
        refuse_nonsense(agent.name, bool(program.sound(carry, setup)))
        tick((last - first) * len(draws.trials))
    return np.asarray(carry.stored), np.asarray(carry.moments)


@contextmanager
def _named(agent: Agent) -> Iterator[None]:
    """Refuse what cannot be compiled: a part of this agent's, or a function of the problem's."""
    try:
        yield
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        problem = f"jax cannot compile {agent.name!r} on this problem ({str(error).splitlines()[0]})"
        allowed = "numpy, or functions that take their library from their arguments: x.__array_namespace__()"
        raise InputError("engine", problem, allowed) from error


def _slots(points: Ints, first: int) -> Array:
    """For every round of a stretch the point that its total is written to: the first at or after it."""
    return jnp.asarray(np.searchsorted(points, np.arange(first + 1, first + STRIDE + 1)), jnp.int32)


_program: Any = lru_cache(maxsize=64)(Program)
"""The program of an agent on a problem, made once so that it is compiled once. Agents are values."""


class Jax:
    """The engine. It uses its device whole, and rounds differently for other batch sizes: a job has one."""

    name = "jax"
    packages: tuple[str, ...] = ("jax",)
    shares_work = False

    @property
    def label(self) -> str:
        """With the device."""
        return f"{self.name} on {platform()}"

    def refuse(self, job: Job) -> None:
        """Worlds that show true contexts late or to who asks, or tell of several units; some agents."""
        for agent in job.agents:
            if agent.interpreted:
                raise InputError(
                    "engine", f"{self.name} cannot play {agent.name!r}: {agent.interpreted}", "numpy"
                )
        if job.problem.several > 1:
            raise InputError("engine", f"{self.name} knows one unit, not {job.problem.several}", "numpy")
        if job.problem.late or job.problem.asked:
            how = "late" if job.problem.late else "where they are asked for"
            raise InputError("engine", f"{self.name} cannot show true contexts {how}", "numpy")

    def settle(self, asked: str | None) -> str | None:
        """Single on a GPU unless told."""
        return precision(asked)

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:  # noqa: ARG002
        """Processes would share the device."""
        return COSTS.get(platform(), COSTS["cpu"]).seconds(job, trials)

    def batch(self, job: Job, trials: int) -> int:
        """Equal batches of as many trials as a device holds with ease, so that one program serves all."""
        most, space = (2**17, 2**33) if platform() == "gpu" else (2**12, 2**29)
        return -(-trials // -(-trials // max(1, min(most, space // room.for_each(self.terms(job))))))

    def terms(self, job: Job) -> list[Term]:
        """Where its memory goes."""
        return jax_room.terms(job)

    def bytes(self, job: Job, trials: int) -> int:
        """What is there at the peak."""
        return room.peak(self.terms(job), trials)

    def device(self) -> int | None:
        """What all devices have together, where they have memory of their own."""
        if platform() == "cpu":
            return None
        found = [int((one.memory_stats() or {}).get("bytes_limit", 0)) for one in jax.devices()]
        return sum(found) if all(found) else None

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials, as the NumPy engine gives them.

        Programs are compiled for the job's batch of trials: fewer are filled up with others, then dropped.
        """
        keep_compiled_programs()
        offer_flow(platform())
        played = []
        with jax.enable_x64(True):
            draws = Randomness(job, trials, job.batch)
            for agent in job.agents:
                with _named(agent):
                    played.append(_play(job, agent, draws, tick))
        return part(job, played, len(trials))


ENGINE = Jax()
