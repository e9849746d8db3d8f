"""Hypotheses about constants of time: what the size of errors and the speed of the bias are, in those told.

    error and white have covariances  size x those told,     the bias moves  speed x as fast as told

A speed is a factor of the bias's walk, or of its covariance where it comes back to zero; one that stays has
no speed.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.denoise import clockwork
from unfog.agents.denoise.clockwork import Clockwork
from unfog.channel.dynamics import Moving, Tempo
from unfog.channel.knowledge import Knowledge


class Factors(NamedTuple):
    """A hypothesis: what the constants are, in those told."""

    size: float = 1.0  # of covariances of error and white
    speed: float = 1.0  # of the walk of the bias, or of its covariance


def ladder(number: int, apart: float, distrust: float) -> dict[float, float]:
    """So many factors about 1, each so many times the next, with their probabilities."""
    others = max(1, number - 1)
    powers = [apart ** (i - number // 2) for i in range(number)]
    return {x: (1 - distrust if number > 1 else 1.0) if x == 1 else distrust / others for x in powers}


def scaled(tempo: Tempo, by: Factors) -> Tempo:
    """With the constants that a hypothesis has."""

    def times(part: Moving, factor: float) -> Moving:
        return part.scaled(np.full(part.cov.shape[-1], np.sqrt(factor)))

    walk, error = tempo.bias.walk, tempo.error
    walks = tempo.bias._replace(walk=None if walk is None else by.speed * walk)
    return tempo._replace(
        bias=walks if np.isinf(tempo.bias.time) else times(tempo.bias, by.speed),
        error=None if error is None else times(error, by.size),
        white=None if tempo.white is None else by.size * tempo.white,
    )


def moves(tempo: Tempo) -> bool:
    """Whether the bias has a speed."""
    return tempo.bias.time < np.inf or (tempo.bias.walk is not None and bool(np.any(tempo.bias.walk)))


def stacked(known: Knowledge, tempo: Tempo, every: list[Factors]) -> Clockwork:
    """The parts under every hypothesis: start, steps and white have an axis of these in front."""
    clocks = [clockwork.clockwork(known._replace(tempo=scaled(tempo, one))) for one in every]
    xp = known.context_cov.__array_namespace__()
    start, steps, white = (
        xp.stack(x) for x in zip(*((c.start, c.steps, c.white) for c in clocks), strict=True)
    )
    return clocks[0]._replace(start=start, steps=steps, white=white)
