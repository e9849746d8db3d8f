"""The engine compiled by JAX, for a CPU, a GPU or several devices: the same contract as the NumPy engine.

One agent on one problem is a compiled loop over rounds, batched over trials. The maths is the agents',
worlds' and features' own, unchanged. A program is compiled for a batch size and not for a horizon, unless the
learner keeps all past rounds: the rounds to play are an argument. On a GPU everything that is kept between
rounds is stored trial-last, so that neighbouring threads read neighbouring numbers; on a CPU it is stored
trial-first, as the maths is written.

Random numbers are generated on the device: Threefry-2x32 words (J. K. Salmon, M. A. Moraes, R. O. Dror and
D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*), turned into normals by Box and Muller. The key
consists of seed, trial and purpose, and the counter of round and position, so that a draw depends on nothing
else: not on the batch, the device, or how trials are spread over devices. Both words of a pair are used. With
`draws="numpy"` those of the NumPy engine are used instead: both engines then choose the same arms and agree
to rounding.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.runner import StepDraws
from unfog.channel.knowledge import Shrinkage, known_shrinkage
from unfog.maths.arrays import Array, Flow, Ints, register_flow
from unfog.maths.random import RoundDraws, purpose_number
from unfog.simulation import engines
from unfog.simulation.engines import ACTIONS, NUMBER, ROUND, Cost, MemoryTerm
from unfog.simulation.job import (
    MOMENTS,
    Job,
    Part,
    Tick,
    emitted,
    refuse_nonsense,
    reveal_uniforms,
    truth_draws,
)
from unfog.simulation.player import make_observation, to_reveal
from unfog.theory import regret
from unfog.validation import LARGEST, InputError
from unfog.worlds.problem import Emission, Problem, Truth

STRIDE = 500  # rounds in a call of the program, after which progress is reported and interrupts are handled
COSTS = {  # by platform
    "cpu": Cost(2**12, 2.5, call=5e-6, each=3.5e-7, root=2.3e-9, arm=9.5e-10, past=2e-10, share=1.0, parts=2),
    "gpu": Cost(2**17, 3.0, call=6e-5, each=3e-10, root=6e-12, arm=1.7e-12, past=1e-12, share=1.0),
}
PROCESS = 350e6  # bytes: the interpreter, JAX, its compiler and unfog

Words: TypeAlias = Any
"""An array of unsigned 32-bit numbers."""

_SHIFTS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key: tuple[Words, Words], first: Words, second: Words) -> tuple[Words, Words]:
    """Two random words from a key and a counter, all unsigned 32-bit, broadcast against each other."""
    keys = (*key, key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    a, b = first + keys[0], second + keys[1]
    for block in range(5):
        for shift in _SHIFTS[block % 2]:
            a = a + b
            b = ((b << np.uint32(shift)) | (b >> np.uint32(32 - shift))) ^ a
        a, b = a + keys[(block + 1) % 3], b + (keys[(block + 2) % 3] + np.uint32(block + 1))
    return a, b


def seed_words(seed: int) -> tuple[Words, Words]:
    """A seed as two words."""
    return np.uint32(seed >> 32), np.uint32(seed & 0xFFFFFFFF)


def keys(seed: tuple[Words, Words], trials: Words, purpose: str) -> tuple[Words, Words]:
    """A key per trial for one purpose: trials (n,) unsigned -> two words (n,) each."""
    return threefry(seed, trials, np.uint32(purpose_number(purpose)) + 0 * trials)


def _draw_pairs(key: tuple[Words, Words], counter: Words, count: int, dtype: str) -> tuple[Array, Array]:
    """Two numbers strictly between 0 and 1 for each of `count` positions: (..., count, n) each."""
    xp = key[0].__array_namespace__()
    positions = xp.arange(count, dtype=xp.uint32)[:, None]
    words = threefry(key, xp.asarray(counter, dtype=xp.uint32)[..., None, None] + 0 * positions, positions)
    half, scale = xp.asarray(0.5, dtype=dtype), xp.asarray(2.0**-32, dtype=dtype)
    first, second = ((word.astype(dtype) + half) * scale for word in words)
    return first, second


def uniforms(key: tuple[Words, Words], counter: Words, count: int, dtype: str) -> Array:
    """Numbers strictly between 0 and 1: keys (n,) and counters (...,) -> (..., count, n)."""
    xp = key[0].__array_namespace__()
    numbers: Array = xp.concat(_draw_pairs(key, counter, (count + 1) // 2, dtype), axis=-2)
    return numbers[..., :count, :]


def normals(key: tuple[Words, Words], counter: Words, count: int, dtype: str) -> Array:
    """Standard normals: keys (n,) and counters (...,) -> (..., count, n)."""
    xp = key[0].__array_namespace__()
    near, far = _draw_pairs(key, counter, (count + 1) // 2, dtype)
    radius, angle = xp.sqrt(-2 * xp.log(near)), xp.asarray(2 * np.pi, dtype=dtype) * far
    numbers: Array = xp.concat([radius * xp.cos(angle), radius * xp.sin(angle)], axis=-2)
    return numbers[..., :count, :]


class Inputs(NamedTuple):
    """The inputs of a batch of trials; draws are stored trial-last."""

    draws: dict[str, Array]  # (size, trials) each: the truth, as standard draws
    setup: Any  # the agent's parameters
    shrinkage: Shrinkage
    world: Any  # keys, two words (trials,), or the draws (rounds, w, trials)
    revealed: Any  # likewise for what is revealed of true contexts; empty if all is
    choices: Any  # likewise for the agent
    steps: Any  # likewise for its learner's chain, (rounds, steps, n, trials); empty if it has none
    active: Array  # (trials,) 1, or 0 for a trial that only fills up the batch


class Stretch(NamedTuple):
    """Consecutive rounds; its tables always have the same length, so that a program fits every horizon."""

    first: Any
    last: Any  # exclusive
    slots: Array  # (STRIDE,) the index at which each round's totals are stored
    curve_slots: Array  # (STRIDE,) likewise for the moments


class Carry(NamedTuple):
    """The state that a round passes to the next."""

    memory: Any
    totals: Array  # (losses, trials)
    stored: Any  # (points, losses, trials)
    moments: Any  # (curve points, losses, 2): mean over trials, sum of squared deviations


class Program:
    """An agent on a problem, compiled at first use for each batch size."""

    def __init__(
        self,
        problem: Problem,
        agent: Agent,
        decompose: bool,
        host_draws: bool,
        precision: str,
        trial_last: bool,
        room: int | None = None,
    ) -> None:
        """Nothing is compiled yet. `room` is how many rounds a learner that keeps them can remember."""
        self.problem, self.agent, self.decompose = problem, agent, decompose
        self.host_draws, self.precision, self.trial_last = host_draws, precision, trial_last
        self.known, self.room = problem.knowledge(), room
        self.losses = regret.names(decompose, discrete=problem.discrete)
        self.begin = jax.jit(self._begin, static_argnames=("points", "curve"))
        self.advance = jax.jit(self._advance, donate_argnums=0)
        self.sound = jax.jit(self._is_sound)

    def cast(self, tree: Any) -> Any:
        """Cast floats to the precision of the maths; leave integers and booleans."""

        def one(x: Any) -> Array:
            return jnp.asarray(
                x, self.precision if jnp.issubdtype(jnp.result_type(x), jnp.floating) else None
            )

        return jax.tree.map(one, tree)

    def truth(self, draws: dict[str, Array]) -> Truth:
        """The truth of every trial, from its draws."""
        shapes = {name: draw.shape for name, draw in self.problem.truth_draws().items()}
        shaped = {name: x.mT.reshape(x.shape[1], *shapes[name]) for name, x in draws.items()}
        truth = self.problem.truth(shaped)
        return truth._replace(theta=self.cast(truth.theta), bias=self.cast(truth.bias))

    def _normals(self, source: Any, t: Array, width: int) -> Array:
        """Standard normals of a round, (trials, width)."""
        draws = source[t] if self.host_draws else normals(source, t, width, self.precision)
        return draws.mT

    def _advance_chain(self, inputs: Inputs, memory: Any, t: Array) -> Any:
        """Take the learner's steps, if it has any."""
        chain = self.agent.can.sample
        if chain is None or self.room is None:
            return memory
        width = chain.normals(self.known, self.room)

        def step(number: Any, memory: Any) -> Any:
            counter = t * chain.steps + number
            draws = (
                inputs.steps[t, number]
                if self.host_draws
                else normals(inputs.steps, counter, width, self.precision)
            )
            return self.cast(rounds.advance_chain(self.agent, inputs.setup, memory, draws.mT))

        memory = _broadcast_like(memory, jax.eval_shape(step, 0, memory))
        return jax.lax.fori_loop(0, chain.steps, step, memory)

    def _emit(self, inputs: Inputs, truth: Truth, normal: Array, t: Any) -> Emission:
        """What the world emits in a round, and what of it is revealed; uniforms have double precision."""
        if not self.problem.has_reveal_mask:
            return self.cast(self.problem.emit(truth, normal, t))
        width = reveal_uniforms(self.problem)
        source = inputs.revealed
        uniform = source[t] if self.host_draws else uniforms(source, t, width, "float64")
        return self.cast(emitted(self.problem, truth, normal, uniform.mT, t))

    def _play_round(self, inputs: Inputs, truth: Truth, memory: Any, t: Any) -> tuple[Any, Array]:
        """One round of every trial: the agent's memory after it, and the losses (losses, trials)."""
        agent = self.agent
        normal = self._normals(inputs.world, t, self.problem.round_normals())
        emission = self._emit(inputs, truth, normal, t)
        memory = self._advance_chain(inputs, memory, t)
        choice = self._normals(inputs.choices, t, agent.chooser.normals(self.known))

        rewards = list[Array]()

        def pay(arm: Ints) -> Array:
            row = truth.features.at(emission.context).row(arm)
            rewards.append(self.problem.reward(jnp.vecdot(row, truth.theta), normal))
            return rewards[-1]

        args, observation = (agent, inputs.setup, memory, truth.features), make_observation(emission, t)
        # Contexts come at once, since the engine refuses worlds that reveal them late. If one is revealed in
        # part, or theta is drawn with the belief's root, which is not unique, it follows the reward.
        context = to_reveal(emission) if agent.sees_context else None
        at_once = agent.awaits_context or not agent.chooser.draws_theta
        context_now = context if emission.revealed is None and at_once else None
        memory, decision = rounds.play(*args, observation, choice, pay, context_now)
        if context is not None and context_now is None:
            memory, _ = rounds.reveal(agent, inputs.setup, memory, decision, context)
        best = regret.best_context(inputs.shrinkage, emission, truth.bias, self.problem.has_bias)
        exact = self.decompose and self.problem.discrete
        by_name = regret.round_losses(
            self.problem.rewards,
            truth.features,
            truth.theta,
            best,
            emission.context,
            emission.noisy,
            decision.context,
            decision.arm,
            self.decompose,
            self.cast(self.problem.posterior(truth, emission)) if exact else None,
        )
        losses = jnp.stack([by_name[name] for name in self.losses])
        # Losses are added up in float64 whatever the precision: a long run is a sum of many small ones.
        return self.cast(memory), jnp.where(_finite(emission, *rewards), losses, jnp.nan).astype(jnp.float64)

    def _begin(self, inputs: Inputs, memory: Any, points: int, curve: int) -> Carry:
        """The carry before the first round: the first memory, repeated for every trial."""
        trials, losses = inputs.active.shape[0], len(self.losses)

        def after(memory: Any) -> Any:
            first = jnp.zeros((), jnp.int32)
            return self._play_round(inputs, self.truth(inputs.draws), memory, first)[0]

        for _ in range(2):  # some arrays that all trials share after one round differ after two
            memory = _broadcast_like(memory, jax.eval_shape(after, memory))
        stored, moments = jnp.zeros((points, losses, trials)), jnp.zeros((curve, losses, 2))
        return Carry(self._pack(memory), jnp.zeros((losses, trials)), stored, moments)

    def _advance(self, carry: Carry, inputs: Inputs, stretch: Stretch) -> Carry:
        """Play the rounds of a stretch."""
        packed = self._pack(self.truth(inputs.draws))

        def body(t: Array, carry: Carry) -> Carry:
            memory, losses = self._play_round(inputs, self._unpack(packed), self._unpack(carry.memory), t)
            totals = carry.totals + losses
            stored = carry.stored.at[stretch.slots[t - stretch.first]].set(totals)
            moments = carry.moments
            if moments.shape[0]:
                slot = stretch.curve_slots[t - stretch.first]
                moments = moments.at[slot].set(_compute_moments(totals, inputs.active))
            return Carry(self._pack(memory), totals, stored, moments)

        return jax.lax.fori_loop(stretch.first, stretch.last, body, carry)

    def _is_sound(self, carry: Carry, setup: Any) -> Any:
        """Whether the belief about theta is within bounds."""
        belief = self.agent.learner.belief(setup.learner, self._unpack(carry.memory).learner)
        most = min(LARGEST, float(jnp.finfo(self.precision).max) / 2)
        return (jnp.abs(belief.mean) <= most).all()

    def _pack(self, memory: Any) -> Any:
        return _move_axis(memory, 0, -1) if self.trial_last else memory

    def _unpack(self, memory: Any) -> Any:
        return _move_axis(memory, -1, 0) if self.trial_last else memory


