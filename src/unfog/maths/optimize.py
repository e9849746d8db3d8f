"""Maxima of smooth functions of a few numbers, and how far one may go from them: many problems side by side.

A function takes points (B, p) and gives values (B,), so that all values needed at a time are one call:
derivatives are central differences, steps are Newton's, damped as by K. Levenberg and D. W. Marquardt, inside
a box. Limits of a number are where the profile of the function, the others following, is a given drop below
the maximum; they are found by Newton's method on both conditions at once (D. J. Venzon and S. H. Moolgavkar,
*A Method for Computing Profile-Likelihood-Based Confidence Intervals*). A coordinate that is not free stays,
and may be infinite.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints, matvec

STEP = 5e-3  # of the differences; points are on a scale like that of logarithms
ROUNDS = 60
NEAR = 1e-5  # a step that would gain less is not taken
REACH = 2.0  # the longest step in any coordinate
CLOSE = 1e-3  # a limit that moves by less has converged
SURE = 0.02  # a profile this close to the aim has reached it
GRID = 16
LEAST = 1e-6  # the curvature used where there is none

Function = Callable[[Array], Array]


class Place(NamedTuple):
    """Points, and the function about them."""

    at: Array  # (S, p)
    value: Array  # (S,)
    slope: Array  # (S, p)
    bend: Array  # (S, p, p)


class Box(NamedTuple):
    """Where points may be, (p,) each."""

    low: Array
    high: Array


def about(function: Function, at: Array, free: Bools) -> Place:
    """Value, gradient and Hessian by differences along what is free in any point; zero along the rest.

    With q such coordinates that takes 1 + q + q^2 values for each point.
    """
    count, p = at.shape
    along = np.eye(p)[free.any(axis=0)]
    q = len(along)
    pairs = [(i, j) for i in range(q) for j in range(i)]
    shifts = STEP * np.concatenate([along, *(along[[i]] + along[[j]] for i, j in pairs)])
    around = np.concatenate([np.zeros((1, p)), shifts, -shifts])
    values = function((at[:, None, :] + around).reshape(-1, p)).reshape(count, -1)
    value, (up, down) = values[:, 0], np.moveaxis(values[:, 1:].reshape(count, 2, -1), 1, 0)
    twice = up + down - 2 * value[:, None]
    bend = twice[:, :q, None] * np.eye(q)
    for k, (i, j) in enumerate(pairs):
        bend[:, i, j] = bend[:, j, i] = (twice[:, q + k] - twice[:, i] - twice[:, j]) / 2
    slope = (up - down)[:, :q] / (2 * STEP)
    return Place(at, value, slope @ along, along.T @ (bend / STEP**2) @ along)


def climb(function: Function, starts: Array, free: Bools, box: Box) -> Place:
    """The maximum that each start (S, p) leads to, moving what is free (S, p)."""
    fit = about(function, np.where(free, np.clip(starts, box.low, box.high), starts), free)
    damping = np.full(len(starts), 1e-3)
    active = np.arange(len(starts))
    for _ in range(ROUNDS):
        moves, gain = _newton_moves(_select(fit, active), free[active], box, damping[active])
        active, moves = active[gain > NEAR], moves[gain > NEAR]
        if not len(active):
            break
        reached = about(function, fit.at[active] + moves, free)
        better = reached.value >= fit.value[active]
        damping[active] *= np.where(better, 0.2, 10.0)
        for old, new in zip(fit, reached, strict=True):
            old[active[better]] = new[better]
        active = active[damping[active] < 1e8]
    return fit


def _select(fit: Place, index: Ints) -> Place:
    """The points with these indices."""
    return Place(*(part[index] for part in fit))


def _newton_moves(fit: Place, free: Bools, box: Box, damping: Array) -> tuple[Array, Array]:
    """Newton's steps in the box, and what each would gain."""
    moving = free & ~_leaves_box(fit, box)
    slope = np.where(moving, fit.slope, 0.0)
    sizes, vectors = np.linalg.eigh(_curvature(fit.bend, moving))
    sizes = np.maximum(np.abs(sizes), LEAST)
    sizes = sizes + damping[:, None] * sizes.max(axis=1, keepdims=True)
    moves = matvec(vectors, matvec(vectors.mT, slope) / sizes)
    moves /= np.maximum(np.abs(moves).max(axis=1, keepdims=True) / REACH, 1.0)
    ends = np.where(free, np.clip(fit.at + moves, box.low, box.high), fit.at)
    moves = np.subtract(ends, fit.at, where=moving, out=np.zeros_like(ends))
    return moves, (slope * moves).sum(axis=1) / 2


def _leaves_box(fit: Place, box: Box) -> Bools:
    """Which coordinates are at the edge of the box and would leave it."""
    return ((fit.at <= box.low) & (fit.slope <= 0)) | ((fit.at >= box.high) & (fit.slope >= 0))


