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
ROOTS = 16  # rows, for roots of inverses; and columns of the right factor of a product
SWEEPS = 12  # sweeps of rotations at most; five or six suffice
NEAR = 4.0  # in units of rounding, relative to the largest entry: smaller off-diagonal entries count as zero


def by_hand(matrix: Array) -> bool:
    """Whether matrices are worked on entry by entry rather than by LAPACK."""
    return matrix.__array_namespace__() is not np and matrix.shape[-1] <= SMALL


def inverse(cov: Array) -> Array:
    """The inverses of positive definite matrices (..., d, d)."""
    xp = cov.__array_namespace__()
    inverses: Array = sweep(cov)[0] if by_hand(cov) else xp.linalg.inv(cov)
    return inverses


def sweep(cov: Array) -> tuple[Array, Array]:
    """The inverse by sweeps, and the logarithm of the determinant, (...,)."""
    xp, dim = cov.__array_namespace__(), cov.shape[-1]
    rest, log_det = _move_trials_last(cov), xp.zeros(cov.shape[:-2], dtype=cov.dtype)
    for k in range(dim):
        is_pivot = _over_trials(rest, np.arange(dim) == k)
        column, pivot = rest[:, k], rest[k, k]
        log_det = log_det + xp.log(pivot)
        ratio = column / pivot
        updated = rest - column[:, None] * ratio[None]
        updated = xp.where(is_pivot[None], ratio[:, None], xp.where(is_pivot[:, None], ratio[None], updated))
        rest = xp.where(is_pivot[None] & is_pivot[:, None], -1 / pivot, updated)
    return _move_trials_first(-rest), log_det


def solve(cov: Array, right: Array) -> Array:
    """Cov^-1 right, of positive definite matrices (..., d, d) and matrices (..., d, r)."""
    xp = cov.__array_namespace__()
    solution: Array = product(sweep(cov)[0], right) if by_hand(cov) else xp.linalg.solve(cov, right)
    return solution


def cholesky(cov: Array) -> Array:
    """The lower triangular L with L L' = cov, column by column."""
    xp, dim = cov.__array_namespace__(), cov.shape[-1]
    if not by_hand(cov):
        root: Array = xp.linalg.cholesky(cov)
        return root
    rest, columns = _move_trials_last(cov), []
    for k in range(dim):
        columns.append(
            xp.where(_over_trials(rest, np.arange(dim) >= k), rest[:, k] / xp.sqrt(rest[k, k]), 0.0)
        )
        rest = rest - columns[-1][:, None] * columns[-1][None]
    return _move_trials_first(xp.stack(columns, 1))


def inverse_root(precision: Array) -> Array:
    """R with R R' = precision^-1: the transpose of L^-1 where precision = L L'.

    By hand, elimination without pivots, E precision = U with E unit lower triangular: L^-1 = diag(U)^-1/2 E.
    """
    xp, dim = precision.__array_namespace__(), precision.shape[-1]
    if dim > ROOTS or not _has_slow_calls(xp):
        root: Array = xp.linalg.inv(xp.linalg.cholesky(precision)).mT
        return root
    rest = _move_trials_last(precision)
    zeros, ones, rows = xp.zeros_like(rest[0]), xp.ones_like(rest[0, :1]), []
    lower = rest[:, :0]  # the rows of E from k on, before column k
    for k in range(dim):
        scale = 1 / xp.sqrt(rest[0, 0])
        rows.append(xp.concat([xp.concat([lower[0], ones]) * scale, zeros[k + 1 :]]))
        ratio = rest[1:, :1] / rest[0, 0]
        rest = rest[1:, 1:] - ratio * rest[0, 1:]
        lower = xp.concat([lower[1:] - ratio * lower[0], -ratio], axis=1)
    return _move_trials_first(xp.stack(rows, 1))


def product(left: Array, right: Array) -> Array:
    """The matrix product of (..., p, q) and (..., q, r)."""
    if not (_has_slow_calls(left.__array_namespace__()) and by_hand(left) and right.shape[-1] <= ROOTS):
        return left @ right
    terms = [left[..., :, k, None] * right[..., None, k, :] for k in range(left.shape[-1])]
    return sum(terms[1:], terms[0])


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., d) of symmetric matrices, in no order, and their vectors as columns (..., d, d)."""
    xp = matrix.__array_namespace__()
    flow = flow_of(xp)
    if flow is None or flow.calls or not by_hand(matrix):
        values_and_vectors: tuple[Array, Array] = xp.linalg.eigh(matrix)
        return values_and_vectors
    return _diagonalise(matrix, flow)


def _has_slow_calls(library: Any) -> bool:
    flow = flow_of(library)
    return flow is not None and not flow.calls


def _diagonalise(matrix: Array, flow: Flow) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors by rounds of rotations, until every matrix is diagonal."""
    xp, dim = matrix.__array_namespace__(), matrix.shape[-1]
    entries = _move_trials_last(matrix)
    largest = xp.abs(entries).max((0, 1))
    scale = xp.where(largest > 0, largest, 1.0)  # squares of small numbers would vanish in single precision
    off_diagonal, tolerance = (
        _over_trials(entries, ~np.eye(dim, dtype=bool)),
        NEAR * xp.finfo(matrix.dtype).eps,
    )

    def is_not_diagonal(state: Any) -> Any:
        sweeps, current, _ = state
        return (sweeps < SWEEPS) & (xp.where(off_diagonal, xp.abs(current), 0.0).max() > tolerance)

    def sweep(state: Any) -> Any:
        sweeps, current, vectors = state
        for pairs in _rounds(dim):
            current, vectors = _rotate_pairs(current, vectors, pairs)
        return sweeps + 1, current, vectors

    eye = _over_trials(entries, np.eye(dim)).astype(entries.dtype)
    start = xp.asarray(0), entries / scale, xp.broadcast_to(eye, entries.shape)
    _, current, vectors = flow.repeat(is_not_diagonal, sweep, start)
    return xp.stack([current[i, i] * scale for i in range(dim)], -1), _move_trials_first(vectors)


