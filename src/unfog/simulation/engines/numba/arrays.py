"""The arrays of a kernel: the numbers of an agent and a world, and the workspace of a trial (`Workspace`).

Rows of roots, and of the table of arms, are padded with zeros to whole vectors (`KernelSizes`).
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints

LANES = 8  # numbers in a vector, at most
CONJUGATE, HETERO, SCALED, MIXED = range(4)
THOMPSON, RAND_UCB = range(2)


class Rules(NamedTuple):
    """The agent's settings and the variance of rewards."""

    reward_var: float  # sigma^2
    limit: float  # infinite: none
    revealed: bool  # whether it learns from true contexts
    level: float  # of rand_ucb, as the next three
    tail: float
    growth: float
    patience: float


class World(NamedTuple):
    """The world's part of a block of rounds."""

    table: Array  # (trials, K, q)  [a^2, a, 1]; one entry where all trials share it
    theta: Array  # (trials, m)
    context: Array  # (trials, rounds, d)
    best: Array  # (trials, rounds, d)  its mean for the oracle
    best_square: Array  # (trials, rounds, d)  E[c^2] for the oracle
    noise: Array  # (trials, rounds)  of rewards
    counts: Array  # (trials, rounds)  1; 0 if the reward is only noise


class Believed(NamedTuple):
    """The agent's beliefs about contexts, and its draws."""

    mean: Array  # (trials, rounds, d)
    cov: Array  # (trials, rounds, d, d), with one entry if trials or rounds share it
    revealed: Array  # (trials, rounds, d)  the true context that the agent learns from; the mean if unknown
    normals: Array  # (trials, rounds, w)


class State(NamedTuple):
    """The learner's state, as in learn/scaled.py; other learners have one scale and use only the beliefs."""

    mean: Array  # (trials, scales, m)
    root: Array  # (trials, scales, m, m)
    shape: Array  # (trials,)
    rates: Array  # (trials, scales)
    weights: Array  # (trials, scales)


class Trace(NamedTuple):
    """The results of a block: (trials, rounds) each."""

    arm: Ints
    paid: Array
    regret: Array


class KernelSizes(NamedTuple):
    """The sizes. Rows of roots and of the table are padded with zeros to whole vectors."""

    learner: int
    chooser: int
    dim: int  # d; there are m = 3 d features
    long: int  # m, padded
    arms: int  # K
    across: int  # K, padded
    scales: int
    columns: int  # of the belief's root, in threes: m, or those of all scales together
    wide: int  # the same, padded


class Workspace(NamedTuple):
    """The workspace of a trial; matrices are stored row by row."""

    table: Array  # (2 d + 1, across)
    root: Array  # (scales, m long)
    turned: Array  # (scales, long long)  the roots, transposed
    mean: Array  # (scales, long)
    rates: Array  # (scales,)
    weights: Array  # (scales,)
    away: Array  # (scales,)  a reward's deviation from its expectation
    total: Array  # (scales,)  its variance
    theta: Array  # (long,)  of the world
    context: Array  # (d,)  its mean
    square: Array  # (d,)  E[c^2]
    cov: Array  # (d, d)
    normals: Array  # (long,)
    centre: Array  # (long,)  of the belief about theta
    mixed: Array  # (m, wide)  its root, for a mixture of all scales
    draw: Array  # (long,)  of theta
    lifted: Array  # (2 d + 1,)
    spread: Array  # (2 d + 1, wide)
    score: Array  # (across,)
    variance: Array  # (across,)
    bound: Array  # (across,)
    action: Array  # (2 d + 1,)
    row: Array  # (long,)
    half: Array  # (scales, long)
    whole: Array  # (wide,)  root'row of the belief
    gain: Array  # (long,)
    lanes: Array  # (LANES,)


def padded(size: int) -> int:
    """The next multiple of a vector's length."""
    return -(-size // LANES) * LANES


def plan(learner: int, chooser: int, dim: int, arms: int, scales: int) -> KernelSizes:
    """The sizes for a problem and an agent."""
    size = 3 * dim
    columns = -(-scales * (size + 1) // 3) * 3 if learner == MIXED else size
    return KernelSizes(
        learner, chooser, dim, padded(size), arms, padded(arms), scales, columns, padded(columns)
    )


def make_workspace(p: KernelSizes) -> Workspace:
    """A workspace of zeros."""
    size, rows, s, n = 3 * p.dim, 2 * p.dim + 1, p.scales, p.long
    shapes: dict[str, tuple[int, ...]] = {
        "table": (rows * p.across,),
        "root": (s, size * n),
        "turned": (s, n * n),
        "mixed": (size * p.wide,),
        "cov": (p.dim * p.dim,),
        "spread": (rows * p.wide,),
        "whole": (p.wide,),
        "lanes": (LANES,),
    }
    shapes |= dict.fromkeys(("mean", "half"), (s, n))
    shapes |= dict.fromkeys(("rates", "weights", "away", "total"), (s,))
    shapes |= dict.fromkeys(("theta", "normals", "centre", "draw", "row", "gain"), (n,))
    shapes |= dict.fromkeys(("context", "square"), (p.dim,)) | dict.fromkeys(("lifted", "action"), (rows,))
    shapes |= dict.fromkeys(("score", "variance", "bound"), (p.across,))
    return Workspace(**{name: np.zeros(shape) for name, shape in shapes.items()})
