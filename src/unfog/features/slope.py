"""How the expected score of an arm changes with the context, for learners that linearise.

For a map at most quadratic in the context, and c ~ N(v, C), E[phi(a, c)] hangs on C by a term that does not
know v: the slope of psi(a)'theta in v is E[d phi(a, c) / dc]'theta, taken at c = v.
"""

from typing import Protocol, runtime_checkable

from unfog.maths.arrays import Array, Ints


@runtime_checkable
class Sloped(Protocol):
    """A feature map, linear or quadratic in the context, whose expected scores have a slope in it."""

    def slope(self, mean: Array, theta: Array, arm: Ints) -> Array:
        """That of psi(arm)'theta: v (..., d), theta (..., m), arm (...,) -> (..., d)."""
        ...
