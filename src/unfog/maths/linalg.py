"""Many small matrices at a time: inverses, roots, eigenvectors and products; and linear recurrences.

Compiled programs hand the matrices of a batch to LAPACK, or to a GPU's likeness of it: for thousands of
matrices of five rows the calls take many times as long as the work. Here every entry of a matrix is an array
over trials, the trials last, so that neighbours in memory are worked on side by side, in plain sums and
products. NumPy calls LAPACK as ever, and so does any library where matrices have more than `SMALL` rows.

- Inverses by sweeping the diagonal: J. H. Goodnight, *A Tutorial on the SWEEP Operator*. Of positive definite
  matrices alone: there pivots need no search.
- Eigenvectors by Jacobi's rotations, in rounds of pairs that share no row: R. P. Brent and F. T. Luk, *The
  Solution of Singular-Value and Symmetric Eigenvalue Problems on Multiprocessor Arrays*.

On a CPU rotations take half as long again as LAPACK, and so do roots of many rows: these, and products, are
by hand only where the engine says that calls are slow (`Flow.calls`).
"""

from functools import cache
from typing import Any

import numpy as np

from unfog.maths.arrays import Array, Flow, flow_of

SMALL = 12  # rows
ROOTS = 16  # likewise, of roots of inverses; and columns of what a small matrix is multiplied with
SWEEPS = 12  # of rotations at most; five or six do
NEAR = 4.0  # in units of rounding: entries beside the diagonal that are smaller, of the largest, are none


def by_hand(matrix: Array) -> bool:
    """Whether matrices are worked on entry by entry rather than by LAPACK."""
    return matrix.__array_namespace__() is not np and matrix.shape[-1] <= SMALL


def inverse(cov: Array) -> Array:
    """The inverses of positive definite matrices (..., d, d)."""
    xp = cov.__array_namespace__()
    found: Array = swept(cov)[0] if by_hand(cov) else xp.linalg.inv(cov)
    return found


def swept(cov: Array) -> tuple[Array, Array]:
    """The inverse by sweeps, and the logarithm of the determinant, (...,)."""
    xp, dim = cov.__array_namespace__(), cov.shape[-1]
    left, size = _trials_last(cov), xp.zeros(cov.shape[:-2], dtype=cov.dtype)
    for k in range(dim):
        here = _mask(left, np.arange(dim) == k)
        column, pivot = left[:, k], left[k, k]
        size = size + xp.log(pivot)
        share = column / pivot
        out = left - column[:, None] * share[None]
        out = xp.where(here[None], share[:, None], xp.where(here[:, None], share[None], out))
        left = xp.where(here[None] & here[:, None], -1 / pivot, out)
    return _trials_first(-left), size


def solve(cov: Array, right: Array) -> Array:
    """Cov^-1 right, of positive definite matrices (..., d, d) and matrices (..., d, r)."""
    xp = cov.__array_namespace__()
    found: Array = product(swept(cov)[0], right) if by_hand(cov) else xp.linalg.solve(cov, right)
    return found


def cholesky(cov: Array) -> Array:
    """The lower triangular L with L L' = cov, column by column."""
    xp, dim = cov.__array_namespace__(), cov.shape[-1]
    if not by_hand(cov):
        root: Array = xp.linalg.cholesky(cov)
        return root
    left, columns = _trials_last(cov), []
    for k in range(dim):
        columns.append(xp.where(_mask(left, np.arange(dim) >= k), left[:, k] / xp.sqrt(left[k, k]), 0.0))
        left = left - columns[-1][:, None] * columns[-1][None]
    return _trials_first(xp.stack(columns, 1))


def inverse_root(precision: Array) -> Array:
    """R with R R' = precision^-1: the transpose of L^-1 where precision = L L'.

    By hand, elimination without pivots, E precision = U with E unit lower triangular: L^-1 = diag(U)^-1/2 E.
    """
    xp, dim = precision.__array_namespace__(), precision.shape[-1]
    if dim > ROOTS or not _calls_are_slow(xp):
        root: Array = xp.linalg.inv(xp.linalg.cholesky(precision)).mT
        return root
    left = _trials_last(precision)
    zeros, ones, rows = xp.zeros_like(left[0]), xp.ones_like(left[0, :1]), []
    lower = left[:, :0]  # of E's rows from k on, what is before column k
    for k in range(dim):
        scale = 1 / xp.sqrt(left[0, 0])
        rows.append(xp.concat([xp.concat([lower[0], ones]) * scale, zeros[k + 1 :]]))
        share = left[1:, :1] / left[0, 0]
        left = left[1:, 1:] - share * left[0, 1:]
        lower = xp.concat([lower[1:] - share * lower[0], -share], axis=1)
    return _trials_first(xp.stack(rows, 1))


