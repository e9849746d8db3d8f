"""The random numbers of a run: one Philox stream per (seed, trial), cut into parts by purpose.

The key of the stream is (seed, trial) and the purpose is the high word of its counter, so no two parts
overlap, and a trial's numbers depend on nothing but the seed, the trial and the purpose: not on the batch it
runs in, the number of workers, or which agents run beside it. Agents that need equally many draws get the
same ones, so that their differences are paired as closely as can be.
"""

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from unfog.agents.parts import Chain
from unfog.maths.arrays import Array
from unfog.model.knowledge import Knowledge
from unfog.worlds.problem import Draws

PURPOSES = ("theta", "bias", "actions", "rounds", "agent", "learner")


def purpose_number(purpose: str) -> int:
    """A number for a purpose; a world's own purposes, beyond those known here, get one from their name."""
    return PURPOSES.index(purpose) if purpose in PURPOSES else zlib.crc32(purpose.encode()) | 2**31


def generator(seed: int, trial: int, purpose: str) -> np.random.Generator:
    """The stream of one trial for one purpose."""
    key = np.array([seed, trial], dtype=np.uint64)
    counter = np.array([0, 0, 0, purpose_number(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def truth_draws(seed: int, trials: Sequence[int], wanted: Mapping[str, Draws]) -> dict[str, Array]:
    """The draws that make the truth of each trial, (trials, *shape) by name."""

    def one(name: str, draws: Draws, trial: int) -> Array:
        source = generator(seed, trial, name)
        return source.standard_normal(draws.shape) if draws.law == "normal" else source.random(draws.shape)

    return {name: np.stack([one(name, draws, t) for t in trials]) for name, draws in wanted.items()}


class RoundTape:
    """Standard normals for one round after the other, in blocks."""

    def __init__(self, seed: int, trials: Sequence[int], purpose: str, width: int) -> None:
        """Wind to the first round."""
        self._sources = [generator(seed, trial, purpose) for trial in trials]
        self._width = width

    def next(self, rounds: int) -> Array:
        """The next rounds: (trials, rounds, width)."""
        block = np.empty((len(self._sources), rounds, self._width))
        for row, source in zip(block, self._sources, strict=True):
            source.standard_normal(out=row)
        return block


class StepTape:
    """Standard normals for the steps of a learner's chain, one round after the other.

    They may be many and grow with the rounds remembered, so they are made when they are needed.
    """

    def __init__(self, seed: int, trials: Sequence[int], chain: Chain | None, known: Knowledge) -> None:
        """Wind to the first round."""
        self._chain, self._known, self._trials = chain, known, trials
        self._sources = [] if chain is None else [generator(seed, trial, "learner") for trial in trials]

    def next(self, seen: int) -> Array:
        """The next round's, with so many remembered: (steps, trials, n)."""
        if self._chain is None:
            return np.empty((0, len(self._trials), 0))
        shape = self._chain.steps, self._chain.normals(self._known, seen)
        return np.stack([source.standard_normal(shape) for source in self._sources], 1)
