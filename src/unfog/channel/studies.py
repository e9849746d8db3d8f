"""Calibration studies: which of four designs a caller has, and the estimator for it.

    pairs       noisy and true contexts, side by side (channel/calibration.py)
    replicates  the same context read twice or more, no truth
    subset      readings for all, the truth for some
    external    readings, and a noise from elsewhere

Arguments that belong to another design are refused by name, never ignored: whoever gives them expects them to
be used.

Replicates show the noise without any truth, y_ij = c_i + bias + n_ij. What readings of one context differ
by is noise, and what their means differ by beyond it is context. With r_i readings of context i, R in all,
and means m_i of n contexts,

    Sigma_n = sum_i sum_j (y_ij - m_i)(y_ij - m_i)' / (R - n)
    Sigma_c = sum_i (m_i - m)(m_i - m)' / (n - 1) - Sigma_n mean(1 / r_i),    mu_c = m - bias,

the analysis of variance of one random effect (S. R. Searle, G. Casella and C. E. McCulloch, *Variance
Components*), unbiased for any r_i. In units of Sigma_n no eigenvalue of Sigma_c is below 1 / n.

The bias is in every reading and so in none of these differences: the caller gives it, or it is assumed to be
zero. Contexts are then what the device reads on average, and the bias is as uncertain as m: `bias_cov` is
Cov(m_i) / n, plus what the caller gives.

In a subset study the pairs show how readings and truth are related, all readings how they spread. Let w be
readings and c true contexts. The likelihood factorises into that of w, which all rows have, and that of c
given w, a line with what is left over, which the pairs have:

    c = a + B w + rest,  Cov(rest) = O  (pairs);     m = E[w],  S = Cov(w)  (all),

    mu_c = a + B m,    Sigma_c = O + B S B',    bias = m - mu_c,    Sigma_n = O + (I - B) S (I - B)',

the maximum of the likelihood of a joint Gaussian law (T. W. Anderson, *Maximum Likelihood Estimates for a
Multivariate Normal Distribution when Some Observations are Missing*), but for n - 1 in the place of n, so
that with a truth for every row it agrees with the design of pairs. It also holds if rows were chosen for
their high readings: the errors of the pairs alone would then be biased, since a high reading is partly high
by error.

In an external study the caller gives the noise Sigma_n and the bias, with their uncertainty: from a data
sheet, a paper, a colleague's study. The readings w then show the rest,

    mu_c = mean(w) - bias,    Sigma_c = Cov(w) - Sigma_n,

which is deconvolution by moments (W. A. Fuller, *Measurement Error Models*, section 1.2). In units of Sigma_n
no eigenvalue of Sigma_c is below 1 / n. The uncertainty of the bias is `bias_cov`, which agents are given, so
that they go on learning it; they take the noise for known, and its error is in `errors` alone. A covariance
estimated with f degrees of freedom (from f + 1 pairs, or f + 1 readings of one thing) has entries with
standard errors sqrt((s_ii s_jj + s_ij^2) / f). If only errors of the variances are given, f differs from
coordinate to coordinate, and two of them use their geometric mean.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog import validation
from unfog._table import labels, matrix
from unfog.channel import moments
from unfog.channel.calibration import Calibration, calibrate
from unfog.channel.moments import (
    DESIGNS,
    EXTERNAL,
    PAIRS,
    REPLICATES,
    SUBSET,
    Design,
    Errors,
    between_covariance,
)
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.statistics import standard_error
from unfog.validation import InputError, Numbers, one_of

TAKES = {
    PAIRS: ("groups", "times", "cycles"),
    REPLICATES: ("replicates", "bias", "bias_cov"),
    SUBSET: (),
    EXTERNAL: ("noise_cov", "noise_df", "noise_error", "bias", "bias_cov"),
}
NEEDS = {
    PAIRS: "noisy and true contexts side by side",
    REPLICATES: "readings of the same context, twice or more, and no truth",
    SUBSET: "readings for all and, in true, the truth for some, NaN elsewhere",
    EXTERNAL: "readings and noise_cov, noise_df or noise_error, and bias_cov, and no truth",
}
REPEATED_READINGS = (
    "readings (n, r, d): n contexts, each read r times; or (rows, d) with replicates=, a label for each row"
    " that says whose context it is; NaN where a value is missing"
)
SINGLE_READINGS = "a matrix (n, d) of noisy readings, NaN where a value is missing"
EXTERNAL_NEEDS = (
    "noise_cov with noise_df (its degrees of freedom) or noise_error (standard errors; 0: known exactly),"
    " and bias_cov (how well the bias is known), with bias unless it is zero"
)
FLOOR = "In some direction readings spread no more than noise does: context_cov is held at its floor there."
BEYOND = 4.0  # standard errors: noise that exceeds the whole spread of readings by more is refused


class Asked(NamedTuple):
    """What a caller gives besides readings and truth."""

    groups: npt.ArrayLike | None = None
    times: npt.ArrayLike | None = None
    cycles: Sequence[float] | Array | None = None
    replicates: npt.ArrayLike | None = None
    noise_cov: Numbers | None = None
    noise_df: float | None = None
    noise_error: Numbers | None = None
    bias: Numbers | None = None
    bias_cov: Numbers | None = None


def study(
    noisy: npt.ArrayLike, true: npt.ArrayLike | None, design: str | None, options: Asked
) -> Calibration:
    """Estimate the channel from a study of this design."""
    name = _find_design(noisy, true, options) if design is None else one_of("design", design, DESIGNS)
    _check_options(name, true, options)
    arguments = {field: options._asdict()[field] for field in TAKES[name]}
    if name == REPLICATES:
        return calibrate_replicates(noisy, **arguments)
    if name == EXTERNAL:
        return calibrate_external(noisy, **arguments)
    assert true is not None  # refused above
    if name == SUBSET:
        return calibrate_subset(noisy, true)
    cycles = () if options.cycles is None else options.cycles
    return calibrate(noisy, true, groups=options.groups, times=options.times, cycles=cycles)


def _find_design(noisy: npt.ArrayLike, true: npt.ArrayLike | None, options: Asked) -> str:
    """The design that fits the arguments."""
    if true is not None:
        return PAIRS
    if options.noise_cov is not None:
        return EXTERNAL
    if options.replicates is not None or _rank(noisy) == 3:
        return REPLICATES
    allowed = "; ".join(f"{name}: {NEEDS[name]}" for name in DESIGNS)
    raise InputError("true", "readings alone do not show their noise", allowed)


def _rank(noisy: npt.ArrayLike) -> int:
    try:
        return np.ndim(noisy)
    except ValueError:  # ragged: the estimator says so
        return 0


def _check_options(name: str, true: npt.ArrayLike | None, options: Asked) -> None:
    """Raise InputError for arguments that this design does not take, or a truth it lacks or cannot use."""
    for field, value in options._asdict().items():
        if value is not None and field not in TAKES[name]:
            takes = f"; it takes {', '.join(TAKES[name])}" if TAKES[name] else ""
            allowed = f"nothing for a study of design {name}, which is {NEEDS[name]}{takes}"
            raise InputError(field, "is given", allowed)
    if name in (PAIRS, SUBSET) and true is None:
        raise InputError("true", None, f"true contexts: design {name} is {NEEDS[name]}")
    if name in (REPLICATES, EXTERNAL) and true is not None:
        raise InputError("true", "is given", f"nothing: design {name} is {NEEDS[name]}")


class Readings(NamedTuple):
    """Complete readings, and the context that each belongs to."""

    values: Array  # (R, d)
    labels: Ints  # (R,)  the context, from 0 to n - 1


def calibrate_replicates(
    noisy: npt.ArrayLike,
    replicates: npt.ArrayLike | None = None,
    bias: Numbers | None = None,
    bias_cov: Numbers | None = None,
) -> Calibration:
    """The channel from readings that repeat; a reading with a missing value is left out whole."""
    values, labels = _read_readings(noisy, replicates)
    d, means, sizes = values.shape[1], moments.group_means(values, labels), np.bincount(labels)
    n, deviations = len(means), values - means[labels]
    _check_replicates(values, deviations, means)
    noise = deviations.T @ deviations / (len(values) - n)
    blur = float((1 / sizes).mean())
    law = between_covariance(means, blur, noise, 1 / n)
    raw = np.atleast_2d(np.cov(means.T))
    known = np.zeros(d) if bias is None else validation.vector("bias", bias, d)
    prior_cov = None if bias_cov is None else validation.covariance("bias_cov", bias_cov, d)
    errs = Errors(
        np.sqrt(standard_error(means) ** 2 + (0.0 if prior_cov is None else np.diag(prior_cov))),
        _law_error(Readings(deviations, labels), means, noise, blur),
        np.full(d, np.nan) if prior_cov is None else np.sqrt(np.diag(prior_cov)),
        moments.within_error(deviations, labels, noise),
    )
    used = f"{len(values)} readings of {n} contexts, {int((sizes > 1).sum())} of them read more than once"
    notes = () if np.allclose(law, raw - noise * blur, rtol=1e-6) else (FLOOR,)
    total_cov = raw / n if prior_cov is None else prior_cov + raw / n
    calibration = Calibration(means.mean(axis=0) - known, law, known, noise, total_cov, 0, None)
    return calibration._replace(errors=errs, design=Design(REPLICATES, used, notes))


def _read_readings(noisy: npt.ArrayLike, replicates: npt.ArrayLike | None) -> Readings:
    """All complete readings in one table, with the context that each belongs to."""
    if replicates is None:
        cube = matrix("noisy", noisy, REPEATED_READINGS, ndim=3)
        values = cube.reshape(-1, cube.shape[2])
        owners: npt.ArrayLike = np.repeat(np.arange(len(cube)), cube.shape[1])
    else:
        values, owners = matrix("noisy", noisy, REPEATED_READINGS), replicates
    complete = np.asarray(np.isfinite(values).all(axis=1))
    allowed = f"a label for each of the {len(values)} readings: whose context it is"
    return Readings(values[complete], labels("replicates", owners, complete, allowed)[1])


def _check_replicates(values: Array, deviations: Array, means: Array) -> None:
    """Raise InputError if too few readings are repeated."""
    contexts, d = means.shape
    free = len(values) - contexts
    if free < d or contexts < d + 1:
        actual = f"{free} readings beyond the first of their context, {contexts} contexts"
        actual = "every context is read once" if free == 0 and contexts else actual
        allowed = (
            f"for {d} dimensions, at least {d} readings beyond the first of their context, {d + 1} contexts;"
            " of contexts read once the noise must be told: noise_cov="
        )
        raise InputError("replicates", actual, allowed)
    moments.check_varies("noisy", deviations, values, "is the same in all readings of a context")
    moments.check_independent("noisy", deviations)
    moments.check_varies("noisy", means, values, "is the same for all contexts")


def _law_error(deviations: Readings, means: Array, noise: Array, blur: float) -> Array:
    """Standard errors of context_cov, from what each context contributes between and within contexts."""
    order = np.argsort(deviations.labels, kind="stable")
    sizes = np.bincount(deviations.labels)
    rows, starts = deviations.values[order], np.concatenate(([0], np.cumsum(sizes)[:-1]))
    n, free = len(means), len(rows) - len(means)
    centred, weight = means - means.mean(axis=0), blur * n / free

    def line(a: int) -> Array:
        within = np.add.reduceat(rows[:, [a]] * rows, starts) - (sizes - 1)[:, None] * noise[a]
        return np.asarray(centred[:, [a]] * centred - weight * within)

    return moments.matrix_error(line, rows.shape[1])


class Line(NamedTuple):
    """The regression of the truth on readings, and the moments of all readings."""

    slope: Array  # (d, d)  B
    rest: Array  # (p, d)  of the pairs
    rest_cov: Array  # (d, d)  O
    centre: Array  # (d,)  mean reading of the pairs
    pair_cov: Array  # (d, d)  of the readings of the pairs
    mean: Array  # (d,)  m
    cov: Array  # (d, d)  S


def calibrate_subset(noisy: npt.ArrayLike, true: npt.ArrayLike) -> Calibration:
    """The channel from rows that all have readings (n, d) and some a truth, NaN in the place of others.

    A row whose truth lacks a coordinate counts as one without truth; one whose reading does is left out.
    """
    readings, truth = moments.beside("noisy", noisy, true)
    is_complete = np.asarray(np.isfinite(readings).all(axis=1))
    readings, truth = readings[is_complete], truth[is_complete]
    known = np.asarray(np.isfinite(truth).all(axis=1))
    _check_subset(readings, truth[known], known)
    line = _fit_line(readings, truth[known], known)
    complement = np.eye(truth.shape[1]) - line.slope
    mean = truth[known].mean(axis=0) + line.slope @ (line.mean - line.centre)
    law = line.rest_cov + line.slope @ line.cov @ line.slope.T
    noise = line.rest_cov + complement @ line.cov @ complement.T
    bias = line.mean - mean
    errs, bias_error = _errors(line, readings, known)
    pairs, used = int(known.sum()), f"{len(readings)} readings, {int(known.sum())} of them with the truth"
    calibration = Calibration(mean, law, bias, noise, np.diag(bias**2) + bias_error, pairs, None)
    return calibration._replace(errors=errs, design=Design(SUBSET, used))


def _check_subset(readings: Array, truth: Array, known: Bools) -> None:
    d = readings.shape[1]
    if known.sum() < 2 * d + 2:
        allowed = f"at least {2 * d + 2} rows with the whole truth and a whole reading, for {d} dimensions"
        raise InputError("true", f"{int(known.sum())} of {len(known)} readings have a truth", allowed)
    moments.check_varies("true", truth, truth, "is constant")
    moments.check_varies("noisy", readings[known], readings[known], "is constant where the truth is known")
    moments.check_independent("true", truth)
    moments.check_independent("noisy", readings[known])


def _fit_line(readings: Array, truth: Array, known: Bools) -> Line:
    pairs = readings[known]
    centre, n = pairs.mean(axis=0), len(pairs)
    centred, truth_centred = pairs - centre, truth - truth.mean(axis=0)
    slope = np.linalg.lstsq(centred, truth_centred, rcond=None)[0].T
    rest = truth_centred - centred @ slope.T
    moments.check_varies("noisy", rest, truth, "says the truth without noise")
    moments.check_independent("noisy", rest)
    spread = np.atleast_2d(np.cov(readings.T))
    pair_cov = centred.T @ centred / (n - 1)
    return Line(slope, rest, rest.T @ rest / (n - 1), centre, pair_cov, readings.mean(axis=0), spread)


def _errors(line: Line, readings: Array, known: Bools) -> tuple[Errors, Array]:
    """Standard errors, and the covariance of the estimated bias: what each row contributes."""
    n, d = readings.shape
    pairs = int(known.sum())
    centred, slope = readings - line.mean, line.slope
    rest, gain = np.zeros((n, d)), np.zeros((n, d))
    # The residuals of a line through few pairs are too small; each pair stands for n / pairs rows.
    rest[known] = line.rest * np.sqrt((pairs - 1) / (pairs - d - 1))
    gain[known] = np.linalg.solve(line.pair_cov, (readings[known] - line.centre).T).T
    stands = n / pairs
    of_mean = stands * rest * (1 + gain @ (line.mean - line.centre))[:, None] + centred @ slope.T
    of_bias = centred - of_mean

    def error(factor: Array, sign: float) -> Array:
        """Standard errors of O + F S F', with the slope in F entering by `sign`."""
        centred_factor, slope_part = centred @ factor.T, sign * gain @ line.cov @ factor.T

        def part(a: int) -> Array:
            own = rest[:, [a]] * (rest + slope_part) + slope_part[:, [a]] * rest
            own = own - known[:, None] * line.rest_cov[a]
            return np.asarray(stands * own + centred_factor[:, [a]] * centred_factor)

        return moments.matrix_error(part, d)

    errs = Errors(
        standard_error(of_mean),
        error(slope, 1.0),
        standard_error(of_bias),
        error(np.eye(d) - slope, -1.0),
    )
    return errs, np.atleast_2d(np.cov(of_bias.T)) / n


