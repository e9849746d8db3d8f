"""The arm with the largest of some numbers: what all choosers that draw nothing have in common.

They differ in the numbers alone, `bounds`: expected scores, upper quantiles, upper ends of an ellipsoid.

Arms that nobody has played, or that look alike, have equal scores but for the last bit, and the last bit
depends on the processor. So scores within `TIE` of the largest, relative to it, count as equal to it, and the
first of equals is taken. Compiled kernels have the same rule (simulate/engines: numba_scores.py, kernel.cu).
"""

from abc import abstractmethod

from unfog.agents.parts import Chooser, View
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Bools, Ints

TIE = 1e-9  # far above rounding, far below what a reward could tell; without effect in single precision


class Largest(Chooser):
    """A chooser but for its numbers; the first of equals is taken."""

    propensity = "exact"

    @abstractmethod
    def bounds(self, view: View) -> Array:
        """A number for every arm, below all others for those that may not be chosen: (..., K)."""

    def normals(self, known: Knowledge) -> int:
        """None."""
        return 0

    def choose(self, view: View, normals: Array) -> Ints:
        """The arm with the largest number."""
        return for_all(best(self.bounds(view)), normals)

    def probabilities(self, view: View, draws: Array) -> Array:
        """One for the arm that is chosen, and zero for the others."""
        return alone(self.bounds(view), draws)

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """Both, with every number worked out once."""
        numbers = self.bounds(view)
        return for_all(best(numbers), normals), alone(numbers, draws)


def best(values: Array) -> Ints:
    """The arm with the largest value, the first of equals: (..., K) -> (...,).

    >>> import numpy as np
    >>> from unfog.agents.choose.largest import best
    >>> best(np.array([[1.0, 3.0, 3.0 + 1e-15], [2.0, 0.0, 1.0]])).tolist()
    [1, 0]
    """
    arm: Ints = among_largest(values).argmax(-1)
    return arm


def among_largest(values: Array) -> Bools:
    """Which values are the largest or equal to it, within `TIE` of it: (..., K) -> (..., K).

    Relative to the largest alone: however far below it others are, they do not make what is apart a tie.
    """
    xp, most = values.__array_namespace__(), values.max(-1)
    found: Bools = values >= xp.minimum((1 - TIE) * most, (1 + TIE) * most)[..., None]
    return found


def for_all(arm: Ints, normals: Array) -> Ints:
    """The arm for every trial: in a first round trials may share all that decides, but not their normals."""
    xp = normals.__array_namespace__()
    return arm + xp.zeros(normals.shape[:-1], dtype=arm.dtype)


def alone(values: Array, draws: Array) -> Array:
    """All of the probability on the arm with the largest value: (..., K) -> (..., K).

    >>> import numpy as np
    >>> from unfog.agents.choose.largest import alone
    >>> alone(np.array([1.0, 3.0, 2.0]), draws=np.zeros((1, 2))).tolist()
    [0.0, 1.0, 0.0]
    """
    xp = draws.__array_namespace__()
    found: Array = (xp.arange(values.shape[-1]) == best(values)[..., None]).astype(draws.dtype)
    return found
