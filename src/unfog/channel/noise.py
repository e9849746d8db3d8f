"""The covariance of a channel's noise, from pairs and from measurements alone, with the bias unknown, too.

With Sigma_c = I, n pairs z ~ N(gamma, N) and u measurements y ~ N(gamma, I + N), the N that solves

    trust (N - told) + (n N - Rz) + B (u (I + N) - Ry) B' = 0,   B = N (I + N)^-1,

where Rz and Ry are the expected scatters about gamma ~ N(g, S), the belief that goes with this N:

    S^-1 = Sigma_gamma^-1 + n N^-1 + u (I + N)^-1,   g = S (N^-1 sum z + (I + N)^-1 sum y).

Steps are Newton's, entry by entry in coordinates where N is diagonal: one eigendecomposition a step, and no
inverse but that of S^-1. From pairs alone, gamma known, the first step is the solution. An entry's slope is

    trust + n + u b_i b_j - (n + u b_i b_j)^2 s_i s_j,   b = diag(B), s = diag(S) / diag(N),

of which the last part, at most one, is the degree of freedom that the unknown bias absorbs. Later steps also
account for the change of B with N if measurements alone do not fit N yet. Each N is bounded by the one
before, so that it stays a covariance. A trial is done when a step moved it by less than `NEAR`: steps shrink
by a factor of two to ten, and the remaining error is 1 to 5 % of N, far less than the posterior's own width.
"""

from typing import NamedTuple

from unfog.maths.arrays import Array, diagonal_matrix, matvec
from unfog.maths.linalg import eigh, inverse, product
from unfog.maths.trees import iterate

STEPS = 8  # at most
NEAR = 0.1  # a step that changes N by a smaller share is the last
FIRST = 0.1  # the smallest share of N that the first step leaves in any direction: the start may be far off
LEAST, MOST = 0.4, 4.0  # the smallest and the largest multiple of N that a later step leads to


class Sums(NamedTuple):
    """Sums over all that was seen, and the prior."""

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
    """In coordinates in which N is diagonal: how well the bias is known, and the expected scatters."""

    cov: Array  # (..., d, d)  S
    sure: Array  # (..., d, d)  trust told + Rz
    seen: Array  # (..., d, d)  Ry


class Fit(NamedTuple):
    """N = turn diag(size) turn', and the sums in coordinates in which it is diagonal."""

    size: Array  # (..., d)
    turn: Array  # (..., d, d)
    sums: Sums


def fit(start: Array, sums: Sums) -> Fit:
    """Solve for N, starting from diag(start), the noise that the agent was told."""
    residual, slope, _ = _newton(sums, start)
    noise = _bounded_step(start, residual / slope, FIRST, None)
    noise = iterate(lambda at: at.moved > NEAR, _step, noise, STEPS - 1, sums)
    return Fit(noise.size, noise.turn, _rotate(sums, noise.turn))


def bias(sums: Sums, size: Array, more: Array | None = None) -> tuple[Array, Array]:
    """G and S if N = diag(size); `more` (..., d) adds a measurement alone."""
    u, y = sums.alone[..., None], sums.totals[..., 1]
    if more is not None:
        u, y = u + 1, y + more
    seen = diagonal_matrix(sums.pairs[..., None] / size + u / (1 + size))
    cov = inverse(sums.squares[..., 2, :, :] + seen)
    return matvec(cov, sums.totals[..., 0] / size + y / (1 + size)), cov


def _rotate(sums: Sums, rotation: Array) -> Sums:
    """The sums in rotated coordinates, in which Sigma_c is still I."""
    squares = product(product(rotation.mT[..., None, :, :], sums.squares), rotation[..., None, :, :])
    return sums._replace(totals=product(rotation.mT, sums.totals), squares=squares)


def _view(sums: Sums, size: Array) -> View:
    """The belief about the bias, and the scatters that follow, if N = diag(size)."""
    (mean, cov), squares = bias(sums, size), sums.squares
    (z, y), n, u = (sums.totals[..., i] for i in (0, 1)), sums.pairs[..., None], sums.alone[..., None]
    sure = squares[..., 0, :, :] + _about(n, z, mean, cov)
    return View(cov, sure, squares[..., 1, :, :] + _about(u, y, mean, cov))


def _about(count: Array, total: Array, mean: Array, cov: Array) -> Array:
    """The expected sum of squares about a bias N(mean, cov), less that about zero."""
    cross = (total - 0.5 * count * mean)[..., :, None] * mean[..., None, :]
    return count[..., None] * cov - cross - cross.mT


def _step(noise: Noise, sums: Sums) -> Noise:
    """A later step, whose slope allows for the change of B with N."""
    size, rotation, _ = noise
    residual, slope, bend = _newton(_rotate(sums, rotation), size)
    xp = slope.__array_namespace__()
    bend = xp.maximum(bend, -0.25 * xp.linalg.diagonal(slope))  # to stay above zero
    slope = xp.maximum(slope + bend[..., :, None] + bend[..., None, :], 0.5 * sums.worth[..., None, None])
    new = _bounded_step(size, residual / slope, LEAST, MOST)
    return new._replace(turn=product(rotation, new.turn))


def _newton(sums: Sums, size: Array) -> tuple[Array, Array, Array]:
    """The residual of the equation, its slope if N is right, and a correction of the slope per coordinate."""
    xp, view, gain = size.__array_namespace__(), _view(sums, size), size / (1 + size)  # gain: B
    u, both = sums.alone[..., None], gain[..., :, None] * gain[..., None, :]
    residual = diagonal_matrix((sums.worth[..., None] + u * gain) * size) - view.sure - both * view.seen
    alone, tied = u[..., None] * both, xp.linalg.diagonal(view.cov) / size
    freed = (sums.pairs[..., None, None] + alone) ** 2 * tied[..., :, None] * tied[..., None, :]
    bend = (u - xp.linalg.diagonal(view.seen) / (1 + size)) * gain / (1 + size)
    return residual, sums.worth[..., None, None] + alone - freed, bend


def _bounded_step(size: Array, less: Array, least: float, most: float | None) -> Noise:
    """diag(size) less a matrix, kept within bounds around N in each of its own directions."""
    xp = less.__array_namespace__()
    values, vectors = eigh(diagonal_matrix(size) - less)
    last = matvec((vectors**2).mT, size)
    values = xp.maximum(values, least * last)
    unit = 1 / xp.sqrt(size)
    moved = xp.abs(less * unit[..., :, None] * unit[..., None, :]).max((-2, -1))
    return Noise(values if most is None else xp.minimum(values, most * last), vectors, moved)