def calibrate_external(
    noisy: npt.ArrayLike,
    noise_cov: Numbers | None,
    noise_df: float | None = None,
    noise_error: Numbers | None = None,
    bias: Numbers | None = None,
    bias_cov: Numbers | None = None,
) -> Calibration:
    """The law of contexts from readings with a given noise; an incomplete reading is left out whole."""
    table = matrix("noisy", noisy, SINGLE_READINGS)
    values = table[np.isfinite(table).all(axis=1)]
    _check_external(values)
    n, d = values.shape
    noise, error = _read_noise(d, noise_cov, noise_df, noise_error)
    if bias_cov is None:
        raise InputError("bias_cov", None, f"with a noise from elsewhere, {EXTERNAL_NEEDS}")
    known, spread = (
        validation.vector("bias", 0.0 if bias is None else bias, d),
        np.atleast_2d(np.cov(values.T)),
    )
    unsure = validation.covariance("bias_cov", bias_cov, d)
    spread_error = moments.covariance_error(values)
    _check_room(spread, spread_error, noise, error)
    law = between_covariance(values, 1.0, noise, 1 / n)
    mean_error = np.sqrt(standard_error(values) ** 2 + np.diag(unsure))
    errs = Errors(mean_error, np.hypot(spread_error, error), np.sqrt(np.diag(unsure)), error)
    notes = () if np.allclose(law, spread - noise, rtol=1e-6) else (FLOOR,)
    calibration = Calibration(values.mean(axis=0) - known, law, known, noise, unsure, 0, None)
    return calibration._replace(errors=errs, design=Design(EXTERNAL, f"{n} readings", notes))