def _rotate_pairs(matrix: Array, vectors: Array, pairs: tuple[tuple[int, int], ...]) -> tuple[Array, Array]:
    """J'matrix J and vectors J: J rotates disjoint pairs of rows (p, q) so that entry (p, q) becomes zero."""
    xp, dim = matrix.__array_namespace__(), matrix.shape[0]
    partner, cosines, sines = (
        list(range(dim)),
        [xp.ones_like(matrix[0, 0])] * dim,
        [xp.zeros_like(matrix[0, 0])] * dim,
    )
    for p, q in pairs:
        partner[p], partner[q] = q, p
        cosine, sine = _find_rotation(matrix[p, p], matrix[q, q], matrix[p, q])
        cosines[p] = cosines[q] = cosine
        sines[p], sines[q] = -sine, sine
    cosine, sine, partners = xp.stack(cosines), xp.stack(sines), np.asarray(partner)
    matrix = matrix * cosine[None] + matrix[:, partners] * sine[None]
    matrix = matrix * cosine[:, None] + matrix[partners] * sine[:, None]
    is_zeroed = _over_trials(matrix, (partners[:, None] == np.arange(dim)) & ~np.eye(dim, dtype=bool))
    return xp.where(is_zeroed, 0.0, matrix), vectors * cosine[None] + vectors[:, partners] * sine[None]


def _find_rotation(first: Array, last: Array, between: Array) -> tuple[Array, Array]:
    """Cosine and sine of the smaller angle that makes [[first, between], [between, last]] diagonal."""
    xp = between.__array_namespace__()
    half_gap = 0.5 * (last - first)
    denominator = xp.abs(half_gap) + xp.sqrt(half_gap**2 + between**2)
    tangent = xp.where(half_gap < 0, -between, between) / xp.where(denominator > 0, denominator, 1.0)
    cosine = 1 / xp.sqrt(1 + tangent**2)
    return cosine, tangent * cosine


@cache
def _rounds(dim: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """All pairs of `dim` rows, in rounds that use each row once at most, as in a round-robin tournament."""
    order = list(range(dim + dim % 2))
    rounds = []
    for _ in order[1:]:
        pairs = zip(order[: len(order) // 2], reversed(order[len(order) // 2 :]), strict=True)
        rounds.append(tuple((min(p, q), max(p, q)) for p, q in pairs if max(p, q) < dim))
        order = [order[0], order[-1], *order[1:-1]]
    return tuple(rounds)


def _over_trials(like: Array, entries: Any) -> Any:
    """Rows (d,) or entries (d, d) with trailing axes of one, to broadcast over trials."""
    return entries.reshape(*entries.shape, *(1,) * (like.ndim - 2))


def _move_trials_last(matrix: Array) -> Array:
    """Move the axes of the matrix to the front: (..., d, d) -> (d, d, ...)."""
    return matrix.__array_namespace__().moveaxis(matrix, (-2, -1), (0, 1))


def _move_trials_first(matrix: Array) -> Array:
    """Move the axes of the matrix to the end: (d, d, ...) -> (..., d, d)."""
    return matrix.__array_namespace__().moveaxis(matrix, (0, 1), (-2, -1))


def recurrence(keep: Array, fresh: Array) -> Array:
    """All x_t = keep_t x_{t-1} + fresh_t at once: keep (..., n) and fresh (..., n, d) -> (..., n, d).

    The first is fresh_0. It takes log2(n) steps instead of n, and no loop over t has to be compiled: two
    stretches that follow each other, (a, b) and (a', b'), are one stretch (a a', a' b + b'), and stretches
    double in length. W. D. Hillis and G. L. Steele, *Data parallel algorithms*.
    """
    xp = fresh.__array_namespace__()
    factor, values, length = keep[..., None], fresh, 1
    while length < fresh.shape[-2]:
        earlier = values[..., :-length, :]
        later = values[..., length:, :] + factor[..., length:, :] * earlier
        values = xp.concat([values[..., :length, :], later], axis=-2)
        later_factor = factor[..., length:, :] * factor[..., :-length, :]
        factor = xp.concat([factor[..., :length, :], later_factor], axis=-2)
        length *= 2
    return values
