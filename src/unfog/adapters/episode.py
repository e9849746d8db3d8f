"""A problem played round by round by somebody else: one trial of the lab, with its very numbers.

The lab makes a world in blocks of rounds from streams that hang on the seed and the trial alone
(maths/random.py). An episode makes the same blocks with the same function, so that trial k of seed s has the
same noisy contexts here and in `unfog.run`, to the last bit, and an arm is paid the same. What is handed out
is what an agent may see: the noisy context, and a true context only where the problem shows it, as late as it
does. Regret is that of theory/regret.py, for who measures and not for who decides.
"""

from collections import deque
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.features import FeatureMap
from unfog.maths.arrays import Array, Bools, Ints
from unfog.simulation import MOST_SEED, MOST_TRIALS
from unfog.simulation.engines.numpy import BLOCK_ROUNDS, make_block
from unfog.simulation.job import Job, Nature, truth_draws
from unfog.simulation.player import to_reveal
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Problem
from unfog.worlds.record import Recorded
from unfog.worlds.synthetic import Synthetic


class Reading(NamedTuple):
    """What is known before a decision."""

    round: int  # from 0
    noisy: Array  # (d,)  the mean of contexts where a coordinate was lost
    measured: Bools | None  # (d,)  false where it was lost; None: nothing ever is
    unit: int | None  # whose context it is; None: there is one unit
    time: float | None  # None: the number of the round


class Shown(NamedTuple):
    """A true context that the problem shows."""

    round: int  # that it belongs to
    context: Array  # (d,)  not a number where a coordinate stays hidden


class Paid(NamedTuple):
    """What came of a decision."""

    reward: float
    regret: float
    shown: Shown | None  # which may be of an earlier round


class Episode:
    """One trial of a problem, from its first round on."""

    def __init__(self, problem: Problem, seed: int, trial: int = 0) -> None:
        """Before the first round."""
        refuse(problem)
        validation.count("seed", seed, 0, MOST_SEED)
        validation.count("trial", trial, 0, MOST_TRIALS)
        self.problem, self.number = problem, 0
        draws = truth_draws(seed, [trial], problem.truth_draws())
        self._truth = problem.truth(draws)
        self.features: FeatureMap = self._truth.features  # a batch of one trial
        self.actions = _vectors(problem, draws.get("actions"))
        self._job = Job(problem, (), np.asarray([BLOCK_ROUNDS]), np.asarray([], int), seed, decompose=False)
        self._nature = Nature(problem, seed, [trial])
        self._late = deque[Shown]()
        self._make()

    def _make(self) -> None:
        numbers = self.number + np.arange(BLOCK_ROUNDS)
        self._block = make_block(self._job, self._truth, *self._nature.next(BLOCK_ROUNDS), numbers)
        self._losses: Array | None = None  # (K, BLOCK)  of every arm, where they are asked for

    @property
    def _place(self) -> int:
        return self.number % BLOCK_ROUNDS

    def _emission(self) -> Emission:
        """That of the round at hand, (1, ...)."""
        parts = self._block.emission[:-1]
        return Emission(*(None if x is None else x[:, self._place] for x in parts))  # type: ignore[arg-type]

    def reading(self) -> Reading:
        """What may be seen of the round at hand."""
        made = self._emission()
        measured = None if made.mask is None else made.mask[0] > 0
        unit = None if made.unit is None else int(made.unit[0])
        return Reading(
            self.number, made.noisy[0].copy(), measured, unit, None if made.at is None else float(made.at[0])
        )

    def pay(self, arm: int) -> Paid:
        """Take an arm; the next round is at hand then."""
        t, best = self._place, self._block.tables.paper.best[0, self._place]
        regret = best - self._block.tables.paper.values(np.full((1, BLOCK_ROUNDS), arm))[0, t]
        reward = self._rewards(np.asarray([[arm]]))[0]
        self._late.append(Shown(self.number, to_reveal(self._emission())[0]))
        shown = self._late.popleft() if len(self._late) > self.problem.late else None
        if shown is not None and np.isnan(shown.context).all():
            shown = None
        self.number += 1
        if self._place == 0:
            self._make()
        return Paid(float(reward), float(regret), shown)

    def every(self) -> tuple[Array, Array]:
        """What each arm would be paid in the round at hand, and its regret: (K,) each."""
        arms, paper = np.arange(self.problem.arms()), self._block.tables.paper
        if self._losses is None:
            worth = [paper.values(np.full((1, BLOCK_ROUNDS), arm))[0] for arm in arms]
            self._losses = paper.best[0] - np.stack(worth)
        return self._rewards(arms[None]), self._losses[:, self._place]

    def _rewards(self, arms: Ints) -> Array:
        """Of arms (1, n) in the round at hand: (n,)."""
        scores = self._block.tables.true_context[0, self._place][arms]
        paid = self.problem.reward(scores, self._block.normals[:, self._place, None])
        validation.check_reward("problem.reward", paid, self.problem.rewards.kind)
        return paid[0]


def refuse(problem: Problem) -> None:
    """Complain of what is no world, and of one that waits to be asked."""
    validation.offering("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
    if problem.asked:
        raise InputError("problem.reveal", "asked", "random or every: here nobody can ask")


def _vectors(problem: Problem, drawn: Array | None) -> Array | None:
    """The numbers that tell arms apart, (K, p); None where an arm has a name alone."""
    if drawn is not None:
        uniform = problem.truth_draws()["actions"].law == "uniform"
        return 2 * drawn[0] - 1 if uniform else drawn[0]
    given = problem.actions if isinstance(problem, Synthetic | Recorded) else None
    return np.asarray(given, float) if np.ndim(given) == 2 else None  # type: ignore[arg-type]
