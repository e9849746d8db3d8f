"""Averages of all readings so far."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.parts import Counts, Denoiser, Hindsight, Privilege
from unfog.channel.knowledge import Knowledge, Shrinkage
from unfog.features import Context
from unfog.maths.arrays import Array, diagonal_matrix


class Tally(NamedTuple):
    """Of each coordinate: how often it was read, and the moments of what was."""

    number: Array  # (..., d)
    mean: Array  # (..., d)  zero before the first
    spread: Array  # (..., d)  sum of squared deviations from the mean

    def plus(self, noisy: Array) -> "Tally":
        """With one more reading (..., d), not a number where a coordinate was lost."""
        xp = noisy.__array_namespace__()
        lost = xp.isnan(noisy)
        number = self.number + (~lost).astype(noisy.dtype)
        away = xp.where(lost, 0.0, noisy - self.mean)
        mean = self.mean + away / xp.maximum(number, 1.0)
        return Tally(number, mean, self.spread + away * xp.where(lost, 0.0, noisy - mean))

    def context(self) -> Context:
        """The moments, as a belief."""
        xp = self.number.__array_namespace__()
        return Context(self.mean, diagonal_matrix(self.spread / xp.maximum(self.number, 1.0)))


def none_yet(like: Array) -> Tally:
    """Before the first reading, for coordinates as many as here: (d,)."""
    xp = like.__array_namespace__()
    return Tally(*[xp.zeros_like(like)] * 3)


@dataclass(frozen=True, kw_only=True)
class Averages(Denoiser, Counts):
    """Averages of all readings so far: for those who take the context, or the profile of an arm, for
    constant.

    Mean and variance of every coordinate over the readings that have it, by the update of B. P. Welford,
    *Note on a method for calculating corrected sums of squares and products*. At them the expected features
    of a map without powers beyond squares, and without products of coordinates, are the averages of phi(a,
    chat) over rounds, for every arm. Other maps get the expectation under a Gaussian with these moments.

    It has no settings. Its hindsight says of every round the same, whatever was read in it.
    """

    name = "averages"
    note = "averages all readings: the context is constant to it"
    takes_gaps = True
    squares = 1

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Context:
        """The law of contexts, for when nothing was read."""
        return Context(known.context_mean, known.context_cov)

    def start(self, parameters: Context) -> Tally:
        """Nothing read yet."""
        return none_yet(parameters.mean)

    def predict(self, parameters: Context, state: Tally, noisy: Array) -> Context:
        """The moments of all readings, this one included; the law of contexts for coordinates without any."""
        xp, tally = noisy.__array_namespace__(), state.plus(noisy)
        mean, cov = tally.context()
        never = tally.number == 0
        both = never[..., :, None] & never[..., None, :]
        return Context(xp.where(never, parameters.mean, mean), xp.where(both, parameters.cov, cov))

    def update(self, parameters: Context, state: Tally, noisy: Array, context: None) -> Tally:
        """With one more reading."""
        return state.plus(noisy)

    def hindsight(self, parameters: Context, state: Tally, noisy: Array) -> Hindsight:
        """The moments of all readings for every round, and how many there were of each coordinate."""
        found, xp = self.predict(parameters, state, noisy), noisy.__array_namespace__()
        none, nothing = xp.zeros_like(parameters.mean), xp.zeros_like(parameters.cov)
        number = self.readings(parameters, state, noisy)
        return Hindsight(Shrinkage(found.mean, nothing, found.cov), none, nothing, number)

    def readings(self, parameters: Context, state: Tally, noisy: Array) -> Array:
        """How many there were of each coordinate, this one included."""
        return state.plus(noisy).number

    def unbiased(self, parameters: Context, noisy: Array) -> Array:
        """The reading as it is: a learner may want to average it by itself."""
        return noisy
