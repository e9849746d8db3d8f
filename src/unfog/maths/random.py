"""Random numbers: Philox streams by seed, trial and purpose; normal quantiles and uniforms.

There is one stream per (seed, trial), cut into parts by purpose. The key of the stream is (seed, trial) and
the purpose is the high word of its counter, so no two parts overlap, and a trial's numbers depend on nothing
but the seed, the trial and the purpose: not on the batch it runs in, the number of workers, or which agents
run beside it. Agents that need equally many draws get the same ones, so that their differences are paired as
closely as can be.

The normal quantile is algorithm AS 241, the shorter one (M. J. Wichura, *The Percentage Points of the Normal
Distribution*): three ratios of polynomials, right to 2e-7 of its value wherever the tail is a normal number.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from unfog.maths.arrays import Array

PURPOSES = ("theta", "bias", "actions", "rounds", "agent", "learner", "revealed")


def purpose_number(purpose: str) -> int:
    """The number of a purpose; for purposes that are not in `PURPOSES`, a hash of the name."""
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
        self.sources = [generator(seed, trial, purpose) for trial in trials]
        self.width, self._normal = width, law == "normal"

    def next(self, rounds: int) -> Array:
        """The next rounds: (trials, rounds, width)."""
        if len(self.sources) == 1 and self._normal:  # a single agent, round by round: faster
            return self.sources[0].standard_normal((1, rounds, self.width))
        block = np.empty((len(self.sources), rounds, self.width))
        for row, source in zip(block, self.sources, strict=True):
            if self._normal:
                source.standard_normal(out=row)
            else:
                source.random(out=row)
        return block


MIDDLE = 0.425  # the first ratio holds this far from one half
FAR = 5.0  # sqrt(-ln tail) from which on the third ratio holds
CENTRAL = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
OUTER = ((1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103), (1.0, 0.73700164250, 0.12021132975))
OUTMOST = (
    (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
    (1.0, 0.24197894225, 0.012258202635),
)


def upper_quantile(tail: Array) -> Array:
    """The value that a standard normal exceeds with this probability: quantile 1 - tail, 0 < tail < 1."""
    xp = tail.__array_namespace__()
    tail = xp.maximum(tail, xp.finfo(tail.dtype).tiny)  # a tail of zero has no finite quantile
    centred = 0.5 - tail
    is_central = xp.abs(centred) <= MIDDLE
    central = centred * _ratio(CENTRAL, MIDDLE**2 - centred**2)
    depth = xp.sqrt(-xp.log(xp.minimum(tail, 1 - tail)))
    beyond = xp.where(depth <= FAR, _ratio(OUTER, depth - 1.6), _ratio(OUTMOST, depth - FAR))
    value: Array = xp.where(is_central, central, xp.sign(centred) * beyond)
    return value


def _ratio(terms: Sequence[Sequence[float]], x: Array) -> Array:
    above, below = (_polynomial(coefficients, x) for coefficients in terms)
    return above / below


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = x.__array_namespace__().full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def uniforms(pair: Array) -> tuple[Array, Array]:
    """Two independent uniform numbers in [0, 1] from two normals (..., 2): radius and angle of the point.

    G. E. P. Box and M. E. Muller, *A Note on the Generation of Random Normal Deviates*, read backwards.

    >>> import numpy as np
    >>> from unfog.maths.random import uniforms
    >>> [round(float(one), 2) for one in uniforms(np.array([0.5, -1.0]))]
    [0.54, 0.32]
    """
    xp = pair.__array_namespace__()
    x, y = pair[..., 0], pair[..., 1]
    return xp.exp(-0.5 * (x**2 + y**2)), 0.5 + xp.atan2(y, x) / (2 * xp.pi)
