"""A player: one agent (agents/runner.py) in the middle of a simulated run.

In each round it gets what the problem emits, chooses an arm, gets the reward, and sees the true contexts that
are due. If true contexts are revealed on request, `Asking` decides when to ask.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.round import Decision, Observation, Several
from unfog.agents.runner import Recent, Runner
from unfog.maths.arrays import Array, Ints
from unfog.simulation.job import Nature, emitted, refuse, truth_draws
from unfog.worlds.problem import Emission, Problem, Truth

MOST = 2.0
FIRST = 2  # the number of the question whose worth is the first level
RATE = 0.5  # the step of the level's logarithm after a round above it


class Asking:
    """When to ask for a true context, in a batch of trials: where it is worth most, within a budget.

    Every round adds a share of a question to the credit, and a question costs one. It is asked if the credit
    suffices and a true context is worth more than a level that is learnt: a round that is worth more raises
    the level by a factor, any other lowers it, so that in the long run the share of rounds above the level is
    the share that the budget allows (H. Robbins, S. Monro, *A Stochastic Approximation Method*). Credit is
    saved up to `MOST` questions, so that one can be put off for a better round; credit beyond that is
    spent on a question.

    The level begins at the worth of the second question: before the first, next to nothing is known, and that
    one is worth many times any other.
    """

    def __init__(self, share: float, trials: int) -> None:
        """Start with credit for one question, which is asked in the first round."""
        self._share = share
        self._credit, self._level = np.ones(trials), np.zeros(trials)
        self.requests = np.zeros(trials)

    def next(self, worth: Array) -> Array:
        """1 where to ask, 0 where not, (trials,), given what a true context is worth now."""
        above = worth >= self._level
        can_ask = (self._credit >= 1) & (self._share > 0)
        ask = (can_ask & (above | (self._credit + self._share > MOST))).astype(float)
        level = self._level * np.exp(RATE * (above - self._share))
        self.requests = self.requests + ask
        begins = (ask > 0) & (self.requests == FIRST)
        self._level = np.where(begins, worth, level)
        self._credit = self._credit - ask + self._share
        return ask


class Player:
    """Plays some trials side by side, one round after the other."""

    def __init__(
        self, agent: Agent, problem: Problem, truth: Truth, seed: int, trials: Sequence[int]
    ) -> None:
        """Before the first round; only a privileged agent gets the true bias."""
        self.agent, self.problem, self.features = agent, problem, truth.features
        several = problem.several
        self.runner = Runner(
            agent,
            problem.knowledge(),
            seed,
            trials,
            privilege=None if agent.can.see_bias is None else Privilege(truth.bias),
            several=Several(several, (len(trials),)) if several > 1 else None,
            late=problem.reveal_delay > 0 or agent.can.revisit is not None,
        )
        self.number, self.late = 0, deque[tuple[Decision, Array]]()
        self.recent = Recent[Decision](self.runner.lag)
        self.asking = (
            Asking(problem.revealed, len(trials)) if problem.on_request and agent.can.value_reveal else None
        )

    def round(self, emission: Emission, normals: Array, pay: Callable[[Ints], Array]) -> Decision:
        """Play a round up to its reward: normals (trials, w)."""
        self.runner.advance()
        observation = make_observation(emission, np.asarray(self.number))
        self.number += 1
        return self.runner.play(observation, self.features, normals, pay)

    def reveal(self, decision: Decision, emission: Emission) -> Decision:
        """Reveal the true context that is due, if the agent sees any; return this round's decision."""
        if not self.agent.sees_context:
            return decision
        if self.asking is not None:
            args = self.agent, self.runner.setup, self.runner.memory(), decision.unit, decision.noisy
            emission = emission._replace(revealed=self.asking.next(rounds.value_of_reveal(*args)))
        self.late.append((decision, to_reveal(emission)))
        late = self.problem.reveal_delay
        if len(self.late) > late:
            revealed = self.runner.reveal("", *self.late.popleft())
            self.recent.add("", revealed)
            past = self.recent.due("")
            if past is not None:
                self.runner.revisit("", past)
            return decision if late else revealed
        return decision


def played(
    problem: Problem, agent: Agent, number: int, trials: Sequence[int], seed: int
) -> Iterator[tuple[Emission, Decision]]:
    """Play so many rounds of these trials, as the simulator does, and yield them one by one.

    If contexts come late, decisions are those of the round, before its context is revealed.
    """
    truth = problem.truth(truth_draws(seed, trials, problem.truth_draws()))
    refuse(agent, problem, truth.features)
    player = Player(agent, problem, truth, seed, trials)
    nature, uniforms = Nature(problem, seed, trials).next(number)
    draws = player.runner.normals.next(number)
    for t in range(number):
        emission = emitted(problem, truth, nature[:, t], uniforms[:, t], np.asarray(t))

        def pay(arm: Ints, t: int = t, context: Array = emission.context) -> Array:
            score = np.vecdot(truth.features.at(context).row(arm), truth.theta)
            return problem.reward(score, nature[:, t])

        decision = player.round(emission, draws[:, t], pay)
        yield emission, player.reveal(decision, emission)


def make_observation(emission: Emission, number: Ints) -> Observation:
    """The part of an emission that an agent may see, in the round of this number."""
    return Observation(
        emission.noisy, emission.mask, emission.unit, emission.bias, number, measured_at=emission.at
    )


def to_reveal(emission: Emission) -> Array:
    """The true context (..., d), with NaN for coordinates that are not revealed."""
    context, revealed = emission.context, emission.revealed
    if revealed is None:
        return context
    xp = context.__array_namespace__()
    revealed = revealed if revealed.ndim == context.ndim else revealed[..., None]
    return xp.where(revealed > 0, context, xp.nan)
