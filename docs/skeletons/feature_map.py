"""A feature map to start from: any function phi(a, c), its moments by quadrature.

A function is enough: `unfog.features.quadrature` takes its mean and covariance over the belief about the
context. It must broadcast over leading axes, and find its library in its arguments to be compiled. Only where
that is too slow, write a map with closed forms, as features/linear.py is.
"""

from unfog.features import quadrature
from unfog.maths.arrays import Array

DIM = 2


def phi(action: Array, context: Array) -> Array:
    """Features of an action (..., 2) and a context (..., 2), broadcast against each other: (..., 4)."""
    xp = context.__array_namespace__()
    wave = xp.sin(action * context)
    found: Array = xp.concat([wave, action * context], axis=-1)
    return found


skeleton = quadrature(phi, DIM, order=7)
