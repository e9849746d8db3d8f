"""The course of a trial in time: contexts, biases and errors drawn from a `Tempo` (channel/dynamics.py),
exactly.

    times     t_0 = 0, then steps of one length, some of them longer by a gap of exponential length
    part      x_0 ~ N(0, cov); over a step h one with a time constant tau keeps exp(-h / tau) and is refreshed
              by N(0, (1 - exp(-2 h / tau)) cov), one that walks gains N(0, h walk)
    cycle     a cos(2 pi t / period) + b sin(2 pi t / period), a and b ~ N(0, cov)
    context   mean + level + fast + cycles;    error  the part that comes back to zero, without the white one

Units have courses of their own, at the same times. After its last round a course stays where it is and so
does time: readings of one moment.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unfog.channel.dynamics import Moving, Tempo
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import singular_root
from unfog.maths.linalg import recurrence
from unfog.worlds.problem import Draws

PARTS = ("fast", "level", "bias", "error")


class Spacing(NamedTuple):
    """When rounds take place."""

    step: float
    gaps: float  # the share of steps that are longer
    gap_time: float  # by how much on average

    @property
    def mean(self) -> float:
        """Of a step."""
        return self.step + self.gaps * self.gap_time

    def times(self, uniforms: Array) -> Array:
        """Of rounds (..., n), from uniforms (..., n, 2)."""
        xp = uniforms.__array_namespace__()
        longer = (uniforms[..., 1:, 0] < self.gaps) * -xp.log1p(-uniforms[..., 1:, 1])
        steps = self.step + self.gap_time * longer
        return xp.concat([xp.zeros_like(steps[..., :1]), xp.cumulative_sum(steps, axis=-1)], axis=-1)


class Course(NamedTuple):
    """A trial: times (..., n), the rest (..., units, n, d)."""

    times: Array
    contexts: Array
    biases: Array
    errors: Array


def draws(tempo: Tempo, rounds: int, units: int, dim: int) -> dict[str, Draws]:
    """What a course is made of."""
    made = {
        "path": Draws("normal", (len(PARTS), units, rounds, dim)),
        "times": Draws("uniform", (rounds, 2)),
    }
    cycles = {"cycles": Draws("normal", (units, len(tempo.periods), 2, dim))}
    return {**made, **(cycles if tempo.periods else {})}


def course(tempo: Tempo, mean: Array, spacing: Spacing, drawn: Mapping[str, Array]) -> Course:
    """The course of every trial."""
    normals = drawn["path"]
    xp = normals.__array_namespace__()
    times = spacing.times(drawn["times"])
    steps = xp.concat([times[..., :1], times[..., 1:] - times[..., :-1]], axis=-1)[..., None, :]
    made = {
        name: moved(part, normals[..., index, :, :, :], steps)
        for index, name in enumerate(PARTS)
        if (part := tempo._asdict()[name]) is not None
    }
    still = xp.zeros_like(made["bias"])
    contexts = xp.asarray(mean) + made["fast"] + made.get("level", still)
    if tempo.periods:
        contexts = contexts + turned(tempo, drawn["cycles"], times)
    return Course(times, contexts, made["bias"], made.get("error", still))


def moved(part: Moving, normals: Array, steps: Array) -> Array:
    """A part at all times (..., n, d) from as many normals, after steps (..., n), the first of which is 0."""
    xp = normals.__array_namespace__()
    start = matvec(xp.asarray(singular_root(part.cov)), normals)
    if part.time == np.inf:
        keep = xp.ones_like(steps)
        walk = xp.zeros_like(start)
        if part.walk is not None:
            walk = matvec(xp.asarray(singular_root(part.walk)), normals)
        fresh = xp.sqrt(steps)[..., None] * walk
    else:
        keep = xp.exp(-steps / part.time) if part.time else (steps == 0).astype(steps.dtype)
        fresh = xp.sqrt(1 - keep**2)[..., None] * start
    fresh = xp.concat([start[..., :1, :], fresh[..., 1:, :]], axis=-2)
    return recurrence(xp.broadcast_to(keep, fresh.shape[:-1]), fresh)


def turned(tempo: Tempo, normals: Array, times: Array) -> Array:
    """The sum of all cycles at these times (..., units, n, d), from normals (..., units, p, 2, d)."""
    xp = normals.__array_namespace__()
    total = 0.0
    for index, period in enumerate(tempo.periods):
        drawn = matvec(xp.asarray(singular_root(np.asarray(tempo.cycles)[index])), normals[..., index, :, :])
        angle = (2 * np.pi / period * times)[..., None, :, None]
        total = total + drawn[..., :1, :] * xp.cos(angle) + drawn[..., 1:, :] * xp.sin(angle)
    return total  # type: ignore[return-value]
