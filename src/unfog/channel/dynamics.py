"""How contexts and errors move in time, and the likelihood of a series of them.

Besides the moments of a channel, agents may be given a `Dynamics`, the law of

    c(t)    = mu_c + level + fast + cycles          chat(t) = c(t) + bias + error + white

Every part is Gaussian, with covariances between coordinates, and moves in one of two ways. A part with a
finite time constant tau returns to zero: over a step of length h it keeps the share exp(-h / tau), and its
covariance stays constant (an Ornstein-Uhlenbeck process). With tau infinite it is a random walk: its
covariance grows by `walk` for each unit of time, from that of its start. With tau = 0 it is new at every
moment; readings of the same moment share it. The white part is new in every reading. A cycle is a cos + b sin
of its period, with a and b drawn once for each period. The unit of time is that of the given times; rounds
are steps of 1.

The likelihood is that of a series whose parts all have one covariance S between coordinates, up to size:

    y(t) = start + walk + fast + white + sum_p (a_p cos + b_p sin)(2 pi t / period_p)

start is unknown, N(0, infinity); walk grows by w S for each unit of time, or comes back to zero with a long
time constant, of covariance (w slow / 2) S then; fast is an Ornstein-Uhlenbeck process of covariance
(1 - q) S and time constant tau; white has q S; a_p and b_p have k_p S. Given these numbers, innovations are
v_t ~ N(0, s_t S) with s_t a number: one Kalman filter of few states serves all coordinates,
S = mean(v v' / s) is the best, and what is left to maximise is

    log L = -(N (d log 2 pi + log|S| + d) + d sum log s_t) / 2,    N = readings less series,

the density of the differences from each series' first reading (A. C. Harvey, *Forecasting, Structural Time
Series Models and the Kalman Filter*, on concentration and on diffuse starts). Times need not be equally
spaced; many laws are evaluated at once.

For the search (channel/fit_dynamics.py) a law is a point, and a `Model` says which numbers there are and
which parts may be missing. A point holds logarithms of the walk, of its time constant, of that of the fast
part, the logit of the white share, and logarithms of the sizes of cycles. A missing part has infinite
entries; the edges of the box have practically the same effect.

If a law is right, its standardised innovations are independent N(0, 1). `diagnose_residuals` checks

    whiteness   Q = N (N + 2) sum_l r_l^2 / (N - l), summed over coordinates: chi-squared of d * lags
                (G. M. Ljung and G. E. P. Box, *On a Measure of Lack of Fit in Time Series Models*)
    tails       the fourth moment less 3, standard error sqrt(24 / (N d))
    coverage    how many lie within 1.96

Steps count, not time: over gaps a lag is longer.
"""

from math import erfc, sqrt
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.optimize import Box
from unfog.maths.statistics import normal_reach
from unfog.validation import InputError


class Moving(NamedTuple):
    """A part of contexts or errors that moves in time."""

    cov: Array  # (d, d)  at the start, and for ever where it comes back to zero
    time: float  # tau; infinite for one that walks
    walk: Array | None = None  # (d, d)  what a random walk adds per unit of time; None: it stays constant

    def scaled(self, factors: Array) -> "Moving":
        """The part in other units: coordinates times factors (d,)."""
        by = factors[:, None] * factors
        return Moving(self.cov * by, self.time, None if self.walk is None else self.walk * by)


