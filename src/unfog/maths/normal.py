"""The standard normal distribution: its quantiles, and uniform numbers made of draws from it.

The quantile is algorithm AS 241, the shorter one (M. J. Wichura, *The Percentage Points of the Normal
Distribution*): three ratios of polynomials, right to 2e-7 of its value wherever the tail is a normal number.
"""

from collections.abc import Sequence

from unfog.maths.arrays import Array

MIDDLE = 0.425  # how far from one half the first ratio serves
FAR = 5.0  # sqrt(-ln tail) from which on the third one does
CENTRAL = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
OUTER = ((1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103), (1.0, 0.73700164250, 0.12021132975))
OUTMOST = (
    (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
    (1.0, 0.24197894225, 0.012258202635),
)


def exceeded(tail: Array) -> Array:
    """The value that a standard normal exceeds with this probability: quantile 1 - tail, 0 < tail < 1."""
    xp = tail.__array_namespace__()
    tail = xp.maximum(tail, xp.finfo(tail.dtype).tiny)  # what is less than any number exceeds nothing
    away = 0.5 - tail
    near = xp.abs(away) <= MIDDLE
    central = away * _ratio(CENTRAL, MIDDLE**2 - away**2)
    depth = xp.sqrt(-xp.log(xp.minimum(tail, 1 - tail)))
    beyond = xp.where(depth <= FAR, _ratio(OUTER, depth - 1.6), _ratio(OUTMOST, depth - FAR))
    found: Array = xp.where(near, central, xp.sign(away) * beyond)
    return found


def _ratio(terms: Sequence[Sequence[float]], at: Array) -> Array:
    above, below = (_polynomial(coefficients, at) for coefficients in terms)
    return above / below


def _polynomial(coefficients: Sequence[float], at: Array) -> Array:
    total = at.__array_namespace__().full_like(at, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * at + coefficient
    return total


def uniforms(pair: Array) -> tuple[Array, Array]:
    """Two independent uniform numbers in [0, 1] from two normals (..., 2): radius and angle of the point.

    G. E. P. Box and M. E. Muller, *A Note on the Generation of Random Normal Deviates*, read backwards.

    >>> import numpy as np
    >>> from unfog.maths.normal import uniforms
    >>> [round(float(one), 2) for one in uniforms(np.array([0.5, -1.0]))]
    [0.54, 0.32]
    """
    xp = pair.__array_namespace__()
    x, y = pair[..., 0], pair[..., 1]
    return xp.exp(-0.5 * (x**2 + y**2)), 0.5 + xp.atan2(y, x) / (2 * xp.pi)
