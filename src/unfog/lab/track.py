"""What an agent takes every context for, beside what was read and what is true: the trials of a run.

Beliefs are those of the decision, before anything was shown of the round's true context.
"""

from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.catalogue import Catalogue, named
from unfog.maths.arrays import Array, Bools
from unfog.simulation import MOST_SEED
from unfog.simulation.player import played
from unfog.worlds.problem import Problem

MOST_CELLS = 10**8  # coordinates of rounds of trials that are kept


class Track(NamedTuple):
    """Trials beside each other, round by round."""

    at: Array  # (trials, rounds)  the time, or the number of the round
    noisy: Array  # (trials, rounds, d)
    true: Array  # (trials, rounds, d)
    mean: Array  # (trials, rounds, d)  of the belief
    deviation: Array  # (trials, rounds, d)  its standard deviation
    shown: Bools  # (trials, rounds, d)  whether the true one was shown at once, after the reward

    def squared_error(self) -> Array:
        """Of the denoised contexts, a mean over rounds and coordinates: (trials,)."""
        found: Array = ((self.mean - self.true) ** 2).mean((-2, -1))
        return found

    def covered(self, width: float = 1.96) -> Array:
        """Share of the true coordinates that are within so many standard deviations: (trials,)."""
        found: Array = (np.abs(self.mean - self.true) <= width * self.deviation).mean((-2, -1))
        return found

    def readings(self) -> Array:
        """In how many rounds a true context was shown, or some of it: (trials,)."""
        return self.shown.any(-1).sum(-1).astype(float)


def track(problem: Problem, agent: str, *, rounds: int = 1000, trials: int = 20, seed: int = 0) -> Track:
    """Follow an agent through the trials that a run with this seed has."""
    dim = len(problem.knowledge().context_mean)
    validation.count("rounds", rounds, most=MOST_CELLS // dim)
    validation.count("trials", trials, most=MOST_CELLS // dim // rounds)
    validation.count("seed", seed, 0, MOST_SEED)
    [row] = named([agent], "agent", Catalogue(problem.rewards.kind))
    shape = trials, dim
    found = []
    for t, (emission, decision) in enumerate(played(problem, row, rounds, range(trials), seed)):
        belief, known = decision.context, decision.known
        seen = np.zeros(shape, bool) if known is None else ~np.isnan(known)
        deviation = np.sqrt(np.diagonal(belief.cov, axis1=-2, axis2=-1))
        at = np.full(trials, float(t)) if emission.at is None else emission.at
        each = emission.noisy, emission.context, belief.mean, deviation, seen
        found.append((at, *(np.broadcast_to(one, shape) for one in each)))
    return Track(*(np.stack(part, 1) for part in zip(*found, strict=True)))