class Dynamics(NamedTuple):
    """The parts of contexts and errors; None for a part that is missing."""

    fast: Moving  # part of the context
    bias: Moving  # of the error
    white: Array | None  # (d, d)
    level: Moving | None = None  # of the context
    error: Moving | None = None  # of the error
    periods: tuple[float, ...] = ()  # of cycles in the context
    cycles: Array | None = None  # (p, d, d)  covariance of a, and of b, for each period
    since: float | None = None  # the time at which this is the start; None: that of the first reading

    def check(self, dim: int) -> "Dynamics":
        """Check that all covariances and time constants are valid, and return self."""
        for name in ("fast", "bias", "level", "error"):
            part = self._asdict()[name]
            if part is not None:
                _check_moving(f"dynamics.{name}", part, dim)
        if self.white is not None:
            _check_cov("dynamics.white", self.white, dim)
        elif self.error is None:
            raise InputError("dynamics.white", None, "a covariance, or one for dynamics.error")
        if any(not 0 < period < np.inf for period in self.periods):
            raise InputError("dynamics.periods", self.periods, "positive numbers")
        if self.periods and (self.cycles is None or self.cycles.shape != (len(self.periods), dim, dim)):
            raise InputError(
                "dynamics.cycles", self.cycles, f"{len(self.periods)} covariances ({dim}, {dim})"
            )
        if self.since is not None and not np.isfinite(self.since):
            raise InputError("dynamics.since", self.since, "a time, or none")
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
    """Raise InputError unless cov is positive semi-definite: some directions may have no variance."""
    matrix = np.asarray(cov)
    is_valid = matrix.shape == (dim, dim) and np.isfinite(matrix).all() and np.allclose(matrix, matrix.T)
    if not is_valid or np.linalg.eigvalsh(matrix)[0] < -1e-12 * np.abs(matrix).max():
        raise InputError(field, matrix.tolist(), f"a covariance ({dim}, {dim})")


def without_time(context_cov: Array, noise_cov: Array, bias_cov: Array) -> Dynamics:
    """The dynamics that moments alone imply: independent rounds, but for a constant bias."""
    return Dynamics(Moving(context_cov, 0.0), Moving(bias_cov, np.inf), noise_cov)


START, WALK, FAST = 0, 1, 2  # indices of states; those of cycles follow, two by two
TINY = 1e-12  # the smallest variance, in the place of zero
NEVER = 1e-200  # the smallest time constant, in the place of zero


class Series(NamedTuple):
    """Readings in the order of time, one series after the other."""

    values: Array  # (n, d)
    steps: Array  # (n,)  since the reading before
    first: Bools  # (n,)  of its series
    seen: Array  # (n, m)  the weight of each state in a reading


class Law(NamedTuple):
    """B laws; sizes are shares of S."""

    walk: Array  # (B,)  w
    slow: Array  # (B,)  time constant of the walk; infinite if it does not return
    time: Array  # (B,)  tau
    white: Array  # (B,)  q
    cycles: Array  # (B, p)  k


class Filtered(NamedTuple):
    """The innovations of all readings but the first of each series, and the final estimates of starts."""

    news: Array  # (N, d, B)
    sizes: Array  # (N, B)  s
    starts: Array  # (G, d, B)
    blur: Array  # (G, B)  variance of the starts, as a share of S


def series(values: Array, times: Array, labels: Ints, periods: tuple[float, ...] = ()) -> Series:
    """Series from rows: those of equal label are adjacent, in the order of time, and make a series."""
    first = np.concatenate([[True], labels[1:] != labels[:-1]])
    steps = np.where(first, 0.0, np.diff(times, prepend=times[0]))
    turns = 2 * np.pi * times[:, None] / np.array(periods)
    waves = np.stack([np.cos(turns), np.sin(turns)], -1).reshape(len(times), -1)
    return Series(values, steps, first, np.concatenate([np.ones((len(times), 3)), waves], 1))


def filter_series(law: Law, data: Series) -> Filtered:
    """Filter a series under all laws at once; the state (m, m + d, B) holds covariances, then means."""
    n, d = data.values.shape
    m, count = data.seen.shape[1], len(law.walk)
    walk_decay, fast_decay = (
        np.exp(-data.steps[:, None] / np.maximum(time, NEVER)) for time in (law.slow, law.time)
    )
    walk_growth, fast_growth = _walk_growth(law, data.steps), (1 - law.white) * (1 - fast_decay**2)
    news, sizes = np.empty((n, d, count)), np.empty((n, count))
    starts, ends, state = [], np.append(data.first[1:], True), np.empty((m, m + d, count))
    values = data.values[:, :, None]
    for t in range(n):
        if data.first[t]:
            state = _start_state(law, data.seen[t], data.values[t])
        else:
            state[WALK] *= walk_decay[t]
            state[:, WALK] *= walk_decay[t]
            state[FAST] *= fast_decay[t]
            state[:, FAST] *= fast_decay[t]
            state[WALK, WALK] += walk_growth[t]
            state[FAST, FAST] += fast_growth[t]
            projection = (data.seen[t] @ state.reshape(m, -1)).reshape(m + d, count)
            sizes[t] = np.maximum(data.seen[t] @ projection[:m] + law.white, TINY)
            gain = projection[:m] / sizes[t]
            np.negative(projection[:m], out=projection[:m])
            np.subtract(values[t], projection[m:], out=projection[m:])
            news[t] = projection[m:]
            state += gain[:, None] * projection
        if ends[t]:
            starts.append(state[START].copy())
    last = np.stack(starts)
    return Filtered(news[~data.first], sizes[~data.first], last[:, m:], last[:, START])


