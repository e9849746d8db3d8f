"""Beliefs about a vector that becomes longer: what is new at its end is independent of all before it.

Arrays of before have batch axes; what comes at their end is taken from arrays of the longer vector as it was
to begin with, which have none, and is the same in every trial.
"""

from unfog.maths.arrays import Array
from unfog.maths.blocks import Belief, Blocks
from unfog.maths.gaussian import Gaussian


def longer(old: Array, fresh: Array, axis: int) -> Array:
    """With all that the fresh one has beyond it along an axis, counted from the last: -1, -2, ..."""
    xp, size = old.__array_namespace__(), old.shape[axis]
    tail = xp.moveaxis(xp.moveaxis(fresh, axis, 0)[size:], 0, axis)
    after = old.ndim + axis
    shape = *old.shape[:after], tail.shape[axis], *old.shape[after + 1 :]
    found: Array = xp.concat([old, xp.broadcast_to(tail, shape)], axis=axis)
    return found


def larger(old: Array, fresh: Array) -> Array:
    """A matrix (..., m, n) with that of the new part after it along the diagonal, and zeros beside both.

    The fresh one is square, (m', m').
    """
    xp, (rows, columns) = old.__array_namespace__(), old.shape[-2:]
    tail = fresh[..., rows:, rows:]
    batch, (more, wider) = old.shape[:-2], tail.shape[-2:]
    tail = xp.broadcast_to(tail, (*batch, more, wider))
    right, below = (xp.zeros((*batch, *shape), dtype=old.dtype) for shape in ((rows, wider), (more, columns)))
    upper, lower = xp.concat([old, right], axis=-1), xp.concat([below, tail], axis=-1)
    found: Array = xp.concat([upper, lower], axis=-2)
    return found


def grown(old: Belief, fresh: Belief) -> Belief:
    """A belief about the longer vector, of what is believed by now and of what the fresh one has at its end.

    Axes between the batch and the vector, those of scales or of slopes, are in both.
    """
    if isinstance(old, Blocks):
        xp, root = old.root.__array_namespace__(), fresh.root
        wider = old.root.shape[-1] - root.shape[-1]  # a root may have more columns than rows
        root = xp.concat([root, xp.zeros((*root.shape[:-1], wider), dtype=root.dtype)], axis=-1)
        return Blocks(longer(old.mean, fresh.mean, -2), longer(old.root, root, -3))
    return Gaussian(longer(old.mean, fresh.mean, -1), larger(old.root, fresh.root))
