"""The likelihood of a series in time whose parts all have one covariance between coordinates, up to size.

    y(t) = start + walk + fast + white + sum_p (a_p cos + b_p sin)(2 pi t / period_p)

start is unknown, N(0, infinity); walk grows by w S for each unit of time, or comes back to zero with a long
time constant, of covariance (w slow / 2) S then; fast is an Ornstein-Uhlenbeck process of covariance
(1 - q) S and time constant tau; white has q S; a_p and b_p have k_p S. Given these numbers, innovations are
v_t ~ N(0, s_t S) with s_t a number: one Kalman filter of few states serves all coordinates,
S = mean(v v' / s) is the best, and what is left to maximise is

    log L = -(N (d log 2 pi + log|S| + d) + d sum log s_t) / 2,    N = readings less series,

the density of the differences from each series' first reading (A. C. Harvey, *Forecasting, Structural Time
Series Models and the Kalman Filter*, on concentration and on starts that are diffuse). Times are any; many
laws are tried at one time.
"""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints

START, WALK, FAST = 0, 1, 2  # states; those of cycles follow, two by two
TINY = 1e-12  # a variance that is none
NEVER = 1e-200  # a time that is none


class Series(NamedTuple):
    """Readings in the order of time, one series after the other."""

    values: Array  # (n, d)
    steps: Array  # (n,)  since the reading before
    first: Bools  # (n,)  of its series
    seen: Array  # (n, m)  what of each state a reading shows


class Law(NamedTuple):
    """B laws; sizes are shares of S."""

    walk: Array  # (B,)  w
    slow: Array  # (B,)  infinite for one without end
    time: Array  # (B,)  tau
    white: Array  # (B,)  q
    cycles: Array  # (B, p)  k


class Filtered(NamedTuple):
    """What was new in every reading but the first ones, and the starts of series as known in the end."""

    news: Array  # (N, d, B)
    sizes: Array  # (N, B)  s
    starts: Array  # (G, d, B)
    blur: Array  # (G, B)  variance of the starts, as a share of S


def series(values: Array, times: Array, labels: Ints, periods: tuple[float, ...] = ()) -> Series:
    """Rows of equal label, which are next to each other and in the order of time, are a series."""
    first = np.concatenate([[True], labels[1:] != labels[:-1]])
    steps = np.where(first, 0.0, np.diff(times, prepend=times[0]))
    turns = 2 * np.pi * times[:, None] / np.array(periods)
    waves = np.stack([np.cos(turns), np.sin(turns)], -1).reshape(len(times), -1)
    return Series(values, steps, first, np.concatenate([np.ones((len(times), 3)), waves], 1))


def filtered(law: Law, given: Series) -> Filtered:
    """The filter, over all laws at once; states hold (m, m + d, B): covariances, then means."""
    n, d = given.values.shape
    m, count = given.seen.shape[1], len(law.walk)
    kept, held = (np.exp(-given.steps[:, None] / np.maximum(time, NEVER)) for time in (law.slow, law.time))
    grown, fresh = _grown(law, given.steps), (1 - law.white) * (1 - held**2)
    news, sizes = np.empty((n, d, count)), np.empty((n, count))
    starts, ends, state = [], np.append(given.first[1:], True), np.empty((m, m + d, count))
    values = given.values[:, :, None]
    for t in range(n):
        if given.first[t]:
            state = _begun(law, given.seen[t], given.values[t])
        else:
            state[WALK] *= kept[t]
            state[:, WALK] *= kept[t]
            state[FAST] *= held[t]
            state[:, FAST] *= held[t]
            state[WALK, WALK] += grown[t]
            state[FAST, FAST] += fresh[t]
            shown = (given.seen[t] @ state.reshape(m, -1)).reshape(m + d, count)
            sizes[t] = np.maximum(given.seen[t] @ shown[:m] + law.white, TINY)
            gain = shown[:m] / sizes[t]
            np.negative(shown[:m], out=shown[:m])
            np.subtract(values[t], shown[m:], out=shown[m:])
            news[t] = shown[m:]
            state += gain[:, None] * shown
        if ends[t]:
            starts.append(state[START].copy())
    last = np.stack(starts)
    return Filtered(news[~given.first], sizes[~given.first], last[:, m:], last[:, START])


def _grown(law: Law, steps: Array) -> Array:
    """What a step adds to the variance of the walk, (n, B)."""
    ends = law.slow < np.inf
    slow = np.where(ends, law.slow, 1.0)
    return law.walk * np.where(ends, -slow / 2 * np.expm1(-2 * steps[:, None] / slow), steps[:, None])


def _begun(law: Law, seen: Array, value: Array) -> Array:
    """After a series' first reading: the start is that reading less all the rest, which is as it was."""
    m, count = len(seen), len(law.walk)
    prior = np.zeros((m, count))
    prior[WALK] = law.walk * np.where(law.slow < np.inf, law.slow, 0.0) / 2
    prior[FAST] = 1 - law.white
    prior[FAST + 1 :] = np.repeat(law.cycles.T, 2, 0)
    state = np.zeros((m, m + len(value), count))
    state[np.arange(m), np.arange(m)] = prior
    state[START, 1:m] = state[1:, START] = -(seen[:, None] * prior)[1:]
    state[START, START] = (seen[:, None] ** 2 * prior).sum(axis=0) + law.white
    state[START, m:] = value[:, None]
    return state


def scatter(found: Filtered) -> Array:
    """S for each law, (B, d, d)."""
    scaled = np.moveaxis(found.news / np.sqrt(found.sizes)[:, None], 2, 0)
    return scaled.mT @ scaled / len(found.sizes)


def likelihood(found: Filtered) -> Array:
    """Log L for each law, (B,), S the best."""
    n, d, _ = found.news.shape
    spread = np.linalg.slogdet(scatter(found))[1]
    return -(n * (d * np.log(2 * np.pi) + spread + d) + d * np.log(found.sizes).sum(axis=0)) / 2
