"""The paper's D_t, measured: Algorithm 1 is played, and its posterior held against the true one.

Trials are those of a run with the same seed: the same truth, contexts, rewards and choices. At some rounds t,
spaced evenly in ln t, theory/mismatch.py estimates KL(P_t || Pbar_t) of every trial; D_t is the mean over the
trials. Between these rounds a trial's divergence is taken to be linear in ln t, starting from D_1 = 0, which
is exact: before the first reward both posteriors are the prior. So sums over t are sums over every round.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from unfog.agents.catalogue import AGENTS
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap, Linear
from unfog.lab.run import Progress, quiet
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator
from unfog.simulation import MOST_SEED
from unfog.simulation.executors.local import cores
from unfog.simulation.job import truth_draws
from unfog.simulation.player import played
from unfog.theory import mismatch
from unfog.theory.mismatch import Divergence, Rounds
from unfog.validation import InputError, count
from unfog.worlds.problem import Problem

CELLS = 1 << 24  # numbers that the trials played side by side may keep


class Mismatch(NamedTuple):
    """D_t and its sum, at some rounds."""

    rounds: Ints  # (points,)  t
    mean: Array  # (points,)  D_t
    se: Array  # (points,)  its standard error over trials
    ess: Array  # (points,)  the effective sample size of the worst trial
    total: Array  # (points,)  D_1 + ... + D_t
    total_se: Array  # (points,)  its standard error over trials, but for the interpolation


def measure(
    problem: Problem,
    *,
    rounds: int,
    trials: int = 20,
    seed: int = 0,
    points: int = 8,
    particles: int = 2000,
    progress: Progress = quiet,
) -> Mismatch:
    """D_t of Algorithm 1 up to round `rounds`; of the particles of a trial, a quarter finds the posterior."""
    size = _checked(problem, rounds, trials, seed, points, particles)
    grid, found = grid_of(rounds, points), []
    side_by_side = max(1, CELLS // (rounds * problem.knowledge().context_mean.size * (size + 1)))
    progress(0, trials)
    with ThreadPoolExecutor(cores()) as pool:  # NumPy lets go of the interpreter while it works
        for first in range(0, trials, side_by_side):
            piece = range(first, min(first + side_by_side, trials))
            seen = play(problem, rounds, piece, seed)
            each = (Rounds(*(part[i] for part in seen)) for i in range(len(piece)))
            sources = (generator(seed, trial, "particles") for trial in piece)
            task = partial(_curve, problem.knowledge(), grid, particles)
            for one in pool.map(task, each, sources):
                found.append(one)
                progress(len(found), trials)
    values, _, ess = np.moveaxis(np.array(found), -1, 0)
    return summary(grid, values, ess)


def _curve(
    known: Knowledge, grid: Ints, particles: int, seen: Rounds, source: np.random.Generator
) -> list[Divergence]:
    """The divergence of one trial at the rounds of the grid."""
    shape = particles, len(known.prior_mean)
    return [mismatch.divergence(known, until(seen, t), source.standard_normal(shape)) for t in grid]


def _checked(problem: Problem, rounds: int, trials: int, seed: int, points: int, particles: int) -> int:
    """How many features there are, all being in order."""
    known = problem.knowledge()
    if problem.rewards.kind != "gaussian" or known.reward_var is None:
        raise InputError("problem", f"{problem.rewards.kind} rewards", "rewards with Gaussian noise")
    count("rounds", rounds, most=1_000_000)
    count("trials", trials, 2, 1_000_000)
    count("seed", seed, 0, MOST_SEED)
    count("points", points, most=1000)
    matrices_of(problem.truth(truth_draws(seed, [0], problem.truth_draws())).features)
    size = len(known.prior_mean)
    count("particles", particles, max(400, 40 * size), 10_000_000)
    return size


def matrices_of(features: FeatureMap) -> Array:
    """G(a) of every arm, (..., K, m, d), of a map phi(a, c) = G(a) c."""
    if not isinstance(features, Linear):
        found = f"the features are {type(features).__name__}"
        raise InputError("problem", found, "features linear in the context: product, matrix")
    return np.asarray(features.matrices)


def play(problem: Problem, rounds: int, trials: range, seed: int) -> Rounds:
    """What Algorithm 1 has seen at its decision in the last round, all trials side by side."""
    matrices = matrices_of(problem.truth(truth_draws(seed, trials, problem.truth_draws())).features)
    matrices = np.broadcast_to(matrices, (len(trials), *matrices.shape[-3:]))
    every = np.arange(len(trials))
    shown = [
        (decision.noisy, matrices[every, decision.arm], decision.evidence.row(), decision.reward)
        for _, decision in played(problem, AGENTS["alg1"], rounds, trials, seed)
    ]
    noisy, *paid = (np.stack(kept, 1) for kept in zip(*shown, strict=True))
    return Rounds(noisy, *(part[:, :-1] for part in paid))


def until(seen: Rounds, t: int) -> Rounds:
    """What one trial had seen at its decision in round t."""
    return Rounds(seen.noisy[:t], *(part[: t - 1] for part in seen[1:]))


def grid_of(rounds: int, points: int) -> Ints:
    """The rounds to look at: about evenly spaced in ln t, without the first unless it is all."""
    return np.unique(np.rint(np.geomspace(rounds, min(2, rounds), points)).astype(np.intp))


def summary(grid: Ints, values: Array, ess: Array) -> Mismatch:
    """Means over trials of values (trials, points), and of their sums over all rounds."""
    every, knots = np.log(np.arange(1, grid[-1] + 1)), np.log(np.unique(np.append(grid, 1)))
    found = values if grid[0] == 1 else np.pad(values, ((0, 0), (1, 0)))
    totals = np.cumsum([np.interp(every, knots, one) for one in found], 1)[:, grid - 1]

    def error(x: Array) -> Array:
        return np.std(x, axis=0, ddof=1) / np.sqrt(len(x))

    return Mismatch(grid, values.mean(0), error(values), ess.min(0), totals.mean(0), error(totals))
