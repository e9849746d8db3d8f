"""Streams of random numbers: one Philox stream per (seed, trial), cut into parts by purpose.

The key of the stream is (seed, trial) and the purpose is the high word of its counter, so no two parts
overlap, and a trial's numbers depend on nothing but the seed, the trial and the purpose: not on the batch it
runs in, the number of workers, or which agents run beside it. Agents that need equally many draws get the
same ones, so that their differences are paired as closely as can be.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from unfog.maths.arrays import Array

PURPOSES = ("theta", "bias", "actions", "rounds", "agent", "learner", "revealed")


def purpose_number(purpose: str) -> int:
    """A number for a purpose; those beyond the ones known here get one from their name."""
    return PURPOSES.index(purpose) if purpose in PURPOSES else zlib.crc32(purpose.encode()) | 2**31


class _Key(ISeedSequence):
    """A key in place of a seed: Philox(key=...) gathers entropy first, which takes four times as long."""

    def __init__(self, key: Any) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:  # noqa: ARG002
        """The key itself: two words, which is what Philox asks for."""
        return self._key


def generator(seed: int, trial: int, purpose: str) -> np.random.Generator:
    """The stream of one trial for one purpose."""
    key = np.array([seed, trial], dtype=np.uint64)
    counter = np.array([0, 0, 0, purpose_number(purpose)], dtype=np.uint64)
    words: Any = _Key(key)
    return np.random.Generator(np.random.Philox(words, counter=counter))


class RoundDraws:
    """Standard normals, or uniform numbers, for one round after the other, in blocks."""

    def __init__(
        self, seed: int, trials: Sequence[int], purpose: str, width: int, law: str = "normal"
    ) -> None:
        """Start at the first round."""
        self._trials = len(trials)
        self._sources = [generator(seed, trial, purpose) for trial in trials] if width else []
        self._width, self._normal = width, law == "normal"

    def next(self, rounds: int) -> Array:
        """The next rounds: (trials, rounds, width)."""
        block = np.empty((self._trials, rounds, self._width))
        for row, source in zip(block, self._sources, strict=bool(self._width)):
            if self._normal:
                source.standard_normal(out=row)
            else:
                source.random(out=row)
        return block