def _walk_growth(law: Law, steps: Array) -> Array:
    """What each step adds to the variance of the walk, (n, B)."""
    returns = law.slow < np.inf
    slow = np.where(returns, law.slow, 1.0)
    return law.walk * np.where(returns, -slow / 2 * np.expm1(-2 * steps[:, None] / slow), steps[:, None])


def _start_state(law: Law, seen: Array, value: Array) -> Array:
    """The state after the first reading: the start is the reading less all other parts."""
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


def scatter(output: Filtered) -> Array:
    """The best S for each law, (B, d, d)."""
    scaled = np.moveaxis(output.news / np.sqrt(output.sizes)[:, None], 2, 0)
    return scaled.mT @ scaled / len(output.sizes)


def likelihood(output: Filtered) -> Array:
    """Log L for each law, (B,), with the best S."""
    n, d, _ = output.news.shape
    spread = np.linalg.slogdet(scatter(output))[1]
    return -(n * (d * np.log(2 * np.pi) + spread + d) + d * np.log(output.sizes).sum(axis=0)) / 2


W, SLOW, TAU, Q = 0, 1, 2, 3  # indices in a point; sizes of cycles follow
ONE_SIDED, PAIR = 2.706, 5.991  # quantiles of chi-squared: 90 % with one degree, 95 % with two
APART = 2.0  # the slow time constant is at least this multiple of the fast one


class Drop(NamedTuple):
    """A part that may be dropped: the entries of a point without it, and what dropping it may cost."""

    part: str
    entries: tuple[tuple[int, float], ...]
    allowed: float


class Model(NamedTuple):
    """The names of numbers in the order of a point; None for one that is not estimated."""

    names: tuple[str | None, ...]
    drops: tuple[Drop, ...]


def contexts_model(periods: tuple[float, ...], returns: bool = True) -> Model:
    """The model of contexts: a level that may walk and may return, a fast part, cycles."""
    cycles = [f"cycle {period:g}" for period in periods]
    drops = [Drop("level.walk", ((W, -np.inf),), ONE_SIDED), Drop("fast.time", ((TAU, -np.inf),), ONE_SIDED)]
    drops += [Drop(name, ((Q + 1 + k, -np.inf),), ONE_SIDED) for k, name in enumerate(cycles)]
    return Model(("level.walk", "level.time" if returns else None, "fast.time", None, *cycles), tuple(drops))


def errors_model(returns: bool = True) -> Model:
    """The model of errors: a bias that may walk and may return, a part with a time constant, white noise."""
    drops = (
        Drop("bias.walk", ((W, -np.inf),), ONE_SIDED),
        Drop("white", ((Q, -np.inf),), ONE_SIDED),
        Drop("error", ((Q, np.inf), (TAU, -np.inf)), PAIR),
    )
    return Model(("bias.walk", "bias.time" if returns else None, "error.time", "white.share"), drops)


def law_at(points: Array) -> Law:
    """The laws that points (B, p) stand for."""
    with np.errstate(over="ignore"):
        white = 1 / (1 + np.exp(-points[:, Q]))
        walk, slow, time = np.exp(points[:, [W, SLOW, TAU]]).T
        return Law(walk, np.maximum(slow, APART * time), time, white, np.exp(points[:, Q + 1 :]))


