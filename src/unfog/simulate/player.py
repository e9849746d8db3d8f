"""One agent in the middle of its run: its memory, and its own random numbers."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.round import Decision, Offer, Several
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.maths.random import RoundDraws
from unfog.simulate.asking import Asking
from unfog.simulate.draws import Nature, StepDraws, emitted, truth_draws
from unfog.simulate.job import refuse
from unfog.worlds.problem import Emission, Problem, Truth


class Player:
    """Plays some trials side by side, one round after the other."""

    def __init__(
        self, agent: Agent, problem: Problem, truth: Truth, seed: int, trials: Sequence[int]
    ) -> None:
        """Before the first round; only the privileged are shown a truth."""
        self.agent, self.problem, self.features = agent, problem, truth.features
        known, several = problem.knowledge(), problem.several
        privilege = None if agent.privileged is None else Privilege(truth.bias)
        units = Several(several, (len(trials),)) if several > 1 else None
        told = agent, known, privilege
        keeps = problem.late > 0 or agent.revisits is not None
        self.setup, self.memory = rounds.begin(*told, several=units, late=keeps)
        self.seen, self.late = 0, deque[tuple[Decision, Array]]()
        self.recent = deque[Decision]()
        self.asking = Asking(problem.revealed, len(trials)) if problem.asked and agent.appraises else None
        self.draws = RoundDraws(seed, trials, "agent", agent.chooser.normals(known))
        self.steps = StepDraws(seed, trials, agent.chain, known)

    def round(self, emission: Emission, normals: Array, pay: Callable[[Ints], Array]) -> Decision:
        """One round, as far as its reward: normals (trials, w)."""
        for drawn in self.steps.next(self.seen):
            self.memory = rounds.advance_chain(self.agent, self.setup, self.memory, drawn)
        told = self.agent, self.setup, self.memory, self.features
        offer = offered(emission, np.asarray(self.seen))
        self.memory, decision = rounds.play(*told, offer, normals, pay)
        self.seen += 1
        return decision

    def reveal(self, decision: Decision, emission: Emission) -> Decision:
        """Show a true context, late or at once, to those that see any; this round's decision."""
        if not self.agent.sees_context:
            return decision
        if self.asking is not None:
            told = self.agent, self.setup, self.memory, decision.unit, decision.noisy
            emission = emission._replace(revealed=self.asking.next(rounds.value_of_reveal(*told)))
        self.late.append((decision, to_reveal(emission)))
        late = self.problem.late
        if len(self.late) > late:
            due = self.late.popleft()
            self.memory, shown = rounds.reveal(self.agent, self.setup, self.memory, *due)
            self._again(shown)
            return decision if late else shown
        return decision

    def _again(self, decision: Decision) -> None:
        """Learn again from the round so many rounds ago, where the agent does."""
        if self.agent.revisits is None:
            return
        self.recent.append(decision)
        if len(self.recent) > self.agent.revisits[0].lag:
            told = self.agent, self.setup, self.memory
            self.memory, _ = rounds.revisit(*told, self.recent.popleft())

    def belief(self) -> Belief:
        """What it believes of theta."""
        return self.agent.learner.belief(self.setup.learner, self.memory.learner)


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
    draws = player.draws.next(number)
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
