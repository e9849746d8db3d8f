"""One agent that plays a live problem: what it remembers, its own random numbers, and a round at a time.

A round is played by agents/round.py, as in the lab; here it is only kept together. Batches have one trial.
Each unit has a channel state of its own, in a mapping; theta is shared by all. The streams are those of the
lab's trial 0, drawn in sequence, so that a world played live gives the arms that it gives in the lab.

A decision whose reward or true context may still come is kept as a `Seen`: what was believed of its context,
but neither its design nor the belief about theta, which are made anew when they are needed. So a pending
decision takes a few hundred bytes however many arms there are. Only learners that look back have a belief
which cannot be made again.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unfog.agents import predict
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence, Moment, Parameters, State, Term
from unfog.agents.grow import grown, grown_belief
from unfog.agents.round import Considered, Decision, Denoised, Memory, Offer
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.maths.random import generator
from unfog.maths.trees import contiguous

Law: TypeAlias = tuple[Array, Array]
"""Mean and variance."""

PROPENSITY_DRAWS = 200  # of an arm, where its probability is not known exactly


class Row(NamedTuple):
    """A row of features without its zeros."""

    places: Ints  # (n,)
    values: Array  # (n,)

    def whole(self, size: int) -> Array:
        """With them: (1, m)."""
        row = np.zeros((1, size))
        row[0, self.places] = self.values
        return row


class Said(NamedTuple):
    """What a round says of theta, where it can be taken back."""

    row: Row
    variance: Array  # (1,)
    value: Any  # (1,), or () where it is the reward


class Seen(NamedTuple):
    """A decision as one agent saw it."""

    noisy: Array  # (1, d)  as the denoiser was shown it
    context: Context  # as it was believed to be
    moment: Moment | None = None
    belief: Belief | None = None  # about theta, of learners that look back
    reward: Array | None = None  # (1,)
    known: Array | None = None  # (1, d)  the true context as far as it is known, not a number elsewhere
    said: Said | None = None


class Mind:
    """An agent in the middle of its life."""

    def __init__(self, agent: Agent, known: Knowledge, seed: int) -> None:
        """Before the first decision."""
        self.agent, self.known, self.seed = agent, known, seed
        self.setup, first = rounds.begin(agent, known)
        memory: Memory = contiguous(first)
        self.fresh: State = memory.denoiser  # of a unit that nothing was read of yet
        self.channels: dict[str, State] = {}
        self.learner, self.surprises = memory.learner, memory.surprises
        self.learnt = 0  # rewards
        self._theta: tuple[State, Belief] | None = None  # what is believed of theta, and by which state
        self.width = agent.chooser.normals(known)
        self.draws = generator(seed, 0, "agent")
        self.steps = generator(seed, 0, "learner")

    def grow(self, before: Knowledge, after: Knowledge) -> None:
        """With room for features of arms that came later."""
        if before.prior_mean.shape != after.prior_mean.shape:
            self._theta = None
            self.setup, memory = grown(self.agent, before, after, self.setup, self.memory(""))
            self.learner = contiguous(memory.learner)
        self.known, self.width = after, self.agent.chooser.normals(after)

    def grown(self, seen: Seen) -> Seen:
        """A decision of before arms came; learners that look back have kept a belief with it."""
        if seen.belief is None:
            return seen
        return seen._replace(belief=contiguous(grown_belief(self.known, seen.belief)))

    def memory(self, unit: str) -> Memory:
        """What the round is to know of this unit."""
        return Memory(self.channels.get(unit, self.fresh), self.learner, self.surprises)

    def remember(self, unit: str, memory: Memory) -> None:
        """Likewise, afterwards; in C order, since other layouts add up to other last bits."""
        memory = contiguous(memory)
        self.channels[unit] = memory.denoiser
        self.learner, self.surprises = memory.learner, memory.surprises

    def content(self) -> dict[str, Any]:
        """All that changes, in nested values that do not change any more."""
        return {
            "channels": {**self.channels},
            "learner": self.learner,
            "surprises": self.surprises,
            "learnt": self.learnt,
            "draws": self.draws.bit_generator.state,
            "steps": self.steps.bit_generator.state,
        }

    def fill(self, content: dict[str, Any], known: Knowledge) -> None:
        """Take back what `content` gave; arms may have come later."""
        self.known, self.width = known, self.agent.chooser.normals(known)
        self.setup, _ = rounds.begin(self.agent, known)
        self.channels, self.learner = content["channels"], content["learner"]
        self.surprises, self.learnt = content["surprises"], content["learnt"]
        self.draws.bit_generator.state, self.steps.bit_generator.state = content["draws"], content["steps"]

    def advance(self) -> Array:
        """The steps of the learner's chain, which come before a decision; its normals (1, w)."""
        chain = self.agent.can.sample
        if chain is not None:
            memory = self.memory("")
            shape = chain.steps, 1, chain.normals(self.known, self.learnt)
            for drawn in self.steps.standard_normal(shape):
                memory = rounds.advance_chain(self.agent, self.setup, memory, drawn)
            self.learner = contiguous(memory.learner)
        return self.draws.standard_normal((1, self.width))

    def consider(self, unit: str, offer: Offer, features: FeatureMap) -> Considered:
        """Denoise, and look at every arm."""
        theta = self.theta() if self.agent.can.look_back is None else None
        return rounds.consider(self.agent, self.setup, self.memory(unit), features, offer, theta)

    def denoise(self, unit: str, offer: Offer, features: FeatureMap) -> Denoised:
        """Denoise alone: for a round whose arm is known already."""
        return rounds.denoise(self.agent, self.setup, self.memory(unit), features, offer)

    def choose(self, considered: Considered, normals: Array, number: int) -> tuple[int, Array]:
        """The arm, and with which probability each is chosen, (K,).

        Where these are not known exactly, so many arms are drawn besides: given all of them, without their
        order, the one that is taken is any of them with the same probability. So shares among the draws are
        true probabilities, whatever the number of draws.
        """
        chooser, view = self.agent.chooser, considered.view
        if chooser.propensity == "exact":
            arm, shares = chooser.choose_with_probabilities(view, normals, normals[None])
            return int(arm[0]), shares[0]
        more = generator(self.seed, number, "propensity")
        others = more.standard_normal((PROPENSITY_DRAWS - 1, *normals.shape))
        arm = chooser.choose(view, normals)
        shares = chooser.probabilities(view, np.concat([normals[None], others]))
        return int(arm[0]), shares[0]

    def observe(self, unit: str, denoised: Denoised) -> Seen:
        """The channel learns from the noisy context; what is kept of the decision."""
        reading = denoised.reading
        memory = rounds.observed(self.agent, self.setup, self.memory(unit), reading)
        self.remember(unit, memory)
        seen: Seen = contiguous(Seen(reading.noisy, denoised.context, reading.moment, denoised.belief))
        return seen

    def bias(self, unit: str) -> Law | None:
        """What is believed of a unit's bias: mean and variance, (d,) each; None: there is none."""
        return self._bias(self.setup.denoiser, self.memory(unit).denoiser)

    def bias_then(self, denoised: Denoised) -> Law | None:
        """What was believed of it when a reading was denoised, which is much less work to say again."""
        return self._bias(denoised.reading.parameters, denoised.reading.channel)

    def _bias(self, parameters: Parameters, channel: State) -> Law | None:
        if self.agent.can.estimate_bias is None:
            return None
        mean, cov = self.agent.can.estimate_bias.bias(parameters, channel)
        variance = cov.diagonal(axis1=-2, axis2=-1)
        return mean.reshape(-1, mean.shape[-1])[0], variance.reshape(-1, variance.shape[-1])[0]

    def theta(self) -> Belief:
        """What is believed of theta; worked out once until more is learnt."""
        if self._theta is None or self._theta[0] is not self.learner:
            self._theta = self.learner, self.agent.learner.belief(self.setup.learner, self.learner)
        return self._theta[1]

    def decision(self, seen: Seen, arm: int, features: FeatureMap) -> Decision:
        """The decision as the round knows it, with what is believed of theta by now."""
        agent, place = self.agent, np.asarray([arm])
        if agent.awaits_context and seen.known is not None:
            design, context = features.at(seen.known), None
        else:
            design, context = features.design(seen.context), seen.context
        belief = self.theta() if seen.belief is None else seen.belief
        rewinds = agent.can.look_back
        unbiased = None if rewinds is None else rewinds[0].unbiased(self.setup.denoiser, seen.noisy)
        evidence = Evidence(features, design, belief, place, unbiased, context=context)
        term = None
        if seen.said is not None:
            row, variance, value = seen.said
            term = Term(row.whole(self.known.prior_mean.shape[-1]), variance, value)
        return Decision(
            place, seen.context, evidence, seen.noisy, None, None, seen.reward, term, seen.known, seen.moment
        )

    def foreseen(self, denoised: Denoised) -> Law | None:
        """What was expected of a reading: mean and variance, (1, d) each; None: nothing was."""
        reading = denoised.reading
        if reading.law is not None and self.agent.can.foresee is None:
            return reading.law
        return predict.foreseen(self.agent, reading.parameters, reading.channel)

    def reward(
        self, unit: str, seen: Seen, arm: int, features: FeatureMap, value: float
    ) -> tuple[Seen, Law | None]:
        """Learn from a reward, or keep it for the true context that it awaits; what was expected of it."""
        decision, before = self.decision(seen, arm, features), self.memory(unit)
        law = None
        if self.agent.limit is None or self.agent.learner.rewards != "gaussian":  # else it comes by itself
            decision = decision._replace(evidence=decision.evidence.weighed())
            law = predict.reward(self.agent, self.setup, before, decision)
        memory, after = rounds.reward(self.agent, self.setup, before, decision, np.asarray([value]))
        learnt = memory.learner is not before.learner
        return self._after(unit, memory, seen, after, learnt=learnt), after.law or law

    def reveal(self, unit: str, seen: Seen, arm: int, features: FeatureMap, context: Array) -> Seen:
        """Take in a true context (1, d), not a number where it is not known."""
        decision, before = self.decision(seen, arm, features), self.memory(unit)
        memory, after = rounds.reveal(self.agent, self.setup, before, decision, context)
        return self._after(
            unit, memory, seen, after, learnt=self.agent.awaits_context and seen.reward is not None
        )

    def revisit(self, unit: str, seen: Seen, arm: int, features: FeatureMap) -> Seen:
        """Learn from a past decision again, with what has become known of its context."""
        decision = self.decision(seen, arm, features)
        memory, after = rounds.revisit(self.agent, self.setup, self.memory(unit), decision)
        return self._after(unit, memory, seen, after, learnt=False)

    def _after(self, unit: str, memory: Memory, seen: Seen, decision: Decision, learnt: bool) -> Seen:
        """What is kept of a decision once the round is done with it."""
        self.remember(unit, memory)
        self.learnt += learnt
        said = None
        if decision.term is not None:
            (places,) = np.nonzero(decision.term.row[0])
            row = Row(places, decision.term.row[0, places])
            said = Said(row, np.broadcast_to(decision.term.variance, (1,)), decision.term.value)
        belief = None if decision.reward is not None else seen.belief
        now: Seen = contiguous(
            seen._replace(reward=decision.reward, known=decision.known, said=said, belief=belief)
        )
        return now
