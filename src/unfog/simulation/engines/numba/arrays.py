"""What a kernel works on: the numbers of an agent and a world, and the desk at which a trial sits down.

Rows of roots, and of the table of arms, are filled up with zeros to whole vectors (`Plan`).
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints

LANES = 8  # numbers in a vector, at most
CONJUGATE, HETERO, SCALED, MIXED = range(4)
THOMPSON, RAND_UCB = range(2)


class Rules(NamedTuple):
    """The agent, and what it is told, in numbers."""

    told: float  # sigma^2
    limit: float  # infinite: none
    shown: bool  # whether it learns from true contexts
    level: float  # of rand_ucb, as the next three
    tail: float
    growth: float
    patience: float


class World(NamedTuple):
    """A block of rounds as nature made it."""

    table: Array  # (trials, K, q)  [a^2, a, 1]; one entry where all trials share it
    theta: Array  # (trials, m)
    context: Array  # (trials, rounds, d)
    best: Array  # (trials, rounds, d)  its mean to the oracle
    best_square: Array  # (trials, rounds, d)  E[c^2] to the oracle
    noise: Array  # (trials, rounds)  of rewards
    counts: Array  # (trials, rounds)  1; 0 where the reward is all noise


class Believed(NamedTuple):
    """What the agent believes of contexts, and its own draws."""

    mean: Array  # (trials, rounds, d)
    cov: Array  # (trials, rounds, d, d), with one entry where trials or rounds share it
    shown: Array  # (trials, rounds, d)  the true context as it is learnt from; the mean where it is not shown
    normals: Array  # (trials, rounds, w)


class State(NamedTuple):
    """What the learner knows, as in learn/scaled.py; others have one scale, and use the beliefs alone."""

    mean: Array  # (trials, scales, m)
    root: Array  # (trials, scales, m, m)
    shape: Array  # (trials,)
    rates: Array  # (trials, scales)
    weights: Array  # (trials, scales)


class Trace(NamedTuple):
    """What comes of a block: (trials, rounds) each."""

    arm: Ints
    paid: Array
    regret: Array


class Plan(NamedTuple):
    """The sizes. Rows of roots are filled up with zeros to whole vectors, and so are those of the table."""

    learner: int
    chooser: int
    dim: int  # d; there are m = 3 d features
    long: int  # m, filled up
    arms: int  # K
    across: int  # K, filled up
    scales: int
    columns: int  # of the belief's root, in threes: m, or those of all scales together
    wide: int  # the same, filled up


class Desk(NamedTuple):
    """What a trial has before it in a round; matrices are laid row by row."""

    table: Array  # (2 d + 1, across)
    root: Array  # (scales, m long)
    turned: Array  # (scales, long long)  the roots, transposed
    mean: Array  # (scales, long)
    rates: Array  # (scales,)
    weights: Array  # (scales,)
    away: Array  # (scales,)  a reward from what was expected
    total: Array  # (scales,)  its variance
    theta: Array  # (long,)  of the world
    context: Array  # (d,)  its mean
    square: Array  # (d,)  E[c^2]
    cov: Array  # (d, d)
    normals: Array  # (long,)
    centre: Array  # (long,)  of the belief about theta
    mixed: Array  # (m, wide)  its root, where it is that of all scales
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
    """The next multiple of a vector."""
    return -(-size // LANES) * LANES


def plan(learner: int, chooser: int, dim: int, arms: int, scales: int) -> Plan:
    """The sizes for a problem and an agent."""
    size = 3 * dim
    columns = -(-scales * (size + 1) // 3) * 3 if learner == MIXED else size
    return Plan(learner, chooser, dim, padded(size), arms, padded(arms), scales, columns, padded(columns))


def desk(p: Plan) -> Desk:
    """An empty desk."""
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
    return Desk(**{name: np.zeros(shape) for name, shape in shapes.items()})
