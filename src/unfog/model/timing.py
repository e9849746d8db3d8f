"""Constants of time from pairs in the order of time: a `Tempo`, what is known of its numbers, and checks.

With every true context beside its noisy one, contexts and errors are both seen, and are fitted apart
(`unfog.model.constants`). Groups are devices or persons: each has a series of its own, with a start of its
own, and how far starts lie apart is the covariance of level and bias at the start. Where there is one series,
the level starts as far from the mean of the contexts as a walk is from its own mean in the end, a third of
all that it walked, and the bias with the covariance it has without time; both begin where the pairs end.

Where noisy contexts without a true one are more than the pairs, `unfog.model.seldom` takes both.
"""

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.inputs import InputError
from unfog.maths.arrays import Array, Bools, Ints
from unfog.model.between import between
from unfog.model.constants import Constant, Fit, fit
from unfog.model.laws import Model, contexts_model, errors_model
from unfog.model.leftover import Leftover, leftover
from unfog.model.series import Series, scatter, series
from unfog.model.tempo import Moving, Tempo

TIMES = "a number for each pair, none less than the one before (in each group)"


class Timing(NamedTuple):
    """What pairs say of time."""

    tempo: Tempo
    constants: dict[str, Constant]  # shares are of the covariance of fast, and of error and white together
    contexts: Leftover
    errors: Leftover
    likelihood: float  # logarithm of its maximum
    notes: tuple[str, ...]

    def __str__(self) -> str:
        rows = [f"{name:12} {constant}" for name, constant in self.constants.items()]
        rows += [f"contexts: {self.contexts}", f"errors: {self.errors}"]
        return "\n".join([*rows, *self.notes])


class Pairs(NamedTuple):
    """Complete pairs, series after series, each in the order of time."""

    true: Array  # (n, d)
    errors: Array  # (n, d)
    times: Array  # (n,)
    labels: Ints  # (n,)


def check_times(times: npt.ArrayLike, kept: Bools) -> Array:
    """The times of the pairs that are kept."""
    given = np.asarray(times)
    if given.dtype.kind not in "iuf" or given.shape != kept.shape:
        raise InputError("times", f"{given.dtype} of shape {given.shape}", f"{TIMES}: {len(kept)}")
    if not np.isfinite(given).all():
        where = int(np.argmin(np.isfinite(given)))
        raise InputError("times", f"row {where} is {given[where]}", TIMES)
    return given[kept].astype(np.float64)


def check_periods(cycles: Sequence[float] | Array) -> tuple[float, ...]:
    """Periods of cycles."""
    allowed = "periods: positive numbers in the unit of times, each given once"
    given = cycles.tolist() if isinstance(cycles, np.ndarray) else cycles
    if not isinstance(given, tuple | list) or not all(_is_number(period) for period in given):
        raise InputError("cycles", cycles, allowed)
    periods = tuple(float(period) for period in given)
    if any(not 0 < period < np.inf for period in periods) or len(set(periods)) < len(periods):
        raise InputError("cycles", cycles, allowed)
    return periods


def _is_number(period: object) -> bool:
    return isinstance(period, Real) and not isinstance(period, bool)


def timing(pairs: Pairs, periods: tuple[float, ...], bias_cov: Array) -> Timing:
    """The law in time of pairs; `bias_cov` is for the start of a bias that is the only one seen."""
    order = np.argsort(pairs.labels, kind="stable")
    pairs = Pairs(pairs.true[order], pairs.errors[order], pairs.times[order], pairs.labels[order])
    _check(pairs, len(periods))
    one = len(set(pairs.labels)) == 1
    contexts = _fitted(contexts_model(periods, returns=one), _moments(pairs, periods))
    errors = _fitted(errors_model(returns=one), series(pairs.errors, pairs.times, pairs.labels))
    tempo = _tempo(contexts, errors, periods, bias_cov)
    tempo = tempo._replace(since=float(pairs.times[-1]) if one else None)
    said = [f"contexts: {words}" for words in (*contexts.fit.notes, *contexts.left.doubts())]
    said += [f"errors: {words}" for words in (*errors.fit.notes, *errors.left.doubts())]
    return Timing(
        tempo.check(len(bias_cov)),
        contexts.fit.constants | errors.fit.constants,
        contexts.left,
        errors.left,
        contexts.fit.value + errors.fit.value,
        tuple(said),
    )


