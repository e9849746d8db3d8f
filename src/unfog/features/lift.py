"""Expected features as a function of the channel's bias: x = T z, with z free of the bias.

Were the bias zero, the context of a round would have the mean v; with a bias gamma its law is N(v - s, C), s
= B gamma. The expected features of a map that is polynomial in the context are then linear in a lifted row
z(v, a), with a matrix T(s, C) that all rounds share: sums of z z' over past rounds serve for every belief
about the bias, also one that comes later. A map of blocks lifts each block alike: z has its blocks end to
end, and T is that of one block.
"""

from typing import Protocol, runtime_checkable

from unfog.maths.arrays import Array, Ints
from unfog.maths.small import product


@runtime_checkable
class Liftable(Protocol):
    """A feature map, linear or quadratic in the context, that can be expected anew for any bias."""

    def lift(self, unbiased: Array, arm: Ints) -> Array:
        """The lifted row z of an arm: v (..., d), arm (...,) -> (..., q)."""
        ...

    def projection(self, shift: Array, cov: Array) -> Array:
        """T for s (..., d) and C (..., d, d): (..., m, q), or that of one block, (..., m / K, q / K)."""
        ...


def shifted(shift: Array) -> Array:
    """[I, -s], which takes [v, 1] to v - s: (..., d) -> (..., d, d + 1)."""
    xp = shift.__array_namespace__()
    d = shift.shape[-1]
    eye = xp.broadcast_to(xp.eye(d, dtype=shift.dtype), (*shift.shape, d))
    matrix: Array = xp.concat([eye, -shift[..., None]], axis=-1)
    return matrix


def quadratic_form(mean: Array, root: Array, cov: Array) -> Array:
    """E[w'C w] with w ~ N(mean, root root'): mean (..., k), root (..., k, n), cov (..., k, k) -> (...,)."""
    xp = mean.__array_namespace__()
    certain = xp.vecdot(mean, (cov @ mean[..., None])[..., 0])
    found: Array = certain + (product(cov, root) * root).sum((-2, -1))
    return found
