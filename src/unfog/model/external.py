"""Noise from elsewhere, readings from here: a data sheet, a paper, a colleague's study.

The noise Sigma_n and the bias are told, with how well they are known. Own readings w then show the rest,

    mu_c = mean(w) - bias,    Sigma_c = Cov(w) - Sigma_n,

which is deconvolution by moments (W. A. Fuller, *Measurement Error Models*, section 1.2). In units of Sigma_n
no eigenvalue of Sigma_c is below 1 / n. How well the bias is known is `bias_cov`, which agents are told, so
that they go on learning it; noise they take for known, and its error shows in `errors` alone.

A covariance estimated with f degrees of freedom (from f + 1 pairs, or f + 1 readings of one thing) has
entries with standard errors sqrt((s_ii s_jj + s_ij^2) / f). Where errors of the variances alone are told, f
differs from coordinate to coordinate, and for two of them the geometric mean is taken.
"""

import numpy as np
import numpy.typing as npt

from unfog import inputs
from unfog.inputs import InputError, Numbers
from unfog.maths.arrays import Array
from unfog.model import errors as standard
from unfog.model import tables
from unfog.model.between import between
from unfog.model.calibration import Calibration
from unfog.model.design import EXTERNAL, Design
from unfog.model.errors import Errors
from unfog.model.replicates import FLOOR

READINGS = "a matrix (n, d) of noisy readings, NaN where a value is missing"
NEEDS = (
    "noise_cov with noise_df (its degrees of freedom) or noise_error (standard errors; 0: known exactly),"
    " and bias_cov (how well the bias is known), with bias unless it is zero"
)
BEYOND = 4.0  # standard errors by which noise told is larger than all spread there is, and is refused


def calibrate_external(
    noisy: npt.ArrayLike,
    noise_cov: Numbers | None,
    noise_df: float | None = None,
    noise_error: Numbers | None = None,
    bias: Numbers | None = None,
    bias_cov: Numbers | None = None,
) -> Calibration:
    """The law of contexts from readings whose noise is told; an incomplete reading is left out whole."""
    table = tables.matrix("noisy", noisy, READINGS)
    values = table[np.isfinite(table).all(axis=1)]
    _check(values)
    n, d = values.shape
    noise, error = _told_noise(d, noise_cov, noise_df, noise_error)
    if bias_cov is None:
        raise InputError("bias_cov", None, f"with a noise from elsewhere, {NEEDS}")
    known, spread = inputs.vector("bias", 0.0 if bias is None else bias, d), np.atleast_2d(np.cov(values.T))
    unsure = inputs.covariance("bias_cov", bias_cov, d)
    seen = standard.of_covariance(values)
    _check_room(spread, seen, noise, error)
    law = between(values, 1.0, noise, 1 / n)
    mean_error = np.sqrt(standard.of_mean(values) ** 2 + np.diag(unsure))
    errs = Errors(mean_error, np.hypot(seen, error), np.sqrt(np.diag(unsure)), error)
    notes = () if np.allclose(law, spread - noise, rtol=1e-6) else (FLOOR,)
    found = Calibration(values.mean(axis=0) - known, law, known, noise, unsure, 0, None)
    return found._replace(errors=errs, design=Design(EXTERNAL, f"{n} readings", notes))


def _check(values: Array) -> None:
    n, d = values.shape
    if n < d + 1:
        raise InputError("noisy", f"{n} readings are complete", f"at least {d + 1}, for {d} dimensions")
    tables.check_varies("noisy", values, values, "is constant")
    tables.check_independent("noisy", values)


def _told_noise(
    d: int, noise_cov: Numbers | None, noise_df: float | None, noise_error: Numbers | None
) -> tuple[Array, Array]:
    """The noise and the standard errors of its entries."""
    if noise_cov is None:
        raise InputError("noise_cov", None, NEEDS)
    if (noise_df is None) == (noise_error is None):
        said = "neither it nor noise_df is given" if noise_df is None else "it and noise_df are both given"
        raise InputError("noise_error", said, f"one of the two: {NEEDS}")
    noise = inputs.covariance("noise_cov", noise_cov, d)
    if noise_df is not None:
        return noise, standard.of_wishart(noise, inputs.positive("noise_df", noise_df))
    allowed = f"standard errors, none negative: one, {d} for the variances, or {d} x {d} for all entries"
    given = inputs.numbers("noise_error", noise_error, allowed)
    if (given < 0).any() or given.shape not in ((), (d,), (d, d)):
        raise InputError("noise_error", noise_error, allowed)
    if given.ndim == 2:
        return noise, given
    share = np.sqrt(np.broadcast_to(given, (d,)) / np.diag(noise) / np.sqrt(2))
    return noise, standard.of_wishart(noise, 1.0) * share[:, None] * share


def _check_room(spread: Array, spread_error: Array, noise: Array, error: Array) -> None:
    """Refuse noise that by far exceeds the whole spread of the readings: ratios, since both are variances."""
    seen, told = np.diag(spread), np.diag(noise)
    unsure = np.hypot(np.diag(spread_error) / seen, np.diag(error) / told)
    short = np.log(told / seen) > BEYOND * unsure
    if short.any():
        where = int(np.argmax(short))
        said = f"the variance of coordinate {where} is larger than that of the readings themselves"
        raise InputError("noise_cov", said, "the noise of these readings, in their units")
