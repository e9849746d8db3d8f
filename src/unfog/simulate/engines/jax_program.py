"""One agent on one problem as a compiled loop over rounds, batched over trials.

A program is compiled for a batch size and not for a horizon, except where the learner keeps all past rounds:
the rounds to play are an argument. The maths is the agents', worlds' and features' own, unchanged. For a GPU
all that is kept between rounds lies trial-last, so that neighbouring threads read neighbouring numbers; on a
CPU it lies trial-first, as the maths is written.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.channel.knowledge import Shrinkage
from unfog.maths.arrays import Array, Flow, Ints, offer
from unfog.simulate.draws import emitted, reveal_uniforms
from unfog.simulate.engines.device_draws import normals, uniforms
from unfog.simulate.player import offered, to_reveal
from unfog.theory import regret
from unfog.validation import LARGEST
from unfog.worlds.problem import Emission, Problem, Truth


def offer_flow(platform: str) -> None:
    """Let the maths decide while it runs, on this platform."""
    offer(jnp, Flow(jax.lax.cond, jax.lax.while_loop, calls=platform == "cpu"))


class Inputs(NamedTuple):
    """What a batch of trials starts from; draws lie trial-last."""

    draws: dict[str, Array]  # (size, trials) each: the truth, as standard draws
    setup: Any  # the agent's parameters
    shrinkage: Shrinkage
    world: Any  # keys, two words (trials,), or the draws (rounds, w, trials)
    shown: Any  # likewise for what is shown of true contexts; empty where all is
    choices: Any  # likewise for the agent
    steps: Any  # likewise for its learner's chain, (rounds, steps, n, trials); empty where it has none
    active: Array  # (trials,) 1, or 0 for a trial that only fills up the batch


class Stretch(NamedTuple):
    """Some rounds in a row; its tables always have one length, so that one program serves every horizon."""

    first: Any
    last: Any  # exclusive
    slots: Array  # (STRIDE,) where each round's totals are stored
    curve_slots: Array  # (STRIDE,) likewise for the moments


class Carry(NamedTuple):
    """What a round hands to the next."""

    memory: Any
    totals: Array  # (losses, trials)
    stored: Any  # (points, losses, trials)
    moments: Any  # (curve points, losses, 2): mean over trials, sum of squared deviations


class Program:
    """Compiled at first use for each batch size."""

    def __init__(
        self,
        problem: Problem,
        agent: Agent,
        decompose: bool,
        given: bool,
        precision: str,
        trial_last: bool,
        room: int | None = None,
    ) -> None:
        """Nothing is compiled yet. `room` is how many rounds a learner can remember that keeps them."""
        self.problem, self.agent, self.decompose = problem, agent, decompose
        self.given, self.precision, self.trial_last = given, precision, trial_last
        self.known, self.room = problem.knowledge(), room
        self.losses = regret.names(decompose, discrete=problem.discrete)
        self.begin = jax.jit(self._begin, static_argnames=("points", "curve"))
        self.advance = jax.jit(self._advance, donate_argnums=0)
        self.sound = jax.jit(self._sound)

    def cast(self, tree: Any) -> Any:
        """Numbers in the precision of the maths; whole numbers and truth values as they are."""

        def one(x: Any) -> Array:
            return jnp.asarray(
                x, self.precision if jnp.issubdtype(jnp.result_type(x), jnp.floating) else None
            )

        return jax.tree.map(one, tree)

    def truth(self, draws: dict[str, Array]) -> Truth:
        """The truth of every trial, from its draws."""
        shapes = {name: wanted.shape for name, wanted in self.problem.truth_draws().items()}
        shaped = {name: x.mT.reshape(x.shape[1], *shapes[name]) for name, x in draws.items()}
        truth = self.problem.truth(shaped)
        return truth._replace(theta=self.cast(truth.theta), bias=self.cast(truth.bias))

    def _normals(self, source: Any, t: Array, width: int) -> Array:
        """Standard normals of a round, (trials, width)."""
        drawn = source[t] if self.given else normals(source, t, width, self.precision)
        return drawn.mT

    def _advance_chain(self, inputs: Inputs, memory: Any, t: Array) -> Any:
        """Take the learner's steps, where it has any."""
        chain = self.agent.chain
        if chain is None or self.room is None:
            return memory
        width = chain.normals(self.known, self.room)

        def step(number: Any, memory: Any) -> Any:
            counter = t * chain.steps + number
            drawn = (
                inputs.steps[t, number]
                if self.given
                else normals(inputs.steps, counter, width, self.precision)
            )
            return self.cast(rounds.advance_chain(self.agent, inputs.setup, memory, drawn.mT))

        memory = _shaped(memory, jax.eval_shape(step, 0, memory))
        return jax.lax.fori_loop(0, chain.steps, step, memory)

    def _emitted(self, inputs: Inputs, truth: Truth, drawn: Array, t: Any) -> Emission:
        """A round, with what will be shown of it; uniforms have double precision, as NumPy's have."""
        if not self.problem.chosen:
            return self.cast(self.problem.emit(truth, drawn, t))
        width = reveal_uniforms(self.problem)
        source = inputs.shown
        found = source[t] if self.given else uniforms(source, t, width, "float64")
        return self.cast(emitted(self.problem, truth, drawn, found.mT, t))

    def _round(self, inputs: Inputs, truth: Truth, memory: Any, t: Any) -> tuple[Any, Array]:
        """One round of every trial: the agent's memory after it, and the losses (losses, trials)."""
        agent = self.agent
        drawn = self._normals(inputs.world, t, self.problem.round_normals())
        emission = self._emitted(inputs, truth, drawn, t)
        memory = self._advance_chain(inputs, memory, t)
        choice = self._normals(inputs.choices, t, agent.chooser.normals(self.known))

        paid = list[Array]()

        def pay(arm: Ints) -> Array:
            seen = truth.features.at(emission.context).row(arm)
            paid.append(self.problem.reward(jnp.vecdot(seen, truth.theta), drawn))
            return paid[-1]

        told, offer = (agent, inputs.setup, memory, truth.features), offered(emission, t)
        # At once: the engine refuses worlds that show contexts late. Shown in part, or where theta is drawn
        # with the belief's root, of which there are many, the order of reward and context is NumPy's.
        context = to_reveal(emission) if agent.sees_context else None
        either = agent.awaits_context or not agent.chooser.draws_theta
        whole = context if emission.revealed is None and either else None
        memory, decision = rounds.play(*told, offer, choice, pay, whole)
        if context is not None and whole is None:
            memory, _ = rounds.reveal(agent, inputs.setup, memory, decision, context)
        best = regret.best_context(inputs.shrinkage, emission, truth.bias, self.problem.has_bias)
        exact = self.decompose and self.problem.discrete
        found = regret.of_round(
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
        losses = jnp.stack([found[name] for name in self.losses])
        # Added up in float64 whatever the precision of the maths: a long run is a sum of many small losses.
        return self.cast(memory), jnp.where(_sound(emission, *paid), losses, jnp.nan).astype(jnp.float64)

    def _begin(self, inputs: Inputs, memory: Any, points: int, curve: int) -> Carry:
        """The carry before the first round: the first memory, repeated for every trial."""
        trials, losses = inputs.active.shape[0], len(self.losses)

        def after(memory: Any) -> Any:
            first = jnp.zeros((), jnp.int32)
            return self._round(inputs, self.truth(inputs.draws), memory, first)[0]

        for _ in range(2):  # a part that is still the same for all trials after one round is not after two
            memory = _shaped(memory, jax.eval_shape(after, memory))
        stored, moments = jnp.zeros((points, losses, trials)), jnp.zeros((curve, losses, 2))
        return Carry(self._pack(memory), jnp.zeros((losses, trials)), stored, moments)

    def _advance(self, carry: Carry, inputs: Inputs, stretch: Stretch) -> Carry:
        """Play the rounds of a stretch."""
        kept = self._pack(self.truth(inputs.draws))

        def body(t: Array, carry: Carry) -> Carry:
            memory, losses = self._round(inputs, self._unpack(kept), self._unpack(carry.memory), t)
            totals = carry.totals + losses
            stored = carry.stored.at[stretch.slots[t - stretch.first]].set(totals)
            moments = carry.moments
            if moments.shape[0]:
                slot = stretch.curve_slots[t - stretch.first]
                moments = moments.at[slot].set(_moments(totals, inputs.active))
            return Carry(self._pack(memory), totals, stored, moments)

        return jax.lax.fori_loop(stretch.first, stretch.last, body, carry)

    def _sound(self, carry: Carry, setup: Any) -> Any:
        """Whether what the agent believes of theta is within bounds."""
        belief = self.agent.learner.belief(setup.learner, self._unpack(carry.memory).learner)
        most = min(LARGEST, float(jnp.finfo(self.precision).max) / 2)
        return (jnp.abs(belief.mean) <= most).all()

    def _pack(self, memory: Any) -> Any:
        return _move(memory, 0, -1) if self.trial_last else memory

    def _unpack(self, memory: Any) -> Any:
        return _move(memory, -1, 0) if self.trial_last else memory


def _sound(emission: Emission, paid: Array) -> Any:
    """Where all that a world made is finite, (trials,): a compiled loop cannot complain of what is not."""
    seen = jnp.isfinite(emission.context).all(-1) & jnp.isfinite(emission.noisy).all(-1)
    return seen & jnp.isfinite(paid)


def _shaped(tree: Any, like: Any) -> Any:
    """Every array repeated to the shape of its like."""
    return jax.tree.map(lambda x, y: jnp.broadcast_to(x, y.shape).astype(y.dtype), tree, like)


def _move(tree: Any, source: int, target: int) -> Any:
    """Every array with one axis moved; scalars are shared by all trials and stay, and so do functions."""
    return jax.tree.map(
        lambda x: jnp.moveaxis(x, source, target) if isinstance(x, jax.Array) and x.ndim else x, tree
    )


def _moments(totals: Array, active: Array) -> Array:
    """Mean and sum of squared deviations over the active trials: (losses, 2)."""
    mean = (totals * active).sum(-1) / active.sum()
    return jnp.stack([mean, (active * (totals - mean[:, None]) ** 2).sum(-1)], -1)
