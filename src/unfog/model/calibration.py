"""What pairs of noisy and true contexts say of a channel: chat = c + gamma + n, as `Knowledge` wants it.

With errors e = noisy - true, and groups g (weeks, devices, sites) each with a bias of its own,

    Sigma_n     = sum_g sum_i (e_gi - mean_g)(e_gi - mean_g)' / (n - G)
    bias        = the mean over groups of mean_g
    Sigma_gamma = sum_g (mean_g - bias)(mean_g - bias)' / (G - 1) - Sigma_n * mean(1 / n_g)

the random-effects estimator by moments (S. R. Searle, G. Casella, C. E. McCulloch, *Variance Components*),
unbiased for any sizes n_g. mu_c and Sigma_c are the sample moments of the true contexts.

Sensors often read in units of their own. Then `affine` comes first: it regresses readings on true contexts,
raw = gain c + offset + e, the direction in which the error is the sensor's, and turns the line around. The
opposite regression shrinks readings towards the mean, which is the denoiser's task, and would do it twice.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.inputs import LARGEST, InputError
from unfog.maths.arrays import Array, Ints
from unfog.model.between import between
from unfog.model.channel import Channel
from unfog.model.constants import Constant
from unfog.model.seldom import Covs, Rows, seldom
from unfog.model.tempo import Tempo
from unfog.model.timing import Pairs, Timing, check_periods, check_times, timing

SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix that is not taken for zero
PAIRS = "two matrices (n, d) of numbers of the same shape; NaN where a value is missing"


class Calibration(NamedTuple):
    """The channel, and the law of the contexts."""

    context_mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    bias: Array  # (d,)    mean error, to be subtracted from noisy contexts: priors of a bias are centred
    noise_cov: Array  # (d, d)  Sigma_n
    bias_cov: Array  # (d, d)  Sigma_gamma
    pairs: int  # used
    contexts: Array  # (n, d)  their true contexts: the law of contexts as it is, not by its moments alone
    timing: Timing | None = None  # constants of time, where times are given, and checks of them

    @property
    def channel(self) -> Channel:
        """All of it that a live problem wants to know."""
        laws = self.context_mean, self.context_cov, self.noise_cov, self.bias_cov
        return Channel(*laws, self.bias, sample=self.contexts, tempo=self.tempo)

    @property
    def tempo(self) -> Tempo | None:
        """How contexts and errors move in time; None without times."""
        return None if self.timing is None else self.timing.tempo

    @property
    def constants(self) -> dict[str, Constant] | None:
        """The numbers of that, with standard errors and limits; None without times."""
        return None if self.timing is None else self.timing.constants


class Affine(NamedTuple):
    """Sensor readings as lines of the true contexts, coordinate by coordinate."""

    gain: Array  # (d,)
    offset: Array  # (d,)

    def contexts(self, raw: Array) -> Array:
        """Readings (..., d) in the units of the contexts."""
        return (raw - self.offset) / self.gain


def calibrate(
    noisy: npt.ArrayLike,
    true: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    times: npt.ArrayLike | None = None,
    cycles: tuple[float, ...] = (),
) -> Calibration:
    """Estimate a channel from pairs: noisy and true contexts, (n, d) each, in the same units.

    A pair with a missing value (NaN, or masked) is left out whole, so every estimate is of the same pairs
    and every covariance is one. That is unbiased where values are missing at random.

    `groups` are n labels; pairs of equal label share a bias. They are what shows how far biases spread:
    `bias_cov` is then the covariance between groups, at least noise_cov / n, which is as well as any bias
    can be seen. Groups fewer than d + 1 leave some directions at that floor. Without groups there is one
    bias and nothing to compare it with: `bias_cov` is diag(bias^2) + noise_cov / n, the spread of which that
    one bias would be typical, in whichever direction.

    `times`, n numbers of any unit, say when: then `timing` has the constants of time (`unfog.model.timing`),
    with `cycles` of these periods if asked for. Groups are then devices or persons, and in none of them times
    go back. Where noisy contexts without a true one are more than the pairs, both are used (unless there are
    cycles).
    """
    rows = _complete("noisy", noisy, true)
    if times is None and cycles:
        raise InputError("cycles", cycles, "none without times")
    found = _moments(rows, _labels(groups, rows.kept))
    if times is None:
        return found
    all_noisy, all_true = _matrix("noisy", noisy), _matrix("true", true)
    seen = np.asarray(np.isfinite(all_noisy).all(axis=1))
    periods = check_periods(cycles)
    alone = int((seen & ~rows.kept).sum())
    few = alone > found.pairs and not periods
    used = seen if few else rows.kept
    when, labels = check_times(times, used), _labels(groups, used)
    if few:
        covs = Covs(found.context_cov, found.noise_cov, found.bias_cov)
        return found._replace(timing=seldom(Rows(all_noisy[used], all_true[used], when, labels), covs))
    pairs = Pairs(rows.true, rows.other - rows.true, when, labels)
    fitted = timing(pairs, periods, found.bias_cov)
    if alone > found.pairs:
        note = f"{alone} noisy contexts without a true one are not used, since cycles are asked for"
        fitted = fitted._replace(notes=(*fitted.notes, note))
    return found._replace(timing=fitted)


def _moments(rows: "_Rows", labels: Ints) -> Calibration:
    contexts, errors = rows.true, rows.other - rows.true
    n, _ = errors.shape
    means = np.stack([np.bincount(labels, column) for column in errors.T], 1) / np.bincount(labels)[:, None]
    _check_count("noisy", errors, len(means))
    _check_varies("true", contexts, contexts, "is constant")
    within = errors - means[labels]
    _check_varies("noisy", within, rows.other, "is apart from true by a constant")
    _check_independent("true", contexts)
    _check_independent("noisy", within)
    noise_cov = within.T @ within / (n - len(means))
    bias = means.mean(axis=0)
    spread = np.diag(bias**2) + noise_cov / n
    if len(means) > 1:
        spread = between(means, float((1 / np.bincount(labels)).mean()), noise_cov, 1 / n)
    context_cov = np.atleast_2d(np.cov(contexts.T))
    return Calibration(contexts.mean(axis=0), context_cov, bias, noise_cov, _symmetric(spread), n, contexts)


def affine(raw: npt.ArrayLike, true: npt.ArrayLike) -> Affine:
    """The line of each sensor (n, d) over the true context beside it (n, d), by least squares."""
    rows = _complete("raw", raw, true)
    _check_varies("true", rows.true, rows.true, "is constant")
    _check_varies("raw", rows.other, rows.other, "is constant")
    centre = rows.true.mean(axis=0)
    shifted = rows.true - centre
    gain = (shifted * rows.other).sum(axis=0) / (shifted**2).sum(axis=0)
    return Affine(gain, rows.other.mean(axis=0) - gain * centre)


class _Rows(NamedTuple):
    other: Array  # (n, d)
    true: Array  # (n, d)
    kept: npt.NDArray[np.bool_]  # which of the rows given these are


def _complete(field: str, other: npt.ArrayLike, true: npt.ArrayLike) -> _Rows:
    """Both matrices without the rows that lack a value."""
    first, second = _matrix(field, other), _matrix("true", true)
    if first.shape != second.shape:
        raise InputError(field, f"has shape {first.shape} and true {second.shape}", PAIRS)
    kept = np.asarray(np.isfinite(first + second).all(axis=1))
    _check_count(field, first[kept], 1)
    return _Rows(first[kept], second[kept], kept)


def _check_count(field: str, pairs: Array, groups: int) -> None:
    n, d = pairs.shape
    if n < d + groups:
        more = f" and {groups} groups" if groups > 1 else ""
        allowed = f"at least {d + groups} pairs without a missing value, for {d} dimensions{more}"
        raise InputError(field, f"{n} pairs are complete", allowed)


def _matrix(field: str, value: npt.ArrayLike) -> Array:
    """A matrix of floats, NaN where a value is missing or masked."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InputError(field, "is ragged", PAIRS) from None
    if raw.dtype.kind not in "iuf":
        raise InputError(field, f"is made of {raw.dtype}, not of numbers", PAIRS)
    if raw.ndim != 2 or 0 in raw.shape:
        raise InputError(field, f"has shape {raw.shape}", PAIRS)
    matrix = raw.astype(np.float64)
    if isinstance(value, np.ma.MaskedArray):
        matrix = np.where(np.ma.getmaskarray(value), np.nan, matrix)
    if (np.abs(matrix) > LARGEST).any():
        where = tuple(int(i) for i in np.argwhere(np.abs(matrix) > LARGEST)[0])
        raise InputError(field, f"row {where[0]}, column {where[1]} is {matrix[where]:g}", PAIRS)
    return matrix


