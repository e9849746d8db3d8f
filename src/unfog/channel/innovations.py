"""Is the channel as described? A test that may be checked after every reading, for as long as one likes.

A denoiser with `predict_reading` says mean and variance of each coordinate of the next noisy context. If the
channel is as described, z = (noisy - mean) / sd is standard normal given the past, and for every variance v
of a few `SCALES`

    ratio(z) = N(m; 0, v) / N(m; 0, 1) / c_v,   m = min(|z|, CAP),
    c_v = P(|N(0, v)| < CAP) + P(|N(0, 1)| > CAP) N(CAP; 0, v) / N(CAP; 0, 1),

has the mean one: c_v is what it would be otherwise. So the product of the ratios of all readings from the
s-th on is a martingale, and so is the mean over scales and coordinates, and over all starts s with weights
that sum to one, however coordinates depend on each other. By Ville's inequality such a mean exceeds `ALARM`,
which is 1 / `LEVEL`, in at most the share `LEVEL` of worlds that are as described, ever. That is half of the
promised 5 %: the rest is for denoisers whose readings are not quite Gaussian.

With many starts there is an alarm even if trouble comes after many good readings, and all of them together
cost no more than one: with R(t) the weight of those after the t-th reading,

    M <- (M + R(t - 1) - R(t)) ratio(z),   e-value = M + R(t),   R(t) = 1 / (2 + log2(1 + t)).

Measured with `unfog`, d = 5, contexts of variance 1: if noise is described as 1.1 and is three times that, or
a third, all of 400 worlds raise the alarm within 300 readings, mostly after 20 (three times) or 80 (a third);
of 2,000 worlds as described 1.5 % do so within 1,000. Contexts hide small noise: if it is described as 0.5
and is a third of that, 83 % raise the alarm within 300; described as 0.1 and three times that, 41 %. Heavy
tails with the described variance raise it, too, in 48 % (three degrees of freedom) or 6 % (five) within
1,000; with denoisers that learn the noise themselves it is rare.

One absurd reading multiplies an e-value by at most 18, because of `CAP`: by itself it does not raise the
alarm. A lost coordinate, NaN, has the ratio one. J. Ville, *Étude critique de la notion de collectif*;
G. Shafer, *Testing by betting*; A. Ramdas and others, *Game-theoretic statistics and safe anytime-valid
inference*; the weights of starts are A. N. Shiryaev's, *On optimum methods in quickest detection problems*.
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
MOST = 1e300  # e-values are capped here, so that they do not overflow
LIMIT = 6.0  # deviations that count in moments, as in agents/round.py
FADES = 0.98  # decay per reading of the recent moments, which cover some 50 readings


def _mean_ratio(variance: float) -> float:
    """The mean c_v of the ratio for this variance, before it is normalised."""
    within = erf(CAP / sqrt(2 * variance))
    return within + (1 - erf(CAP / sqrt(2))) * exp(0.5 * CAP**2 * (1 - 1 / variance)) / sqrt(variance)


_SLOPES = np.array([0.5 * (1 - 1 / v) for v in SCALES])
_HEIGHTS = np.array([-0.5 * log(v) - log(_mean_ratio(v)) for v in SCALES])


class Innovations(NamedTuple):
    """How readings compare with their predictions, over all units."""

    readings: int
    total: Array  # (3, ..., d)  sums of 1, z and z^2 where the coordinate was not lost
    lately: Array  # (3, ..., d)  the same, of recent readings
    evidence: Array  # (..., d, scales)  M, at most `MOST`
    alarmed: Ints  # (...,)  after how many readings the alarm was first raised; 0: never


def start(dim: int, batch: tuple[int, ...] = (), *, tested: bool = True) -> Innovations:
    """The state before the first reading; if it is not `tested`, e-values are not numbers.

    Predictions by moments that are still learnt from the same readings make no martingale.
    """
    zero = np.zeros((3, *batch, dim))
    evidence = np.full((*batch, dim, len(SCALES)), 0.0 if tested else np.nan)
    return Innovations(0, zero, zero, evidence, np.zeros(batch, dtype=np.intp))


def after(past: Innovations, noisy: Array, mean: Array, variance: Array) -> Innovations:
    """The state after one more reading (..., d), whose predicted mean and variance are (..., d) each."""
    moments = np.ones_like(past.total)
    z = np.divide(noisy - mean, np.sqrt(variance), out=moments[1])
    np.minimum(np.maximum(z, -LIMIT, out=z), LIMIT, out=z)
    square = np.multiply(z, z, out=moments[2])
    ratio = np.exp(np.minimum(square, CAP**2)[..., None] * _SLOPES + _HEIGHTS)
    if np.isnan(square).any():
        present = square == square  # NaN does not equal itself
        ratio, moments = np.where(present[..., None], ratio, 1.0), np.where(present, moments, 0.0)
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
    """The moments of z."""

    seen: Array  # (..., d)  readings in which the coordinate was not lost
    mean: Array  # (..., d)  0 if the channel is as described; NaN where nothing was seen
    mean_square: Array  # (..., d)  1 if the channel is as described


def moments(sums: Array) -> Moments:
    """The moments from `total`, or from `lately`."""
    with np.errstate(invalid="ignore"):  # 0 / 0
        return Moments(sums[0], *(sums[1:] / sums[0]))


def e_values(innovations: Innovations) -> tuple[Array, Array]:
    """The current e-values of every coordinate, (..., d), and of all together, (...,)."""
    each = _by_coordinate(innovations.evidence, innovations.readings)
    return each, each.mean(-1)


def e_values_of(sums: Array, readings: Array) -> Array:
    """Past e-values of every coordinate, (n, d), from sums of evidence over scales and reading counts."""
    to_come = [_to_come(int(number)) if number == number else number for number in readings.tolist()]
    return sums / len(SCALES) + np.array(to_come)[:, None]


def sentences(innovations: Innovations, names: Sequence[str]) -> list[str]:
    """What is wrong with the channel of one problem, a sentence for each coordinate; empty without an alarm.

    After an alarm these are the coordinates whose own e-values are above the threshold now; if none are, one
    sentence says that the alarm is over.
    """
    if not innovations.alarmed:
        return []
    _, means, squares = moments(innovations.lately)
    rows = zip(names, e_values(innovations)[0], means, squares, strict=True)
    now = [_sentence(name, mean, square) for name, value, mean, square in rows if value >= ALARM]
    back_to_normal = (
        f"readings were not as the channel says after {int(innovations.alarmed)} of them; by now they are"
    )
    return now or [back_to_normal]


def _sentence(name: str, mean: float, square: float) -> str:
    """Whether it is the mean of a coordinate that is off, or its spread."""
    if mean**2 > square / 2 and square > 1:
        side = "above" if mean > 0 else "below"
        return f"{name}: readings lie {abs(mean):.1f} deviations {side} what the channel says"
    return f"{name}: readings spread {sqrt(square):.2g} times as far as the channel says"
