"""The random numbers that worlds and learners ask for, from the streams of a run."""

from collections.abc import Mapping, Sequence

import numpy as np

from unfog.agents.base import Chain
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import RoundDraws, generator
from unfog.worlds.problem import Draws, Emission, Problem, Truth


def truth_draws(seed: int, trials: Sequence[int], wanted: Mapping[str, Draws]) -> dict[str, Array]:
    """The draws that make the truth of each trial, (trials, *shape) by name."""
    return {
        name: np.stack([draws.of(generator(seed, trial, name)) for trial in trials])
        for name, draws in wanted.items()
    }


class Nature:
    """The world's own draws, round by round, whoever plays."""

    def __init__(self, problem: Problem, seed: int, trials: Sequence[int]) -> None:
        """Start at the first round."""
        self._normals = RoundDraws(seed, trials, "rounds", problem.round_normals())
        self._uniforms = RoundDraws(seed, trials, "revealed", reveal_uniforms(problem), law="uniform")

    def next(self, rounds: int) -> tuple[Array, Array]:
        """Of the next rounds: normals (trials, rounds, w), and uniforms for what is shown."""
        return self._normals.next(rounds), self._uniforms.next(rounds)


def reveal_uniforms(problem: Problem) -> int:
    """How many uniform numbers a round takes to say what is shown of its context."""
    return (1 + problem.knowledge().context_mean.shape[0]) if problem.chosen else 0


def emitted(problem: Problem, truth: Truth, normals: Array, uniforms: Array, number: Ints) -> Emission:
    """A round, with what will be shown of it."""
    emission = problem.emit(truth, normals, number)
    return emission._replace(revealed=problem.shown(uniforms, number)) if problem.chosen else emission


class StepDraws:
    """Standard normals for the steps of a learner's chain, one round after the other.

    They may be many and grow with the rounds remembered, so they are made when they are needed.
    """

    def __init__(self, seed: int, trials: Sequence[int], chain: Chain | None, known: Knowledge) -> None:
        """Start at the first round."""
        self._chain, self._known, self._trials = chain, known, trials
        self._sources = [] if chain is None else [generator(seed, trial, "learner") for trial in trials]

    def next(self, seen: int) -> Array:
        """The next round's, with so many remembered: (steps, trials, n)."""
        if self._chain is None:
            return np.empty((0, len(self._trials), 0))
        shape = self._chain.steps, self._chain.normals(self._known, seen)
        return np.stack([source.standard_normal(shape) for source in self._sources], 1)