def _curvature(bend: Array, moving: Bools) -> Array:
    """Minus the Hessian of the moving coordinates; the identity for the others."""
    mask = moving[:, :, None] & moving[:, None, :]
    return np.where(mask, -bend, np.eye(bend.shape[-1]) * ~moving[:, :, None])


class Search(NamedTuple):
    """Limits to be found: of number `which`, downwards or upwards (side -1 or 1), the rest following."""

    which: Ints  # (S,)
    side: Array  # (S,)
    free: Bools  # (S, p)  the number itself too

    def some(self, which: Ints | int) -> "Search":
        """The searches with these indices, or the one with this index."""
        return Search(self.which[which], self.side[which], self.free[which])


def limits(function: Function, tops: Array, search: Search, box: Box, aim: float) -> Array:
    """(S,): how far each number may go until the profile is down at `aim`; the box's edge if it never is.

    From points (S, p) above the aim. Where Newton's method does not arrive, the way there is walked.
    """
    fit = about(function, np.where(search.free, np.clip(tops, box.low, box.high), tops), search.free)
    active = np.arange(len(tops))
    for _ in range(ROUNDS // 3):
        subset = search.some(active)
        points = _next_points(_select(fit, active), subset, box, aim)
        own_index = np.arange(len(active)), subset.which
        moved = np.abs(points[own_index] - fit.at[active][own_index])
        for old, new in zip(fit, about(function, points, subset.free), strict=True):
            old[active] = new
        active = active[moved > CLOSE]
        if not len(active):
            break
    ends = fit.at[np.arange(len(tops)), search.which]
    for k in np.flatnonzero(~_has_arrived(fit, tops, search, box, aim)):
        ends[k] = _walk_to_limit(function, tops[k], search.some(int(k)), box, aim)
    return ends


def _next_points(fit: Place, search: Search, box: Box, aim: float) -> Array:
    """The points after one more step."""
    index = np.arange(len(fit.at))
    moving = search.free & ~_leaves_box(fit, box)
    moving[index, search.which] = True
    searches = zip(search.which, search.side, moving, strict=True)
    moves = np.stack(
        [_newton_step(_select(fit, index[k : k + 1]), *one, aim) for k, one in enumerate(searches)]
    )
    return np.where(search.free, np.clip(fit.at + moves, box.low, box.high), fit.at)


def _has_arrived(fit: Place, tops: Array, search: Search, box: Box, aim: float) -> Bools:
    index = np.arange(len(tops))
    ends, tops = fit.at[index, search.which], tops[index, search.which]
    edges = np.where(search.side > 0, box.high[search.which], box.low[search.which])
    is_close = (np.abs(fit.value - aim) < SURE) | ((ends == edges) & (fit.value > aim))
    return is_close & ((ends - tops) * search.side >= 0)


def _walk_to_limit(function: Function, top: Array, search: Search, box: Box, aim: float) -> float:
    """One limit by a grid and a finer one, the other coordinates optimised; then linear interpolation."""
    j = int(search.which)
    edge = box.high[j] if search.side > 0 else box.low[j]
    free = np.tile(search.free & (np.arange(len(top)) != j), (GRID, 1))
    ends, share = (top[j], edge), np.linspace(0, 1, GRID)
    for grid in (share**2, share):
        points = np.tile(top, (GRID, 1))
        points[:, j] = ends[0] + (ends[1] - ends[0]) * grid
        peaks = climb(function, points, free, box)
        k = int(np.argmax(peaks.value < aim))
        if k == 0:
            return float(edge)
        top, ends = peaks.at[k - 1], (points[k - 1, j], points[k, j])
    before, after = peaks.value[[k - 1, k]]
    return float(ends[0] + (ends[1] - ends[0]) * (before - aim) / (before - after))


def _newton_step(fit: Place, j: int, side: float, moving: Bools, aim: float) -> Array:
    """Venzon and Moolgavkar's step: coordinate j to where the profile meets the aim, the others optimised."""
    others = moving & (np.arange(len(moving)) != j)
    slope, bend = fit.slope[0], fit.bend[0]
    sizes, vectors = np.linalg.eigh(_curvature(fit.bend, others[None])[0])
    inverse = (vectors / np.maximum(np.abs(sizes), LEAST)) @ vectors.T
    other_slopes, cross_bend = np.where(others, slope, 0.0), np.where(others, bend[j], 0.0)
    value = fit.value[0] + other_slopes @ inverse @ other_slopes / 2
    first, second = (
        slope[j] + cross_bend @ inverse @ other_slopes,
        bend[j, j] + cross_bend @ inverse @ cross_bend,
    )
    root = first**2 - 2 * second * (value - aim)
    step = REACH * side if value > aim else -side
    if second < 0 and root >= 0:
        step = float(np.clip((-first - side * np.sqrt(root)) / second, -1.0, 1.0))
    moves = np.clip(np.where(others, inverse @ (other_slopes + cross_bend * step), 0.0), -1.0, 1.0)
    moves[j] = step
    return moves