def box_of(data: Series, size: int) -> Box:
    """The limits of the search: from practically zero to practically infinite over the time observed."""
    steps = data.steps[data.steps > 0]
    span = max(part.sum() for part in np.split(data.steps, np.flatnonzero(data.first)[1:]))
    low, high = np.full(size, np.log(1e-6)), np.full(size, np.log(1e4))
    low[W], high[W] = np.log(1e-4 / span), np.log(1e4 / np.median(steps))
    low[SLOW], high[SLOW] = np.log(np.median(steps)), np.log(20 * span)
    low[TAU], high[TAU] = np.log(steps.min() / 8), np.log(20 * span)
    low[Q], high[Q] = -9.0, 9.0
    return Box(low, high)


def starts_of(model: Model, data: Series, box: Box) -> Array:
    """A grid of starting points: time constants from one step to a good part of the time observed."""
    usual, longest = np.log(np.median(data.steps[data.steps > 0])), box.high[SLOW] - np.log(60)
    whites = [-np.inf] if model.names[Q] is None else [-3.0, -1.0, 1.0]
    grid = [
        [walk - usual, np.inf, tau, white, *[-2.0] * (len(model.names) - Q - 1)]
        for walk in np.log([1e-5, 1e-3, 3e-2, 1.0])
        for tau in np.linspace(usual - 1, max(usual + 2, longest - 1), 6)
        for white in whites
    ]
    return np.array(grid)


LAGS = 10
DOUBT = 0.001  # p-value below which a check fails


class ResidualChecks(NamedTuple):
    """Checks of the residuals of one series."""

    numbers: int  # of standardised innovations
    lag1: float  # correlation with the step before
    lag1_error: float
    whiteness: float  # probability of as much correlation by chance, over 10 lags
    kurtosis: float  # above that of a Gaussian
    kurtosis_error: float
    coverage: float  # of 95 % bands
    coverage_error: float

    def __str__(self) -> str:
        return (
            f"lag-1 correlation {self.lag1:.3f} ± {self.lag1_error:.3f}, whiteness p = {self.whiteness:.2g}; "
            f"excess kurtosis {self.kurtosis:.2f} ± {self.kurtosis_error:.2f}; "
            f"95 % bands cover {100 * self.coverage:.1f} ± {100 * self.coverage_error:.1f} %"
        )

    def doubts(self) -> tuple[str, ...]:
        """The checks that fail, in words."""
        heavy = "heavier" if self.kurtosis > 0 else "lighter"
        doubts = {
            "what is left over is correlated in time: limits are too narrow": self.whiteness < DOUBT,
            f"tails are {heavy} than a Gaussian's": _normal_tail(self.kurtosis / self.kurtosis_error) < DOUBT,
            "95 % bands do not cover 95 %": _normal_tail((self.coverage - 0.95) / self.coverage_error)
            < DOUBT,
        }
        return tuple(words for words, holds in doubts.items() if holds)


def diagnose_residuals(news: Array, sizes: Array, cov: Array) -> ResidualChecks:
    """Checks of innovations (N, d) whose covariances are sizes (N,) times cov."""
    z = np.linalg.solve(np.linalg.cholesky(cov), (news / np.sqrt(sizes)[:, None]).T).T
    n, d = z.shape
    power = (z**2).sum(axis=0)
    lags = [lag for lag in range(1, LAGS + 1) if lag < n]
    correlations = np.array([(z[lag:] * z[:-lag]).sum(axis=0) / power for lag in lags])
    statistic = n * (n + 2) * float((correlations**2 / (n - np.array(lags))[:, None]).sum())
    inside = float((np.abs(z) <= normal_reach()).mean())
    return ResidualChecks(
        z.size,
        float(correlations[0].mean()),
        1 / sqrt(z.size),
        _exceeded(statistic, d * len(lags)),
        float((z**4).mean() / (z**2).mean() ** 2 - 3),
        sqrt(24 / z.size),
        inside,
        sqrt(0.95 * 0.05 / z.size),
    )


def _normal_tail(score: float) -> float:
    """The probability that a standard normal is at least as far from zero."""
    return erfc(abs(score) / sqrt(2))


def _exceeded(value: float, degrees: int) -> float:
    """The upper tail of chi-squared, whose cube root is nearly normal (Wilson and Hilferty)."""
    part = 2 / (9 * degrees)
    return erfc(((value / degrees) ** (1 / 3) - 1 + part) / sqrt(2 * part)) / 2
