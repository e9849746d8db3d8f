"""How a synthetic world moves in time, from fields: a `Tempo` (channel/dynamics.py), and when rounds take
place.

A part that is not wanted has covariance 0. The level walks. The bias walks where `bias_time` is 0, and comes
back to zero with that time constant otherwise. All other parts come back to zero.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unfog import validation
from unfog.channel.dynamics import Moving, Tempo
from unfog.maths.arrays import Array
from unfog.validation import InputError, Numbers
from unfog.worlds.course import Spacing
from unfog.worlds.revealing import check_share

MOST_DIM = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class MovementFields:
    """Covariances are a number (times I), a list (the diagonal) or a matrix; 0 for a part that is not there.

    A step of time is `step` long and, with probability `gaps`, longer by `gap_time` on average.
    """

    dim: int = 4
    fast_cov: Numbers = 0.5
    fast_time: float = 10.0
    level_cov: Numbers = 0.5
    level_walk: Numbers = 0.001
    cycle_cov: Numbers = 0.0
    periods: list[float] | tuple[float, ...] = ()
    bias_cov: Numbers = 1.0
    bias_time: float = 0.0
    bias_walk: Numbers = 0.001
    error_cov: Numbers = 0.5
    error_time: float = 5.0
    noise_cov: Numbers = 0.5
    step: float = 1.0
    gaps: float = 0.0
    gap_time: float = 100.0

    @cached_property
    def tempo(self) -> Tempo:
        """How contexts and errors move."""
        dim = validation.count("dim", self.dim, most=MOST_DIM)
        bias_time = validation.not_negative("bias_time", self.bias_time) or np.inf
        periods, cycles = self._cycles()
        fast, bias = self._part("fast", self.fast_time), self._part("bias", bias_time)
        for name, part in (("fast_cov", fast), ("bias_cov", bias)):
            if part is None:
                raise InputError(name, 0, "a covariance: this part there is always")
        return Tempo(
            fast=fast,
            bias=bias,
            white=validation.covariance("noise_cov", self.noise_cov, dim),
            level=self._part("level", np.inf),
            error=self._part("error", self.error_time),
            periods=periods,
            cycles=cycles,
            since=0.0,  # the courses of all units begin there, whenever one is read first
        ).check(dim)

    @cached_property
    def spacing(self) -> Spacing:
        """When rounds take place."""
        check_share("gaps", self.gaps, 1.0)
        step, longer = validation.positive("step", self.step), validation.positive("gap_time", self.gap_time)
        return Spacing(step, float(self.gaps), longer)

    def moments(self, rounds: int) -> dict[str, Array]:
        """Covariances of context, noise and bias, those that grow averaged over so many rounds."""
        tempo, half = self.tempo, 0.5 * (rounds - 1) * self.spacing.mean
        still = np.zeros((self.dim, self.dim))
        level = still if tempo.level is None else _average(tempo.level, half)
        cycles = still if tempo.cycles is None else tempo.cycles.sum(0)
        return {
            "context_cov": tempo.fast.cov + level + cycles,
            "noise_cov": self.white + (still if tempo.error is None else tempo.error.cov),
            "bias_cov": _average(tempo.bias, half),
        }

    @property
    def white(self) -> Array:
        """The covariance of what is new in every reading."""
        return validation.covariance("noise_cov", self.noise_cov, self.dim)

    def _part(self, name: str, time: float) -> Any:
        """One of the parts, or None; one that walks may start from nothing."""
        walks = isinstance(time, float) and time == np.inf and f"{name}_walk" in vars(self)
        time = time if walks else validation.positive(f"{name}_time", time)
        cov, walk = self._cov(f"{name}_cov"), self._cov(f"{name}_walk") if walks else None
        if cov is None and walk is None:
            return None
        return Moving(np.zeros((self.dim, self.dim)) if cov is None else cov, time, walk)

    def _cycles(self) -> tuple[tuple[float, ...], Array | None]:
        """Periods, and a covariance for each."""
        cov, given = self._cov("cycle_cov"), self.periods
        if not isinstance(given, list | tuple) or (cov is None) != (not given):
            raise InputError("periods", given, "a list of positive numbers with a cycle_cov, none without")
        periods = tuple(validation.positive("periods", one) for one in given)
        return periods, None if cov is None else np.tile(cov, (len(periods), 1, 1))

    def _cov(self, field: str) -> Array | None:
        """A covariance, or None where it is the number 0."""
        value: Any = vars(self)[field]
        zero = isinstance(value, int | float) and not isinstance(value, bool) and value == 0
        return None if zero else validation.covariance(field, value, self.dim)


def _average(part: Moving, half: float) -> Array:
    """The covariance of a part, averaged over the time of a course, half of which is given."""
    return part.cov if part.walk is None else part.cov + half * part.walk
