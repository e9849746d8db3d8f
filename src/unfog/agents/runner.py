"""An agent that is played step by step: what it remembers, its random numbers, and one round after another.

This is the only runner. It knows neither events nor worlds: it is handed a reading, an arm, a reward, a true
context. A simulated problem plays many trials side by side (simulation/player.py); a live problem
(live/state.py), the loop of another library (adapters/simulation.py) and a log (evaluation/policies.py) play
one. Each of them holds a `Runner` and adds only what is its own. The round itself is agents/round.py.

    draw       the learner's chain takes its steps, and the normals of a decision are drawn
    consider   denoise a reading, and look at every arm
    choose     the arm, and with which probability each is chosen
    observe    the channel learns from the reading
    reward     theta is learnt from a reward, at once or any time later
    reveal     a true context becomes known
    revisit    a past round is learnt from again
    play       a whole round whose reward comes at once

The channel has a state for each unit, by name. All units share the learner. In a batch whose units are an
axis of the state (`Several`) there is one entry, without a name.

The random numbers of trial k of seed s are the same wherever an agent is played, so that a world that is
played live gives the arms that it gives in the lab.

>>> import numpy as np
>>> import unfog
>>> from unfog.agents.round import Observation
>>> from unfog.agents.runner import Runner
>>> known, features = unfog.GaussianProblem(dim=2, actions=2).knowledge(), unfog.features.quadratic(np.eye(2))
>>> runner = Runner(unfog.AGENTS["unfog"], known, seed=0)
>>> considered = runner.consider("ann", Observation(np.array([[0.9, -0.2]])), features)
>>> arm, probabilities = runner.choose(considered, runner.draw(), number=0)
>>> decision = runner.take("ann", considered, arm, features)
>>> decision = runner.reward("ann", decision, 1.5)
>>> runner.learnt, round(float(probabilities.sum()), 6)
(1, 1.0)
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from unfog.agents import predict
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Chooser, Parameters, Pooled, Privilege, RunsChain, Spreads, State
from unfog.agents.grow import grow_agent
from unfog.agents.hedge import mix_contexts
from unfog.agents.round import Considered, Decision, Denoised, Memory, Observation, Several
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, Design, FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.maths.random import RoundDraws, generator
from unfog.maths.trees import contiguous
from unfog.validation import InputError

Law: TypeAlias = tuple[Array, Array]
"""Mean and variance."""

PROPENSITY_DRAWS = 200  # draws of an arm to estimate probabilities that are not known exactly

Round = TypeVar("Round")


class StepDraws:
    """Standard normals for the steps of a learner's chain, one round after the other.

    There may be many, and more as rounds are remembered, so they are drawn when they are needed.
    """

    def __init__(self, seed: int, trials: Sequence[int], chain: RunsChain | None, known: Knowledge) -> None:
        """Start at the first round; without a chain there are no steps."""
        self._chain, self.known, self._trials = chain, known, len(trials)
        self.sources = [generator(seed, trial, "learner") for trial in trials]

    def next(self, learnt: int) -> Array:
        """The normals of the next round, given the number of rounds remembered: (steps, trials, n)."""
        if self._chain is None:
            return np.empty((0, self._trials, 0))
        shape = self._chain.steps, self._chain.normals(self.known, learnt)
        return np.stack([source.standard_normal(shape) for source in self.sources], 1)


class Runner:
    """An agent and all that it has learnt so far, in one trial or in several side by side."""

    def __init__(
        self,
        agent: Agent,
        known: Knowledge,
        seed: int,
        trials: Sequence[int] = (0,),
        *,
        privilege: Privilege | None = None,
        several: Several | None = None,
        late: bool = True,
    ) -> None:
        """Set up the first round. `privilege`, `several` and `late` are those of `agents.round.start`."""
        self.agent, self.known, self.seed = agent, known, seed
        self.setup, memory = rounds.start(agent, known, privilege, several=several, late=late)
        memory = contiguous(memory)
        self.fresh: State = memory.denoiser  # of a unit without readings so far
        self.channels: dict[str, State] = {}  # by unit
        self.learner, self.surprises = memory.learner, memory.surprises
        self.pool, self.weights = memory.pool, memory.weights
        self.learnt, self.decisions = 0, 0  # rewards, and rounds begun
        self.normals = RoundDraws(seed, trials, "agent", agent.chooser.normals(known))
        self.steps = StepDraws(seed, trials, agent.can.sample, known)
        self._theta: tuple[State, Belief] | None = None  # a learner's state, and its belief about theta

    @property
    def lag(self) -> int:
        """How many rounds later a round is learnt from again; 0: never."""
        return 0 if self.agent.can.revisit is None else self.agent.can.revisit[0].lag

    def memory(self, unit: str = "") -> Memory:
        """The memory that a round of this unit starts from."""
        channel = self.channels.get(unit, self.fresh)
        return Memory(channel, self.learner, self.surprises, self.pool, self.weights)

    def remember(self, unit: str, memory: Memory) -> None:
        """Keep the memory after a round, in C order: sums over other layouts differ in the last bits."""
        if memory.denoiser is not self.channels.get(unit):
            self.channels[unit] = contiguous(memory.denoiser)
        if memory.learner is not self.learner:
            self.learner = contiguous(memory.learner)
        if memory.pool is not self.pool:
            self.pool = contiguous(memory.pool)
        self.surprises, self.weights = memory.surprises, memory.weights

    def check_unit(self, unit: str) -> None:
        """Raise InputError if the learner looks back on past rounds, and these are of another unit."""
        if self.agent.can.look_back is not None and unit != next(iter(self.channels), unit):
            name = repr(self.agent.name)
            allowed = f"one unit: the learner of {name} looks back on past rounds as those of one"
            raise InputError("unit", repr(unit), allowed)

    def theta(self) -> Belief:
        """The belief about theta, cached until more is learnt."""
        if self._theta is None or self._theta[0] is not self.learner:
            self._theta = self.learner, self.agent.learner.belief(self.setup.learner, self.learner)
        return self._theta[1]

    def advance(self) -> None:
        """Do what comes before a decision: estimate scales if that is due, take the steps of a chain."""
        memory = self.memory()
        self.learner = contiguous(
            rounds.estimate_scales(self.agent, self.setup, memory, self.decisions).learner
        )
        self.decisions += 1
        if self.agent.can.sample is None:
            return
        for normals in self.steps.next(self.learnt):
            memory = rounds.advance_chain(self.agent, self.setup, self.memory(), normals)
            self.learner = contiguous(memory.learner)

    def draw(self) -> Array:
        """Take the chain's steps, and draw the normals of a decision, (trials, w)."""
        self.advance()
        return self.normals.next(1)[:, 0]

    def consider(self, unit: str, observation: Observation, features: FeatureMap) -> Considered:
        """Denoise, and look at every arm."""
        theta = self.theta() if self.agent.can.look_back is None else None
        return rounds.consider(self.agent, self.setup, self.memory(unit), features, observation, theta)

    def denoise(self, unit: str, observation: Observation, features: FeatureMap) -> Denoised:
        """Denoise alone: for a round whose arm is known already."""
        return rounds.denoise(self.agent, self.setup, self.memory(unit), features, observation)

    def choose(self, considered: Considered, normals: Array, number: int) -> tuple[int, Array]:
        """The arm of a single trial, and with which probability each is chosen, (K,).

        Where these are not known exactly, further arms are drawn. Given all draws but not their order, the
        arm that is taken is equally likely to be any of them, so that the shares among the draws are true
        probabilities, however many draws there are. They come from a stream of their own for each `number`.
        """
        chooser, draws = self.agent.chooser, normals[None]
        if others := propensity_draws(chooser) - 1:
            draws = np.concat([draws, propensity_normals(self.seed, number, others, normals.shape)])
        arm, shares = chooser.choose_with_probabilities(considered.view, normals, draws)
        return int(arm[0]), shares[0]

    def probabilities(self, unit: str, observation: Observation, features: FeatureMap, number: int) -> Array:
        """With which probability each arm would be chosen, (K,); the runner does not change."""
        chooser = self.agent.chooser
        shape = 1, chooser.normals(self.known)
        normals = propensity_normals(self.seed, number, propensity_draws(chooser), shape)
        return rounds.probabilities(
            self.agent, self.setup, self.memory(unit), features, observation, normals
        )[0]

    def observe(self, unit: str, denoised: "Denoised | Considered") -> None:
        """The channel learns from a noisy context."""
        self.remember(
            unit, rounds.observe_reading(self.agent, self.setup, self.memory(unit), denoised.reading)
        )

    def take(self, unit: str, considered: Considered, arm: int, features: FeatureMap) -> Decision:
        """A round of one trial with this arm, whoever chose it; the channel learns from its reading."""
        self.observe(unit, considered)
        return rounds.make_decision(self.agent, self.setup, features, considered, np.asarray([arm]))

    def by_now(self, decision: Decision) -> Decision:
        """The decision with the current belief about theta, unless its learner looks back for each round."""
        if self.agent.can.look_back is not None or decision.evidence.belief is self.theta():
            return decision
        return decision._replace(evidence=decision.evidence._replace(belief=self.theta(), hidden=None))

    def reward(self, unit: str, decision: Decision, value: float) -> Decision:
        """Learn from the reward of a single trial, or keep it until its true context comes."""
        decision, before = self.by_now(decision), self.memory(unit)
        memory, decision = rounds.reward(self.agent, self.setup, before, decision, np.asarray([value]))
        self.remember(unit, memory)
        self.learnt += memory.learner is not before.learner
        return decision

    def reveal(self, unit: str, decision: Decision, context: Array) -> Decision:
        """Learn from a true context (trials, d), NaN where it is not known."""
        args = self.agent, self.setup, self.memory(unit), decision
        memory, decision = rounds.reveal(*args, context)
        self.remember(unit, memory)
        self.learnt += self.agent.awaits_context and decision.reward is not None
        return decision

    def revisit(self, unit: str, decision: Decision) -> Decision:
        """Learn from a past decision again, with what has become known of its context."""
        memory, decision = rounds.revisit(self.agent, self.setup, self.memory(unit), decision)
        self.remember(unit, memory)
        return decision

    def play(
        self, observation: Observation, features: FeatureMap, normals: Array, pay: Callable[[Ints], Array]
    ) -> Decision:
        """A round whose reward comes at once, in all trials: normals (trials, w)."""
        before = self.memory()
        memory, decision = rounds.play(self.agent, self.setup, before, features, observation, normals, pay)
        self.remember("", memory)
        self.learnt += memory.learner is not before.learner
        return decision

    def design(self, features: FeatureMap, context: Context) -> Design:
        """The expected features under a belief about a context, as a round has them."""
        channel: State = self.fresh
        if self.agent.can.pool is not None:
            channel = Pooled(self.pool, self.fresh)
        return rounds.design(self.agent, self.setup.denoiser, channel, features, context)

    @property
    def origin(self) -> Array:
        """What contexts are counted from, (d,), where features have intercepts: zero for most agents."""
        if self.agent.can.scale_contexts is None:
            return np.zeros(self.known.context_mean.shape)
        origin = self.agent.can.scale_contexts.origin(self.setup.denoiser, Pooled(self.pool, self.fresh))
        return np.asarray(origin).reshape(-1, origin.shape[-1])[0]

    @property
    def candidate_weights(self) -> dict[str, float]:
        """The weight of each candidate of a single trial; empty for agents without candidates."""
        weights, hedge = rounds.candidate_weights(self.memory()), self.agent.can.hedge
        if weights is None or hedge is None:
            return {}
        return dict(zip(hedge.candidates, weights.reshape(-1).tolist(), strict=True))

    def believed_context(self, context: Context) -> Context:
        """A belief about a context as people may see it: over all candidates, by what is known now."""
        channel = Pooled(self.pool, self.fresh)
        weights = rounds.candidate_weights(self.memory())
        return rounds.believed_context(self.agent, self.setup, weights, channel, context)

    @property
    def spreads(self) -> Spreads | None:
        """What the readings of all units say, (d,) each, over candidates; None if they are not pooled."""
        if self.agent.can.pool is None:
            return None
        spreads = self.agent.can.pool.spreads(self.setup.denoiser, Pooled(self.pool, self.fresh))
        weights = rounds.candidate_weights(self.memory())
        if weights is not None:
            spreads = spreads._replace(devices=(weights[..., None] * spreads.devices).sum(-2))
        return Spreads(*(x.reshape(-1, x.shape[-1])[0] for x in spreads))

    def rewards_wanted(self, arms: int) -> int | None:
        """How many more rewards are wanted before it chooses among so many arms; None if it does choose."""
        estimator = self.agent.can.estimate_scales
        if estimator is None or estimator.is_ready(self.learner, arms).all():
            return None
        return int(estimator.wanted(self.learner, arms).max())

    def bias(self, unit: str) -> Law | None:
        """Mean and variance, (d,) each, of the belief about a unit's bias; None if the denoiser has none."""
        channel = self.memory(unit).denoiser
        if self.agent.can.pool is not None:
            channel = Pooled(self.pool, channel)
        return self._bias_moments(self.setup.denoiser, channel)

    def bias_then(self, denoised: Denoised) -> Law | None:
        """The belief about the bias when a reading was denoised, which is cheap to compute again."""
        return self._bias_moments(denoised.reading.parameters, denoised.reading.channel)

    def _bias_moments(self, parameters: Parameters, channel: State) -> Law | None:
        if self.agent.can.estimate_bias is None:
            return None
        law = Context(*self.agent.can.estimate_bias.bias(parameters, channel))
        weights = rounds.candidate_weights(self.memory())
        mean, cov = law if weights is None else mix_contexts(weights, law)
        variance = cov.diagonal(axis1=-2, axis2=-1)
        return mean.reshape(-1, mean.shape[-1])[0], variance.reshape(-1, variance.shape[-1])[0]

    def expected_reading(self, denoised: Denoised) -> Law | None:
        """Mean and variance, (trials, d) each, that were predicted for a reading; None if nothing was."""
        reading = denoised.reading
        if reading.law is not None and self.agent.can.forecast_reading is None:
            return reading.law
        return predict.forecast_reading(self.agent, reading.parameters, reading.channel)

    def grow(self, before: Knowledge, after: Knowledge) -> None:
        """Extend the belief to the features of arms that were added."""
        if before.prior_mean.shape != after.prior_mean.shape:
            self._theta = None
            self.setup, memory = grow_agent(self.agent, before, after, self.setup, self.memory())
            self.learner = contiguous(memory.learner)
        self._set_knowledge(after)

    def content(self) -> dict[str, Any]:
        """A snapshot, in immutable nested values, of all that changes in a single trial."""
        return {
            "channels": {**self.channels},
            "learner": self.learner,
            "surprises": self.surprises,
            "learnt": self.learnt,
            "decisions": self.decisions,
            "pool": self.pool,
            "weights": self.weights,
            "draws": self.normals.sources[0].bit_generator.state,
            "steps": self.steps.sources[0].bit_generator.state,
        }

    def fill(self, content: dict[str, Any], known: Knowledge) -> None:
        """Restore what `content` returned; arms may have been added since."""
        self._set_knowledge(known)
        self.setup, _ = rounds.start(self.agent, known)
        self.channels, self.learner = content["channels"], content["learner"]
        self.surprises, self.learnt = content["surprises"], content["learnt"]
        self.decisions, self.pool, self.weights = content["decisions"], content["pool"], content["weights"]
        self.normals.sources[0].bit_generator.state = content["draws"]
        self.steps.sources[0].bit_generator.state = content["steps"]

    def _set_knowledge(self, known: Knowledge) -> None:
        self.known = self.steps.known = known
        self.normals.width = self.agent.chooser.normals(known)


def propensity_draws(chooser: Chooser) -> int:
    """How many draws of an arm its probability is estimated from; one where it is known exactly."""
    return 1 if chooser.propensity == "exact" else PROPENSITY_DRAWS


def propensity_normals(seed: int, number: int, draws: int, shape: tuple[int, ...]) -> Array:
    """Normals of further draws of an arm in the decision of this number, (draws, *shape)."""
    return generator(seed, number, "propensity").standard_normal((draws, *shape))


class Recent(Generic[Round]):
    """The last rounds of each unit, until they are learnt from again `lag` rounds later."""

    def __init__(self, lag: int) -> None:
        """With a lag of 0 no round is learnt from again."""
        self._lag, self._rounds = lag, dict[str, deque[Round]]()

    def add(self, unit: str, item: Round) -> None:
        """Add the newest round."""
        if self._lag:
            self._rounds.setdefault(unit, deque()).append(item)

    def due(self, unit: str) -> Round | None:
        """Remove and return the round that is to be learnt from again before the unit's next one."""
        rounds = self._rounds.get(unit, ())
        return self._rounds[unit].popleft() if len(rounds) > self._lag else None