def _labels(groups: npt.ArrayLike | None, kept: npt.NDArray[np.bool_]) -> Ints:
    """Groups of the pairs that are kept, numbered from 0."""
    if groups is None:
        return np.zeros(int(kept.sum()), np.intp)
    given = np.asarray(groups)
    if given.dtype.kind == "O" and all(isinstance(label, str) for label in given.flat):
        given = given.astype(str)
    allowed = f"a label for each of the {len(kept)} pairs, two different ones or more among the complete"
    if given.shape != kept.shape:
        raise InputError("groups", f"has shape {given.shape}", allowed)
    if given.dtype.kind not in "iufUMb" or (given[kept] != given[kept]).any():  # NaN is not equal to itself
        raise InputError("groups", "has a label that is missing, or neither number nor text", allowed)
    names, labels = np.unique(given[kept], return_inverse=True)
    if len(names) < 2:
        raise InputError("groups", f"{len(names)} group with complete pairs", allowed)
    return labels


def _check_varies(field: str, values: Array, before: Array, constant: str) -> None:
    """Refuse a column without spread; rounding of what it was made from leaves a trace of one."""
    flat = np.ptp(values, axis=0) <= 1e-14 * np.abs(before).max(axis=0)
    if flat.any():
        raise InputError(field, f"column {int(np.argmax(flat))} {constant}", "columns that vary")


def _check_independent(field: str, values: Array) -> None:
    """Refuse columns whose covariance would be singular."""
    shifted = values - values.mean(axis=0)
    scaled = shifted / np.sqrt((shifted**2).mean(axis=0))
    if np.linalg.eigvalsh(scaled.T @ scaled / len(values))[0] < SINGULAR:
        problem = "columns hang together: one follows from the others"
        raise InputError(field, problem, "columns that vary on their own")


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
