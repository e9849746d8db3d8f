"""Bounded surprise: what is too far from what was expected counts as if it were just within reach.

A reading or a reward x that was expected to be N(mean, variance) is taken for

    mean + clip(x - mean, -limit sd, limit sd),

so that a single absurd one, however large, moves a belief no further than one `limit` deviations off does
(Winsorising; P. J. Huber, *Robust Estimation of a Location Parameter*, gives the reasons). Under a belief
that is right one in 5e8 is touched at six deviations. Under one that is wrong, clipped values still
point the right way, and what was too far yesterday is within reach once the belief has moved. Clipping is
coordinate by coordinate, and what was lost stays lost. How often it came to that is counted. Denoisers to
which it would cost an inverse a round expect what they did at first: see their `expected`.
"""

from typing import Any, NamedTuple

from unfog.maths.arrays import Array, Ints, settled


class Surprises(NamedTuple):
    """How often something had to be brought within reach."""

    contexts: Ints  # (...,)  noisy contexts, and true ones
    rewards: Ints  # (...,)


def none_yet(like: Array) -> Surprises:
    """Before the first round."""
    xp = like.__array_namespace__()
    return Surprises(xp.zeros((), dtype=xp.int64), xp.zeros((), dtype=xp.int64))


def within(values: Array, mean: Array, variance: Array, limit: float) -> tuple[Array, Any]:
    """The values within reach of their means, and which of them were not; not a number stays what it is."""
    xp = values.__array_namespace__()
    away, reach = values - mean, limit * xp.sqrt(variance)
    far = xp.abs(away) > reach
    if settled(~far):
        return values, far
    return xp.where(far, mean + xp.sign(away) * reach, values), far


def counted(
    counts: Surprises | tuple[()], contexts: Any = None, rewards: Any = None
) -> Surprises | tuple[()]:
    """With these surprises, (...,) each, where any are counted."""
    if not isinstance(counts, Surprises):
        return counts
    found = (
        old if more is None else old + more for old, more in zip(counts, (contexts, rewards), strict=True)
    )
    return Surprises(*found)
