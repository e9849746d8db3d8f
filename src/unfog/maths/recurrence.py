"""x_t = keep_t x_{t-1} + fresh_t for all t at once, in log2(n) steps instead of n.

W. D. Hillis and G. L. Steele, *Data parallel algorithms*: two stretches that follow each other, (a, b) and
(a', b'), are one stretch (a a', a' b + b'), and stretches double in length. No loop over t to be compiled.
"""

from unfog.maths.arrays import Array


def recurrence(keep: Array, fresh: Array) -> Array:
    """All x_t (..., n, d) from keep (..., n) and fresh (..., n, d), the first being fresh_0."""
    xp = fresh.__array_namespace__()
    share, found, length = keep[..., None], fresh, 1
    while length < fresh.shape[-2]:
        before = found[..., :-length, :]
        added = found[..., length:, :] + share[..., length:, :] * before
        found = xp.concat([found[..., :length, :], added], axis=-2)
        joined = share[..., length:, :] * share[..., :-length, :]
        share = xp.concat([share[..., :length, :], joined], axis=-2)
        length *= 2
    return found
