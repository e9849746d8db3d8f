"""Maxima of smooth functions of a few numbers, and how far one may go from them: many problems side by side.

A function takes points (B, p) and gives values (B,), so that everything asked of it at one time is one call:
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

STEP = 5e-3  # of the differences: points are logarithms, or as smooth
ROUNDS = 60
NEAR = 1e-5  # what a step would gain, from which on there is no more to climb
REACH = 2.0  # of a step in any coordinate
CLOSE = 1e-3  # a move of limits that is none
LEAST = 1e-6  # curvature, where there is none

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
    here = about(function, np.where(free, np.clip(starts, box.low, box.high), starts), free)
    damping = np.full(len(starts), 1e-3)
    busy = np.arange(len(starts))
    for _ in range(ROUNDS):
        moves, gain = _moves(_some(here, busy), free[busy], box, damping[busy])
        busy, moves = busy[gain > NEAR], moves[gain > NEAR]
        if not len(busy):
            break
        there = about(function, here.at[busy] + moves, free)
        better = there.value >= here.value[busy]
        damping[busy] *= np.where(better, 0.2, 10.0)
        for old, new in zip(here, there, strict=True):
            old[busy[better]] = new[better]
        busy = busy[damping[busy] < 1e8]
    return here


def _some(place: Place, which: Ints) -> Place:
    return Place(*(part[which] for part in place))


def _moves(here: Place, free: Bools, box: Box, damping: Array) -> tuple[Array, Array]:
    """Newton's steps in the box, and what each would gain."""
    outward = ((here.at <= box.low) & (here.slope < 0)) | ((here.at >= box.high) & (here.slope > 0))
    moving = free & ~outward
    slope = np.where(moving, here.slope, 0.0)
    sizes, turn = np.linalg.eigh(_curvature(here.bend, moving))
    sizes = np.maximum(np.abs(sizes), LEAST)
    sizes = sizes + damping[:, None] * sizes.max(axis=1, keepdims=True)
    moves = matvec(turn, matvec(turn.mT, slope) / sizes)
    moves /= np.maximum(np.abs(moves).max(axis=1, keepdims=True) / REACH, 1.0)
    there = np.where(free, np.clip(here.at + moves, box.low, box.high), here.at)
    moves = np.subtract(there, here.at, where=moving, out=np.zeros_like(there))
    return moves, (slope * moves).sum(axis=1) / 2


def _curvature(bend: Array, moving: Bools) -> Array:
    """Minus the Hessian of what moves; 1 for the rest."""
    both = moving[:, :, None] & moving[:, None, :]
    return np.where(both, -bend, np.eye(bend.shape[-1]) * ~moving[:, :, None])


class Search(NamedTuple):
    """Limits to be found: of number `which`, downwards or upwards (side -1 or 1), the rest following."""

    which: Ints  # (S,)
    side: Array  # (S,)
    free: Bools  # (S, p)  the number itself too


def limits(function: Function, starts: Array, search: Search, box: Box, aim: float) -> Array:
    """(S,): how far each number may go until the profile is down at `aim`; the box's edge if it never is."""
    each = np.arange(len(starts))
    if not len(each):
        return np.zeros(0)
    here = about(function, np.where(search.free, np.clip(starts, box.low, box.high), starts), search.free)
    for _ in range(ROUNDS // 2):
        asked = zip(search.which, search.side, search.free, strict=True)
        moves = np.stack([_towards(_some(here, each[k : k + 1]), *one, aim) for k, one in enumerate(asked)])
        there = np.where(search.free, np.clip(here.at + moves, box.low, box.high), here.at)
        moved = np.subtract(there, here.at, where=search.free, out=np.zeros_like(there))
        still = np.abs(moved).max() < CLOSE
        here = about(function, there, search.free)
        if still:
            break
    return here.at[each, search.which]


def _towards(here: Place, j: int, side: float, free: Bools, aim: float) -> Array:
    """Venzon and Moolgavkar's step: the others to their best, number j to where the profile is at the aim."""
    rest = free.copy()
    rest[j] = False
    slope, bend = here.slope[0], here.bend[0]
    inner = _curvature(here.bend, rest[None])[0]
    sizes, turn = np.linalg.eigh(inner)
    inverse = (turn / np.maximum(np.abs(sizes), LEAST)) @ turn.T
    pull, along = np.where(rest, slope, 0.0), np.where(rest, bend[j], 0.0)
    value = here.value[0] + pull @ inverse @ pull / 2
    first, second = slope[j] + along @ inverse @ pull, bend[j, j] + along @ inverse @ along
    root = first**2 - 2 * second * (value - aim)
    if second < 0 and root >= 0:
        step = (-first - side * np.sqrt(root)) / second
    else:
        step = side * 0.5 if value > aim else -side * 0.5
    step = float(np.clip(step, -1.0, 1.0))
    moves = np.clip(np.where(rest, inverse @ (pull + along * step), 0.0), -1.0, 1.0)
    moves[j] = step
    return moves