def _finite(emission: Emission, reward: Array) -> Any:
    """Where all that a world emits is finite, (trials,): a compiled loop cannot raise."""
    contexts = jnp.isfinite(emission.context).all(-1) & jnp.isfinite(emission.noisy).all(-1)
    return contexts & jnp.isfinite(reward)


def _broadcast_like(tree: Any, like: Any) -> Any:
    """Broadcast every array to the shape and type of its counterpart."""
    return jax.tree.map(lambda x, y: jnp.broadcast_to(x, y.shape).astype(y.dtype), tree, like)


def _move_axis(tree: Any, source: int, target: int) -> Any:
    """Move an axis of every array; scalars, which all trials share, and functions stay."""
    return jax.tree.map(
        lambda x: jnp.moveaxis(x, source, target) if isinstance(x, jax.Array) and x.ndim else x, tree
    )


def _compute_moments(totals: Array, active: Array) -> Array:
    """Mean and sum of squared deviations over the active trials: (losses, 2)."""
    mean = (totals * active).sum(-1) / active.sum()
    return jnp.stack([mean, (active * (totals - mean[:, None]) ** 2).sum(-1)], -1)


def platform() -> str:
    """Where JAX runs: cpu, gpu, ..."""
    return str(jax.default_backend())


def precision(wanted: str | None) -> str:
    """The precision of the maths: by default float32 on a GPU and float64 elsewhere."""
    return wanted or ("float32" if platform() == "gpu" else "float64")