def _check_external(values: Array) -> None:
    n, d = values.shape
    if n < d + 1:
        raise InputError("noisy", f"{n} readings are complete", f"at least {d + 1}, for {d} dimensions")
    moments.check_varies("noisy", values, values, "is constant")
    moments.check_independent("noisy", values)


def _read_noise(
    d: int, noise_cov: Numbers | None, noise_df: float | None, noise_error: Numbers | None
) -> tuple[Array, Array]:
    """The noise and the standard errors of its entries."""
    if noise_cov is None:
        raise InputError("noise_cov", None, EXTERNAL_NEEDS)
    if (noise_df is None) == (noise_error is None):
        actual = "neither it nor noise_df is given" if noise_df is None else "it and noise_df are both given"
        raise InputError("noise_error", actual, f"one of the two: {EXTERNAL_NEEDS}")
    noise = validation.covariance("noise_cov", noise_cov, d)
    if noise_df is not None:
        return noise, moments.wishart_error(noise, validation.positive("noise_df", noise_df))
    allowed = f"standard errors, none negative: one, {d} for the variances, or {d} x {d} for all entries"
    values = validation.numbers("noise_error", noise_error, allowed)
    if (values < 0).any() or values.shape not in ((), (d,), (d, d)):
        raise InputError("noise_error", noise_error, allowed)
    if values.ndim == 2:
        return noise, values
    share = np.sqrt(np.broadcast_to(values, (d,)) / np.diag(noise) / np.sqrt(2))
    return noise, moments.wishart_error(noise, 1.0) * share[:, None] * share


def _check_room(spread: Array, spread_error: Array, noise: Array, error: Array) -> None:
    """Raise InputError if the noise clearly exceeds the spread of the readings, by the ratio of variances."""
    reading_var, noise_var = np.diag(spread), np.diag(noise)
    error_of_ratio = np.hypot(np.diag(spread_error) / reading_var, np.diag(error) / noise_var)
    short = np.log(noise_var / reading_var) > BEYOND * error_of_ratio
    if short.any():
        worst = int(np.argmax(short))
        actual = f"the variance of coordinate {worst} is larger than that of the readings themselves"
        raise InputError("noise_cov", actual, "the noise of these readings, in their units")
