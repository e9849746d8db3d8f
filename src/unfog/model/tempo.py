"""How contexts and errors move in time: what agents may be told of it besides the moments of a channel.

    c(t)    = mu_c + level + fast + cycles          chat(t) = c(t) + bias + error + white

Every part is Gaussian, with covariances between coordinates, and lives in one of two ways. One with a time
constant tau comes back to zero: over a step of length h it keeps the share exp(-h / tau), and its covariance
stays what it is (an Ornstein-Uhlenbeck process). One without end, tau infinite, walks: its covariance grows
by `walk` for each unit of time, from that of its start. With tau = 0 every moment has a new one; readings of
one and the same moment share it. The white part is new in every reading. A cycle is a cos + b sin of its
period, a and b drawn once for each period.

Time is real: its unit is that of the times given, and what is measured in rounds has steps of 1.
"""

from typing import NamedTuple

import numpy as np

from unfog.inputs import InputError
from unfog.maths.arrays import Array


class Moving(NamedTuple):
    """A part that lives in time."""

    cov: Array  # (d, d)  at the start, and for ever where it comes back to zero
    time: float  # tau; infinite for one that walks
    walk: Array | None = None  # (d, d)  a unit of time adds this, where it walks; None: it stays

    def scaled(self, factors: Array) -> "Moving":
        """In other units of the coordinates: those times factors (d,)."""
        by = factors[:, None] * factors
        return Moving(self.cov * by, self.time, None if self.walk is None else self.walk * by)


class Tempo(NamedTuple):
    """The parts of contexts and errors; None where there is none."""

    fast: Moving  # part of the context
    bias: Moving  # of the error
    white: Array | None  # (d, d)
    level: Moving | None = None  # of the context
    error: Moving | None = None  # of the error
    periods: tuple[float, ...] = ()  # of cycles in the context
    cycles: Array | None = None  # (p, d, d)  covariance of a, and of b, for each period
    since: float | None = None  # the time at which this is the start; None: that of the first reading

    def check(self, dim: int) -> "Tempo":
        """Itself, where every part is a covariance of this size and every time constant one."""
        for name in ("fast", "bias", "level", "error"):
            part = self._asdict()[name]
            if part is not None:
                _check_moving(f"tempo.{name}", part, dim)
        if self.white is not None:
            _check_cov("tempo.white", self.white, dim)
        elif self.error is None:
            raise InputError("tempo.white", None, "a covariance, or one for tempo.error")
        if any(not 0 < period < np.inf for period in self.periods):
            raise InputError("tempo.periods", self.periods, "positive numbers")
        if self.periods and (self.cycles is None or self.cycles.shape != (len(self.periods), dim, dim)):
            raise InputError("tempo.cycles", self.cycles, f"{len(self.periods)} covariances ({dim}, {dim})")
        if self.since is not None and not np.isfinite(self.since):
            raise InputError("tempo.since", self.since, "a time, or none")
        return self


def _check_moving(field: str, part: Moving, dim: int) -> None:
    _check_cov(f"{field}.cov", part.cov, dim)
    if not part.time >= 0:
        raise InputError(f"{field}.time", part.time, "zero, a positive number, or infinity")
    if part.walk is not None:
        _check_cov(f"{field}.walk", part.walk, dim)
        if part.time < np.inf:
            raise InputError(f"{field}.walk", "given", "none, or an infinite time: what walks has no end")


def _check_cov(field: str, cov: Array, dim: int) -> None:
    """Positive semi-definite: a part may be still in some directions."""
    given = np.asarray(cov)
    sound = given.shape == (dim, dim) and np.isfinite(given).all() and np.allclose(given, given.T)
    if not sound or np.linalg.eigvalsh(given)[0] < -1e-12 * np.abs(given).max():
        raise InputError(field, given.tolist(), f"a covariance ({dim}, {dim})")


def untimed(context_cov: Array, noise_cov: Array, bias_cov: Array) -> Tempo:
    """Rounds that are independent, but for a bias that stays: what the moments alone say."""
    return Tempo(Moving(context_cov, 0.0), Moving(bias_cov, np.inf), noise_cov)