def offer_flow(platform: str) -> None:
    """Provide the maths with JAX's conditionals and loops on this platform."""
    register_flow(jnp, Flow(jax.lax.cond, jax.lax.while_loop, calls=platform == "cpu"))


def keep_compiled_programs() -> None:
    """Cache compiled programs between processes, unless the user has set a cache of their own."""
    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "unfog" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def part(job: Job, results: list[tuple[Array, Array]], trials: int) -> Part:
    """The totals (points, losses, trials) and moments of all agents, by the names of the losses."""
    names = job.losses
    arrays = {n: np.stack([stored[:, i, :trials].T for stored, _ in results]) for i, n in enumerate(names)}
    if len(job.curve):
        arrays |= {MOMENTS + n: np.stack([m[:, i] for _, m in results]) for i, n in enumerate(names)}
    return arrays


class Randomness:
    """The draws of a batch of trials, on the device, trial-last; the same for every agent."""

    def __init__(self, job: Job, trials: range, batch: int) -> None:
        """Pad the batch to a multiple of the devices."""
        devices = len(jax.devices())
        size = -(-max(batch, len(trials)) // devices) * devices
        self.job, self.trials, self.padded = job, trials, range(trials.start, trials.start + size)
        self.dtype = precision(job.precision)
        self.ids = spread(jnp.arange(trials.start, trials.start + size, dtype=jnp.uint32))
        self.active = (self.ids < trials.stop).astype(jnp.float64)
        self.truth = self._truth()
        self.world = self.rounds("rounds", job.problem.round_normals())
        self.revealed = self._reveal_draws()

    def _truth(self) -> dict[str, Array]:
        """The draws that determine the truth: (size, trials) by name."""
        specs, seed = self.job.problem.truth_draws(), self.job.seed
        if self.job.draws == "numpy":
            values = truth_draws(seed, self.padded, specs)
            return {n: spread(jnp.asarray(x.reshape(len(x), -1).T, self.dtype)) for n, x in values.items()}

        shapes = tuple((name, draws.law, prod(draws.shape)) for name, draws in specs.items())
        return _draws(seed_words(seed), self.ids, shapes, self.dtype)

    def rounds(self, purpose: str, width: int) -> Any:
        """A key per trial, or the draws themselves: (rounds, width, trials)."""
        if self.job.draws == "numpy":
            draws = RoundDraws(self.job.seed, self.padded, purpose, width).next(self.job.rounds)
            return spread(jnp.asarray(draws.transpose(1, 2, 0), self.dtype))
        return _keys(seed_words(self.job.seed), self.ids, purpose)

    def _reveal_draws(self) -> Any:
        """Like `rounds`, for what is revealed of true contexts, in double precision; empty if all is."""
        width = reveal_uniforms(self.job.problem)
        if not width:
            return ()
        if self.job.draws == "device":
            return _keys(seed_words(self.job.seed), self.ids, "revealed")
        draws = RoundDraws(self.job.seed, self.padded, "revealed", width, law="uniform").next(self.job.rounds)
        return spread(jnp.asarray(draws.transpose(1, 2, 0)))

    def steps(self, agent: Agent) -> Any:
        """A key per trial for the learner's chain, or its draws: (rounds, steps, width, trials)."""
        job, chain = self.job, agent.can.sample
        if chain is None:
            return ()
        if job.draws == "device":
            return _keys(seed_words(job.seed), self.ids, "learner")
        known = job.problem.knowledge()
        shape = job.rounds, chain.steps, chain.normals(known, job.rounds), len(self.padded)
        steps, source = np.zeros(shape, self.dtype), StepDraws(job.seed, self.padded, chain, known)
        for t in range(job.rounds):
            draws = source.next(t).transpose(0, 2, 1)
            steps[t, :, : draws.shape[1]] = draws
        return spread(jnp.asarray(steps))


# Compiled, since hundreds of small operations one by one would take longer than a batch of rounds.
_keys = jax.jit(keys, static_argnames="purpose")


@partial(jax.jit, static_argnames=("shapes", "dtype"))
def _draws(seed: Any, trials: Any, shapes: tuple[tuple[str, str, int], ...], dtype: str) -> dict[str, Array]:
    """The draws that determine the truth: (size, trials) by name."""
    make = {"normal": normals, "uniform": uniforms}
    zero = jnp.zeros((), jnp.uint32)
    return {name: make[law](keys(seed, trials, name), zero, size, dtype) for name, law, size in shapes}


def spread(values: Array) -> Array:
    """An array split over all devices along its last axis, the trials."""
    devices = jax.devices()
    if len(devices) == 1:
        return values
    mesh = jax.sharding.Mesh(np.array(devices), ("trials",))
    split = jax.sharding.PartitionSpec(*[None] * (values.ndim - 1), "trials")
    return jax.device_put(values, jax.sharding.NamedSharding(mesh, split))


_program: Any = lru_cache(maxsize=64)(Program)
"""The program of an agent on a problem, cached so that it is compiled once. Agents are values."""


def _play(job: Job, agent: Agent, draws: Randomness, tick: Tick) -> tuple[Array, Array]:
    """Run one agent: totals (points, losses, trials) and moments (curve points, losses, 2)."""
    gpu, host_draws = platform() == "gpu", job.draws == "numpy"
    space = None if agent.can.keep_rounds is None else job.rounds
    program = _program(job.problem, agent, job.decompose, host_draws, draws.dtype, gpu, space)
    privilege = Privilege(program.truth(draws.truth).bias) if agent.can.see_bias is not None else None
    setup, memory = program.cast(rounds.start(agent, program.known, privilege, space, late=False))
    inputs = Inputs(
        draws=draws.truth,
        setup=setup,
        shrinkage=program.cast(known_shrinkage(program.known)),
        world=draws.world,
        revealed=draws.revealed,
        choices=draws.rounds("agent", agent.chooser.normals(program.known)),
        steps=draws.steps(agent),
        active=draws.active,
    )
    carry = program.begin(inputs, memory, points=len(job.grid), curve=len(job.curve))
    for first in range(0, job.rounds, STRIDE):
        last = min(first + STRIDE, job.rounds)
        stretch = Stretch(first, last, _find_slots(job.grid, first), _find_slots(job.curve, first))
        carry = program.advance(carry, inputs, stretch)
        refuse_nonsense(agent.name, bool(program.sound(carry, setup)))
        tick((last - first) * len(draws.trials))
    return np.asarray(carry.stored), np.asarray(carry.moments)


def _find_slots(points: Ints, first: int) -> Array:
    """For every round of a stretch, the index of the first point at or after it, to which it is written."""
    return jnp.asarray(np.searchsorted(points, np.arange(first + 1, first + STRIDE + 1)), jnp.int32)


@contextmanager
def _check_compilable(agent: Agent) -> Iterator[None]:
    """Turn JAX's error for a part or a function that cannot be compiled into an InputError."""
    try:
        yield
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        problem = f"jax cannot compile {agent.name!r} on this problem ({str(error).splitlines()[0]})"
        allowed = "numpy, or functions that take their library from their arguments: x.__array_namespace__()"
        raise InputError("engine", problem, allowed) from error


def terms(job: Job) -> list[MemoryTerm]:
    """The terms of the memory of a batch: one round at a time, one agent after the other.

    They are counted in double precision, although single precision takes about half.
    """
    arms, table, each = job.problem.arms(), job.problem.table(), NUMBER * len(job.losses) * len(job.grid)
    rooms = [engines.history(agent, job) for agent in job.agents]
    return [
        MemoryTerm("the interpreter, JAX and its compiler", (), fixed=PROCESS),
        *engines.world(job, copies=10),
        *engines.truth(job.problem),
        *engines.beliefs(job, kept=0.0, made=2.2),
        MemoryTerm("the draws of a round", ACTIONS, 2 * NUMBER * engines.drawn(job), when=ROUND),
        MemoryTerm("scores and their spread", ACTIONS, NUMBER * (6 * arms + 1.5 * table), when=ROUND),
        MemoryTerm("features in the making", ACTIONS, NUMBER * job.problem.cells(), when=ROUND),
        MemoryTerm(
            "weights of a sample", ("problem.prior_contexts",), NUMBER * engines.weights(job), when=ROUND
        ),
        MemoryTerm("the rounds that learners keep", ("rounds", *ACTIONS), NUMBER * max(rooms)),
        MemoryTerm("draws made beforehand", ("rounds", "draws"), NUMBER * _count_host_draws(job)),
        MemoryTerm("the curves of a batch", ("points", "agents"), engines.curves(job) + each),
    ]


def _count_host_draws(job: Job) -> int:
    """The random numbers of a trial, if NumPy generates those of all rounds beforehand."""
    if job.draws != "numpy":
        return 0
    known, rounds = job.problem.knowledge(), job.rounds
    world = job.problem.round_normals() + reveal_uniforms(job.problem)
    chains = [agent.can.sample for agent in job.agents if agent.can.sample is not None]
    steps = max((2 * chain.steps * chain.normals(known, rounds) for chain in chains), default=0)
    return rounds * (world + engines.drawn(job) + steps)


class Jax(engines.Engine):
    """The engine. It uses the whole device; a job has one batch size, as others round differently."""

    name = "jax"
    packages: tuple[str, ...] = ("jax",)
    shares_work = False

    @property
    def label(self) -> str:
        """The name of the engine, with its device."""
        return f"{self.name} on {platform()}"

    def refuse(self, job: Job) -> None:
        """Refuse worlds with late or requested true contexts or several units, and some agents."""
        for agent in job.agents:
            if agent.interpreted:
                raise InputError(
                    "engine", f"{self.name} cannot play {agent.name!r}: {agent.interpreted}", "numpy"
                )
        if job.problem.several > 1:
            raise InputError("engine", f"{self.name} knows one unit, not {job.problem.several}", "numpy")
        if job.problem.reveal_delay or job.problem.on_request:
            how = "late" if job.problem.reveal_delay else "where they are asked for"
            raise InputError("engine", f"{self.name} cannot show true contexts {how}", "numpy")

    def settle(self, wanted: str | None) -> str | None:
        """By default single precision on a GPU."""
        return precision(wanted)

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:  # noqa: ARG002
        """Processes would share the device."""
        return COSTS.get(platform(), COSTS["cpu"]).seconds(job, trials)

    def batch(self, job: Job, trials: int) -> int:
        """Equal batches of as many trials as fit easily into a device, so that one program serves all."""
        most, space = (2**17, 2**33) if platform() == "gpu" else (2**12, 2**29)
        return -(-trials // -(-trials // max(1, min(most, space // engines.for_each(self.terms(job))))))

    def terms(self, job: Job) -> list[MemoryTerm]:
        """The terms of its memory."""
        return terms(job)

    def device(self) -> int | None:
        """The memory of all devices together, if they have their own."""
        if platform() == "cpu":
            return None
        limits = [int((one.memory_stats() or {}).get("bytes_limit", 0)) for one in jax.devices()]
        return sum(limits) if all(limits) else None

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials, as the NumPy engine gives them.

        Programs are compiled for the job's batch size: fewer trials are padded with others, then dropped.
        """
        keep_compiled_programs()
        offer_flow(platform())
        results = []
        with jax.enable_x64(True):
            draws = Randomness(job, trials, job.batch)
            for agent in job.agents:
                with _check_compilable(agent):
                    results.append(_play(job, agent, draws, tick))
        return part(job, results, len(trials))


ENGINE = Jax()
