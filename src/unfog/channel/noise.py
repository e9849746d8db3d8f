"""The covariance of a channel's noise, from pairs and from measurements alone, the bias unknown too.

With Sigma_c = I, n pairs z ~ N(gamma, N) and u measurements y ~ N(gamma, I + N), the N that solves

    trust (N - told) + (n N - Rz) + B (u (I + N) - Ry) B' = 0,   B = N (I + N)^-1,

where Rz and Ry are the expected scatters about gamma ~ N(g, S), the belief that goes with this N:

    S^-1 = Sigma_gamma^-1 + n N^-1 + u (I + N)^-1,   g = S (N^-1 sum z + (I + N)^-1 sum y).

Steps are Newton's, entry by entry in coordinates where N is diagonal: one eigendecomposition a step, and no
inverse but that of S^-1. From pairs alone, gamma known, the first step is the solution. An entry's slope is

    trust + n + u b_i b_j - (n + u b_i b_j)^2 s_i s_j,   b = diag(B), s = diag(S) / diag(N),

of which the last part, one at most, is what the bias makes up for, following N. Later steps count in that B
changes with N, too, where measurements alone do not fit it yet. Each N is bounded by the one before, so that
it stays a covariance. A trial is done when a step moved it by less than `NEAR`: steps shrink by a factor of
two to ten, and what is left is 1 to 5 % of N, far less than the posterior's own width.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, diagonal_matrix, matvec
from unfog.maths.linalg import eigh, inverse, product
from unfog.maths.trees import settle

STEPS = 8  # at most
NEAR = 0.1  # a step that changes N by less, of its own size, is the last
FIRST = 0.1  # of N, in every direction, is left by the first step at least: what is told may be far off
LEAST, MOST = 0.4, 4.0  # of N, that a later step leaves at least, and makes of it at most


class Sums(NamedTuple):
    """All that was seen, and what was told."""

    pairs: Array  # (...,)  n
    worth: Array  # (...,)  trust + n
    alone: Array  # (...,)  u
    totals: Array  # (..., d, 2)  sum z, sum y
    squares: Array  # (..., 3, d, d)  trust told + sum z z', sum y y', and the prior's precision of the bias


class Noise(NamedTuple):
    """N = turn diag(size) turn', and by how much the last step moved it."""

    size: Array  # (..., d)
    turn: Array  # (..., d, d)  orthogonal
    moved: Array  # (...,)


class View(NamedTuple):
    """Where N is diagonal: how well the bias is known, and the scatters of pairs and measurements."""

    cov: Array  # (..., d, d)  S
    sure: Array  # (..., d, d)  trust told + Rz
    seen: Array  # (..., d, d)  Ry


class Fit(NamedTuple):
    """N = turn diag(size) turn', and what was seen in coordinates where it is diagonal."""

    size: Array  # (..., d)
    turn: Array  # (..., d, d)
    sums: Sums


def fit(told: Array, sums: Sums) -> Fit:
    """The solution, from what was told, diag(told)."""
    left, slope, _ = _newton(sums, told)
    noise = _moved(told, left / slope, FIRST, None)
    noise = settle(lambda at: at.moved > NEAR, _step, noise, STEPS - 1, sums)
    return Fit(noise.size, noise.turn, _turned(sums, noise.turn))


def bias(sums: Sums, size: Array, more: Array | None = None) -> tuple[Array, Array]:
    """G and S, were N = diag(size); with one measurement alone more (..., d), where it is given."""
    u, y = sums.alone[..., None], sums.totals[..., 1]
    if more is not None:
        u, y = u + 1, y + more
    seen = diagonal_matrix(sums.pairs[..., None] / size + u / (1 + size))
    cov = inverse(sums.squares[..., 2, :, :] + seen)
    return matvec(cov, sums.totals[..., 0] / size + y / (1 + size)), cov


def _turned(sums: Sums, turn: Array) -> Sums:
    """In coordinates that are turned, where Sigma_c = I still."""
    squares = product(product(turn.mT[..., None, :, :], sums.squares), turn[..., None, :, :])
    return sums._replace(totals=product(turn.mT, sums.totals), squares=squares)


def _view(sums: Sums, size: Array) -> View:
    """What is believed of the bias, and what follows of the scatters, were N = diag(size)."""
    (mean, cov), squares = bias(sums, size), sums.squares
    (z, y), n, u = (sums.totals[..., i] for i in (0, 1)), sums.pairs[..., None], sums.alone[..., None]
    sure = squares[..., 0, :, :] + _about(n, z, mean, cov)
    return View(cov, sure, squares[..., 1, :, :] + _about(u, y, mean, cov))


def _about(count: Array, total: Array, mean: Array, cov: Array) -> Array:
    """What the expected sum of squares about a bias N(mean, cov) has beyond that about zero."""
    cross = (total - 0.5 * count * mean)[..., :, None] * mean[..., None, :]
    return count[..., None] * cov - cross - cross.mT


def _step(noise: Noise, sums: Sums) -> Noise:
    """A later step. Where measurements alone do not fit N the slope is another, since B changes with N."""
    size, turn, _ = noise
    left, slope, bend = _newton(_turned(sums, turn), size)
    xp = slope.__array_namespace__()
    bend = xp.maximum(bend, -0.25 * xp.linalg.diagonal(slope))  # to stay above zero
    slope = xp.maximum(slope + bend[..., :, None] + bend[..., None, :], 0.5 * sums.worth[..., None, None])
    found = _moved(size, left / slope, LEAST, MOST)
    return found._replace(turn=product(turn, found.turn))


def _newton(sums: Sums, size: Array) -> tuple[Array, Array, Array]:
    """What the equation leaves, its slope if N is right, and what to add to that for either coordinate."""
    xp, view, shrunk = size.__array_namespace__(), _view(sums, size), size / (1 + size)  # shrunk: B
    u, both = sums.alone[..., None], shrunk[..., :, None] * shrunk[..., None, :]
    left = diagonal_matrix((sums.worth[..., None] + u * shrunk) * size) - view.sure - both * view.seen
    alone, tied = u[..., None] * both, xp.linalg.diagonal(view.cov) / size
    freed = (sums.pairs[..., None, None] + alone) ** 2 * tied[..., :, None] * tied[..., None, :]
    bend = (u - xp.linalg.diagonal(view.seen) / (1 + size)) * shrunk / (1 + size)
    return left, sums.worth[..., None, None] + alone - freed, bend


def _moved(size: Array, less: Array, least: float, most: float | None) -> Noise:
    """N = diag(size) less a matrix: a covariance that is not too far from N in any of its own directions."""
    xp = less.__array_namespace__()
    found, turn = eigh(diagonal_matrix(size) - less)
    last = matvec((turn**2).mT, size)
    found = xp.maximum(found, least * last)
    unit = 1 / xp.sqrt(size)
    moved = xp.abs(less * unit[..., :, None] * unit[..., None, :]).max((-2, -1))
    return Noise(found if most is None else xp.minimum(found, most * last), turn, moved)
