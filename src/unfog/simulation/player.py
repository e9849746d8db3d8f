"""A player: one agent (agents/runner.py) in the middle of a simulated run.

Round by round it is offered what the problem emits, takes an arm, is paid, and is shown the true contexts
that are due. Where the problem shows true contexts on request, `Asking` decides when to ask.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.round import Decision, Offer, Several
from unfog.agents.runner import Recent, Runner
from unfog.maths.arrays import Array, Ints
from unfog.simulation.job import Nature, emitted, refuse, truth_draws
from unfog.worlds.problem import Emission, Problem, Truth

MOST = 2.0
FIRST = 2  # the question whose worth the level begins with
RATE = 0.5  # of the level's logarithm, for a round above it


class Asking:
    """When to ask for a true context, in a batch of trials: where it is worth most, within a budget.

    Every round adds a share of a reading to the credit, and a question takes one. It is asked where the
    credit allows it and a true context is worth more than a level that is learnt on the way: a round that is
    worth more raises the level by a factor, one that is not lowers it, by so much that in the long run the
    share of rounds above it is the share that can be paid (H. Robbins, S. Monro, *A Stochastic Approximation
    Method*). Credit is kept up to `MOST` readings, so that a question can be put off for a better one; credit
    that could not be kept is spent on a question.

    The level begins at the worth of the second question: before the first, next to nothing is known, and that
    one is worth many times any other.
    """

    def __init__(self, share: float, trials: int) -> None:
        """Start with credit for one question, which the first round asks."""
        self._share = share
        self._credit, self._level = np.ones(trials), np.zeros(trials)
        self.asked = np.zeros(trials)

    def next(self, worth: Array) -> Array:
        """1 where to ask, 0 where not, for what a true context is worth now: (trials,)."""
        above = worth >= self._level
        able = (self._credit >= 1) & (self._share > 0)
        ask = (able & (above | (self._credit + self._share > MOST))).astype(float)
        moved = self._level * np.exp(RATE * (above - self._share))
        self.asked = self.asked + ask
        begins = (ask > 0) & (self.asked == FIRST)
        self._level = np.where(begins, worth, moved)
        self._credit = self._credit - ask + self._share
        return ask


class Player:
    """Plays some trials side by side, one round after the other."""

    def __init__(
        self, agent: Agent, problem: Problem, truth: Truth, seed: int, trials: Sequence[int]
    ) -> None:
        """Before the first round; only the privileged are shown a truth."""
        self.agent, self.problem, self.features = agent, problem, truth.features
        several = problem.several
        self.runner = Runner(
            agent,
            problem.knowledge(),
            seed,
            trials,
            privilege=None if agent.can.see_bias is None else Privilege(truth.bias),
            several=Several(several, (len(trials),)) if several > 1 else None,
            late=problem.late > 0 or agent.can.revisit is not None,
        )
        self.number, self.late = 0, deque[tuple[Decision, Array]]()
        self.recent = Recent[Decision](self.runner.lag)
        self.asking = Asking(problem.revealed, len(trials)) if problem.asked and agent.can.appraise else None

    def round(self, emission: Emission, normals: Array, pay: Callable[[Ints], Array]) -> Decision:
        """One round, as far as its reward: normals (trials, w)."""
        self.runner.advance()
        offer = offered(emission, np.asarray(self.number))
        self.number += 1
        return self.runner.play(offer, self.features, normals, pay)

    def reveal(self, decision: Decision, emission: Emission) -> Decision:
        """Show a true context, late or at once, to those that see any; this round's decision."""
        if not self.agent.sees_context:
            return decision
        if self.asking is not None:
            told = self.agent, self.runner.setup, self.runner.memory(), decision.unit, decision.noisy
            emission = emission._replace(revealed=self.asking.next(rounds.value_of_reveal(*told)))
        self.late.append((decision, to_reveal(emission)))
        late = self.problem.late
        if len(self.late) > late:
            shown = self.runner.reveal("", *self.late.popleft())
            self.recent.add("", shown)
            past = self.recent.due("")
            if past is not None:
                self.runner.revisit("", past)
            return decision if late else shown
        return decision


def played(
    problem: Problem, agent: Agent, number: int, trials: Sequence[int], seed: int
) -> Iterator[tuple[Emission, Decision]]:
    """So many rounds of these trials, one by one, as the simulator plays them.

    Where contexts come late, decisions are those of the round, before its context came.
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


def offered(emission: Emission, number: Ints) -> Offer:
    """What of all that nature makes in a round, which has this number, an agent may be shown."""
    return Offer(emission.noisy, emission.mask, emission.unit, emission.bias, number, at=emission.at)


def to_reveal(emission: Emission) -> Array:
    """The true context (..., d), or where it, or a coordinate of it, will not be shown, not a number."""
    context, shown = emission.context, emission.revealed
    if shown is None:
        return context
    xp = context.__array_namespace__()
    shown = shown if shown.ndim == context.ndim else shown[..., None]
    return xp.where(shown > 0, context, xp.nan)
