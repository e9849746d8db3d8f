"""One agent in the middle of its run: its memory, and its own random numbers."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.assemble import Agent
from unfog.agents.parts import Privilege
from unfog.agents.round import Decision, Offer
from unfog.agents.units import Several
from unfog.maths.arrays import Array, Ints
from unfog.maths.blocks import Belief
from unfog.maths.streams import RoundDraws
from unfog.model.knowledge import Knowledge
from unfog.simulate.draws import Nature, StepDraws, emitted, truth_draws
from unfog.simulate.job import refuse
from unfog.worlds.problem import Emission, Problem, Truth


class Player:
    """Plays some trials side by side, one round after the other."""

    def __init__(
        self,
        agent: Agent,
        known: Knowledge,
        truth: Truth,
        seed: int,
        trials: Sequence[int],
        several: int = 1,
        late: bool = True,
    ) -> None:
        """Before the first round; only the privileged are shown a truth, and `several` units are told of.

        Unless true contexts may come `late`, nothing is kept for those that do.
        """
        self.agent, self.features = agent, truth.features
        privilege = None if agent.privileged is None else Privilege(truth.bias)
        units = Several(several, (len(trials),)) if several > 1 else None
        self.setup, self.memory = rounds.begin(agent, known, privilege, several=units, late=late)
        self.seen, self.late = 0, deque[tuple[Decision, Array]]()
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

    def reveal(self, decision: Decision, context: Array, late: int = 0) -> Decision:
        """Show a true context after so many rounds more, to those that see any; this round's decision."""
        if not self.agent.sees_context:
            return decision
        self.late.append((decision, context))
        if len(self.late) > late:
            due = self.late.popleft()
            self.memory, shown = rounds.reveal(self.agent, self.setup, self.memory, *due)
            return decision if late else shown
        return decision

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
    player = Player(agent, problem.knowledge(), truth, seed, trials, problem.several, problem.late > 0)
    nature, uniforms = Nature(problem, seed, trials).next(number)
    draws = player.draws.next(number)
    for t in range(number):
        emission = emitted(problem, truth, nature[:, t], uniforms[:, t], np.asarray(t))

        def pay(arm: Ints, t: int = t, context: Array = emission.context) -> Array:
            score = np.vecdot(truth.features.at(context).row(arm), truth.theta)
            return problem.reward(score, nature[:, t])

        decision = player.round(emission, draws[:, t], pay)
        yield emission, player.reveal(decision, to_reveal(emission), problem.late)


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