def product(left: Array, right: Array) -> Array:
    """The matrix product of (..., p, q) and (..., q, r)."""
    if not (_calls_are_slow(left.__array_namespace__()) and by_hand(left) and right.shape[-1] <= ROOTS):
        return left @ right
    parts = [left[..., :, k, None] * right[..., None, k, :] for k in range(left.shape[-1])]
    return sum(parts[1:], parts[0])


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., d) of symmetric matrices, in no order, and their vectors as columns (..., d, d)."""
    xp = matrix.__array_namespace__()
    flow = flow_of(xp)
    if flow is None or flow.calls or not by_hand(matrix):
        found: tuple[Array, Array] = xp.linalg.eigh(matrix)
        return found
    return _rotated(matrix, flow)


def _calls_are_slow(library: Any) -> bool:
    flow = flow_of(library)
    return flow is not None and not flow.calls


def _rotated(matrix: Array, flow: Flow) -> tuple[Array, Array]:
    """By rounds of rotations until nothing is left beside the diagonal of any matrix."""
    xp, dim = matrix.__array_namespace__(), matrix.shape[-1]
    whole = _trials_last(matrix)
    most = xp.abs(whole).max((0, 1))
    scale = xp.where(most > 0, most, 1.0)  # squares of small numbers would vanish in single precision
    beside, least = _mask(whole, ~np.eye(dim, dtype=bool)), NEAR * xp.finfo(matrix.dtype).eps

    def goes_on(state: Any) -> Any:
        count, left, _ = state
        return (count < SWEEPS) & (xp.where(beside, xp.abs(left), 0.0).max() > least)

    def sweep(state: Any) -> Any:
        count, left, turn = state
        for pairs in _rounds(dim):
            left, turn = _round(left, turn, pairs)
        return count + 1, left, turn

    eye = _mask(whole, np.eye(dim)).astype(whole.dtype)
    start = xp.asarray(0), whole / scale, xp.broadcast_to(eye, whole.shape)
    _, left, turn = flow.repeat(goes_on, sweep, start)
    return xp.stack([left[i, i] * scale for i in range(dim)], -1), _trials_first(turn)


def _round(left: Array, turn: Array, pairs: tuple[tuple[int, int], ...]) -> tuple[Array, Array]:
    """Rotations of pairs (p, q) that share no row, each making entry (p, q) zero: left = J'left J, turn J."""
    xp, dim = left.__array_namespace__(), left.shape[0]
    other, cosines, sines = (
        list(range(dim)),
        [xp.ones_like(left[0, 0])] * dim,
        [xp.zeros_like(left[0, 0])] * dim,
    )
    for p, q in pairs:
        other[p], other[q] = q, p
        cosine, sine = _rotation(left[p, p], left[q, q], left[p, q])
        cosines[p] = cosines[q] = cosine
        sines[p], sines[q] = -sine, sine
    cosine, sine, places = xp.stack(cosines), xp.stack(sines), np.asarray(other)
    left = left * cosine[None] + left[:, places] * sine[None]
    left = left * cosine[:, None] + left[places] * sine[:, None]
    gone = _mask(left, (places[:, None] == np.arange(dim)) & ~np.eye(dim, dtype=bool))
    return xp.where(gone, 0.0, left), turn * cosine[None] + turn[:, places] * sine[None]


def _rotation(first: Array, last: Array, between: Array) -> tuple[Array, Array]:
    """Cosine and sine of the smaller angle that makes [[first, between], [between, last]] diagonal."""
    xp = between.__array_namespace__()
    apart = 0.5 * (last - first)
    reach = xp.abs(apart) + xp.sqrt(apart**2 + between**2)
    tangent = xp.where(apart < 0, -between, between) / xp.where(reach > 0, reach, 1.0)
    cosine = 1 / xp.sqrt(1 + tangent**2)
    return cosine, tangent * cosine


@cache
def _rounds(dim: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """All pairs of so many rows, in rounds where none is twice: one stays, the others move on by a seat."""
    seats = list(range(dim + dim % 2))
    found = []
    for _ in seats[1:]:
        pairs = zip(seats[: len(seats) // 2], reversed(seats[len(seats) // 2 :]), strict=True)
        found.append(tuple((min(p, q), max(p, q)) for p, q in pairs if max(p, q) < dim))
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return tuple(found)


def _mask(like: Array, entries: Any) -> Any:
    """Of rows (d,) or entries (d, d), for all trials: with axes of one."""
    return entries.reshape(*entries.shape, *(1,) * (like.ndim - 2))


def _trials_last(matrix: Array) -> Array:
    """(..., d, d) -> (d, d, ...)."""
    return matrix.__array_namespace__().moveaxis(matrix, (-2, -1), (0, 1))


def _trials_first(matrix: Array) -> Array:
    """(d, d, ...) -> (..., d, d)."""
    return matrix.__array_namespace__().moveaxis(matrix, (0, 1), (-2, -1))


def recurrence(keep: Array, fresh: Array) -> Array:
    """All x_t = keep_t x_{t-1} + fresh_t at once: keep (..., n) and fresh (..., n, d) -> (..., n, d).

    The first is fresh_0. It takes log2(n) steps instead of n, and no loop over t has to be compiled: two
    stretches that follow each other, (a, b) and (a', b'), are one stretch (a a', a' b + b'), and stretches
    double in length. W. D. Hillis and G. L. Steele, *Data parallel algorithms*.
    """
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
