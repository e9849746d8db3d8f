"""Is the channel as told? A test that may be looked at after every reading, for as long as one likes.

A denoiser that `Expects` says mean and variance of each coordinate of the next noisy context. If all is as
told, z = (noisy - mean) / sd is standard normal given the past, and for every variance v of a few `SCALES`

    ratio(z) = N(m; 0, v) / N(m; 0, 1) / c_v,   m = min(|z|, CAP),
    c_v = P(|N(0, v)| < CAP) + P(|N(0, 1)| > CAP) N(CAP; 0, v) / N(CAP; 0, 1),

has the mean one: c_v is what it would be otherwise. So the product of the ratios of all readings from the
s-th on is a martingale, and so is the mean over scales and coordinates, and over all starts s with weights
that sum to one, however coordinates depend on each other. By Ville's inequality such a mean exceeds `ALARM`,
which is 1 / `LEVEL`, in at most the share `LEVEL` of worlds that are as told, ever. That is half of the 5 %
that are promised: the rest is for denoisers whose readings are not quite Gaussian.

The starts make for an alarm also where trouble comes after many good readings, and all of them cost no more
than one: with R(t) the weight of those after the t-th reading,

    M <- (M + R(t - 1) - R(t)) ratio(z),   e-value = M + R(t),   R(t) = 1 / (2 + log2(1 + t)).

Measured with `unfog`, d = 5, contexts of variance 1: noise of 1.1, told wrong by three either way, is seen
within 300 readings in all of 400 worlds, mostly after 20 (three times) or 80 (a third); 1.5 % of 2,000 worlds
as told raise the alarm within 1,000. Contexts hide small noise: told 0.5 and a third of that, 83 % within
300; told 0.1 and three times, 41 %. Heavy tails with the variance told raise it too, in 48 % (three degrees
of freedom) or 6 % (five) within 1,000; and denoisers that learn the noise themselves seldom do.

One absurd reading multiplies an e-value by 18 at most, for `CAP`: by itself it does not raise the alarm. What
was lost, not a number, is a ratio of one. J. Ville, *Étude critique de la notion de collectif*; G. Shafer,
*Testing by betting*; A. Ramdas and others, *Game-theoretic statistics and safe anytime-valid inference*; the
weights of starts are A. N. Shiryaev's, *On optimum methods in quickest detection problems*.
"""

from collections.abc import Sequence
from math import erf, exp, log, log2, sqrt
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints

SCALES = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)  # of the mean square of z
CAP = 3.0
LEVEL = 0.025
ALARM = 1 / LEVEL
MOST = 1e300  # an e-value beyond this says no more
LIMIT = 6.0  # deviations that count in moments, as in agents/round.py
FADES = 0.98  # of one reading to the next, in moments of late: those of some 50 readings


def _mean_ratio(variance: float) -> float:
    """c_v."""
    within = erf(CAP / sqrt(2 * variance))
    return within + (1 - erf(CAP / sqrt(2))) * exp(0.5 * CAP**2 * (1 - 1 / variance)) / sqrt(variance)


_SLOPES = np.array([0.5 * (1 - 1 / v) for v in SCALES])
_HEIGHTS = np.array([-0.5 * log(v) - log(_mean_ratio(v)) for v in SCALES])


class Innovations(NamedTuple):
    """What readings were like beside what was expected of them, those of all units together."""

    readings: int
    total: Array  # (3, ..., d)  sums of 1, z and z^2 where the coordinate was not lost
    lately: Array  # (3, ..., d)  the same, of late
    evidence: Array  # (..., d, scales)  M, at most `MOST`
    alarmed: Ints  # (...,)  after how many readings the alarm was first raised; 0: never


def none_yet(dim: int, batch: tuple[int, ...] = ()) -> Innovations:
    """Before the first reading of so many coordinates."""
    nothing, evidence = np.zeros((3, *batch, dim)), np.zeros((*batch, dim, len(SCALES)))
    return Innovations(0, nothing, nothing, evidence, np.zeros(batch, dtype=np.intp))


def after(past: Innovations, noisy: Array, mean: Array, variance: Array) -> Innovations:
    """With one more reading (..., d), of which mean and variance were expected, (..., d) each."""
    moments = np.ones_like(past.total)
    z = np.divide(noisy - mean, np.sqrt(variance), out=moments[1])
    np.minimum(np.maximum(z, -LIMIT, out=z), LIMIT, out=z)
    square = np.multiply(z, z, out=moments[2])
    ratio = np.exp(np.minimum(square, CAP**2)[..., None] * _SLOPES + _HEIGHTS)
    if np.isnan(square).any():
        there = square == square  # not a number is not even itself
        ratio, moments = np.where(there[..., None], ratio, 1.0), np.where(there, moments, 0.0)
    readings, alarmed = past.readings + 1, past.alarmed
    started = _to_come(past.readings) - _to_come(readings)
    evidence = np.minimum((past.evidence + started) * ratio, MOST)
    if not alarmed.all() and evidence.max() > ALARM / 2:  # a mean is no larger than the largest
        now = (alarmed == 0) & (_by_coordinate(evidence, readings).mean(-1) >= ALARM)
        alarmed = np.where(now, readings, alarmed)
    return Innovations(readings, past.total + moments, FADES * past.lately + moments, evidence, alarmed)


def _to_come(readings: int) -> float:
    """R(t): the weight of starts that are still to come; all of it before the first reading."""
    return 1 / (2 + log2(1 + readings)) if readings else 1.0


def _by_coordinate(evidence: Array, readings: int) -> Array:
    """The e-values of all coordinates, (..., d)."""
    return evidence.mean(-1) + _to_come(readings)


class Moments(NamedTuple):
    """What z was like."""

    seen: Array  # (..., d)  readings in which the coordinate was not lost
    mean: Array  # (..., d)  0 if all is as told; not a number where nothing was seen
    mean_square: Array  # (..., d)  1 if all is as told


def moments(sums: Array) -> Moments:
    """From `total`, or from `lately`."""
    with np.errstate(invalid="ignore"):  # nothing by nothing
        return Moments(sums[0], *(sums[1:] / sums[0]))


def e_values(found: Innovations) -> tuple[Array, Array]:
    """Of every coordinate, (..., d), and of all together, (...,), as they are now."""
    each = _by_coordinate(found.evidence, found.readings)
    return each, each.mean(-1)


def e_values_of(sums: Array, readings: Array) -> Array:
    """Of every coordinate, (n, d), from sums of evidence over scales and numbers of readings of the past."""
    to_come = [_to_come(int(number)) if number == number else number for number in readings.tolist()]
    return sums / len(SCALES) + np.array(to_come)[:, None]


def sentences(found: Innovations, names: Sequence[str]) -> list[str]:
    """What is wrong with the channel of one problem, coordinate by coordinate, in words; nothing if nothing.

    After an alarm, of those coordinates that by themselves are beyond it now, or else that it is over.
    """
    if not found.alarmed:
        return []
    _, means, squares = moments(found.lately)
    each = zip(names, e_values(found)[0], means, squares, strict=True)
    now = [_sentence(name, mean, square) for name, value, mean, square in each if value >= ALARM]
    over = f"readings were not as the channel says after {int(found.alarmed)} of them; by now they are"
    return now or [over]


def _sentence(name: str, mean: float, square: float) -> str:
    """How a coordinate is off: its place, or its spread."""
    if mean**2 > square / 2 and square > 1:
        side = "above" if mean > 0 else "below"
        return f"{name}: readings lie {abs(mean):.1f} deviations {side} what the channel says"
    return f"{name}: readings spread {sqrt(square):.2g} times as far as the channel says"