class _Fitted(NamedTuple):
    fit: Fit
    cov: Array  # (d, d)  S
    starts: Array | None  # (d, d)  covariance of the starts; None with one series
    left: Leftover
    span: float


def _fitted(model: Model, given: Series) -> _Fitted:
    found = fit(model, given)
    cov, news = scatter(found.found)[0], found.found
    starts = None
    if len(news.starts) > 1:
        starts = between(news.starts[:, :, 0], float(news.blur.mean()), cov, 1 / len(given.steps))
    left = leftover(news.news[:, :, 0], news.sizes[:, 0], cov)
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(given.first)[1:]))
    return _Fitted(found, cov, starts, left, float(span))


def _tempo(contexts: _Fitted, errors: _Fitted, periods: tuple[float, ...], bias_cov: Array) -> Tempo:
    white = errors.fit.law.white[0]
    bias = Moving(bias_cov, np.inf)
    sizes = contexts.fit.law.cycles[0]
    kept = sizes > 0
    return Tempo(
        fast=Moving(contexts.cov, float(contexts.fit.law.time[0])),
        bias=_slow(errors, bias) or bias,
        white=white * errors.cov if white else None,
        level=_slow(contexts, None),
        error=Moving((1 - white) * errors.cov, float(errors.fit.law.time[0])) if white < 1 else None,
        periods=tuple(period for period, one in zip(periods, kept, strict=True) if one),
        cycles=sizes[kept, None, None] * contexts.cov if kept.any() else None,
    )


def _slow(side: _Fitted, still: Moving | None) -> Moving | None:
    """What walks, and from where; or returns; or stays where it started."""
    walk, time = side.fit.law.walk[0] * side.cov, float(side.fit.law.slow[0])
    if not walk.any():
        return still if side.starts is None else Moving(side.starts, np.inf)
    if time < np.inf:
        return Moving(walk * time / 2, time)
    start = walk * side.span / 3 if still is None else still.cov
    return Moving(start if side.starts is None else side.starts, np.inf, walk)


def _moments(pairs: Pairs, periods: tuple[float, ...]) -> Series:
    """Contexts, one for each moment: several readings of one moment are beside the same."""
    again = (np.diff(pairs.times, prepend=np.nan) == 0) & (np.diff(pairs.labels, prepend=-1) == 0)
    apart = again & (np.diff(pairs.true, axis=0, prepend=np.nan) != 0).any(axis=1)
    if apart.any():
        time = pairs.times[np.argmax(apart)]
        raise InputError("true", f"has two contexts at the time {time:g}", "one for each moment (of a group)")
    return series(pairs.true[~again], pairs.times[~again], pairs.labels[~again], periods)


def _check(pairs: Pairs, cycles: int) -> None:
    """Refuse times that go back, and fewer pairs than constants."""
    check_order(pairs.times, pairs.labels)
    same = np.diff(pairs.labels) == 0
    n, d = pairs.true.shape
    constants = d * (n - int(same.sum())) + d * (d + 1) // 2 + max(3, 2 + cycles)
    moments = int((same & (np.diff(pairs.times) > 0)).sum())
    if moments < constants:
        allowed = f"at least {constants} steps forward in time, as many as there are constants"
        raise InputError("times", f"has {moments} steps forward", allowed)


def check_order(times: Array, labels: Ints) -> None:
    """Refuse times that go back within a series."""
    back = (np.diff(labels) == 0) & (np.diff(times) < 0)
    if back.any():
        before, after = times[np.argmax(back) : np.argmax(back) + 2]
        raise InputError("times", f"{after:g} comes after {before:g}", TIMES)
