"""Readings for all, the truth for some: the pairs say how they hang together, all readings how they spread.

Let w be readings and c true contexts. The likelihood falls apart into that of w, which all rows have, and
that of c given w, a line with what is left over, which the pairs have:

    c = a + B w + rest,  Cov(rest) = O  (pairs);     m = E[w],  S = Cov(w)  (all),

    mu_c = a + B m,    Sigma_c = O + B S B',    bias = m - mu_c,    Sigma_n = O + (I - B) S (I - B)',

the maximum of the likelihood of a joint Gaussian law (T. W. Anderson, *Maximum Likelihood Estimates for a
Multivariate Normal Distribution when Some Observations are Missing*), but for n - 1 in the place of n, so
that with a truth for every row it is what pairs say. It holds too where those with high readings are the ones
that were looked at again: then errors of the pairs alone are off, since a high reading is high by error too.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog.inputs import InputError
from unfog.maths.arrays import Array, Bools
from unfog.model import errors as standard
from unfog.model import tables
from unfog.model.calibration import Calibration
from unfog.model.design import SUBSET, Design
from unfog.model.errors import Errors


class Line(NamedTuple):
    """The truth as a line of the reading, and what all readings say."""

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
    readings, truth = tables.beside("noisy", noisy, true)
    seen = np.asarray(np.isfinite(readings).all(axis=1))
    readings, truth = readings[seen], truth[seen]
    known = np.asarray(np.isfinite(truth).all(axis=1))
    _check(readings, truth[known], known)
    line = _line(readings, truth[known], known)
    left = np.eye(truth.shape[1]) - line.slope
    mean = truth[known].mean(axis=0) + line.slope @ (line.mean - line.centre)
    law = line.rest_cov + line.slope @ line.cov @ line.slope.T
    noise = line.rest_cov + left @ line.cov @ left.T
    bias = line.mean - mean
    errs, bias_error = _errors(line, readings, known)
    pairs, said = int(known.sum()), f"{len(readings)} readings, {int(known.sum())} of them with the truth"
    found = Calibration(mean, law, bias, noise, np.diag(bias**2) + bias_error, pairs, None)
    return found._replace(errors=errs, design=Design(SUBSET, said))


def _check(readings: Array, truth: Array, known: Bools) -> None:
    d = readings.shape[1]
    if known.sum() < 2 * d + 2:
        allowed = f"at least {2 * d + 2} rows with the whole truth and a whole reading, for {d} dimensions"
        raise InputError("true", f"{int(known.sum())} of {len(known)} readings have a truth", allowed)
    tables.check_varies("true", truth, truth, "is constant")
    tables.check_varies("noisy", readings[known], readings[known], "is constant where the truth is known")
    tables.check_independent("true", truth)
    tables.check_independent("noisy", readings[known])


def _line(readings: Array, truth: Array, known: Bools) -> Line:
    pairs = readings[known]
    centre, n = pairs.mean(axis=0), len(pairs)
    away, moved = pairs - centre, truth - truth.mean(axis=0)
    slope = np.linalg.lstsq(away, moved, rcond=None)[0].T
    rest = moved - away @ slope.T
    tables.check_varies("noisy", rest, truth, "says the truth without noise")
    tables.check_independent("noisy", rest)
    spread = np.atleast_2d(np.cov(readings.T))
    pair_cov = away.T @ away / (n - 1)
    return Line(slope, rest, rest.T @ rest / (n - 1), centre, pair_cov, readings.mean(axis=0), spread)


def _errors(line: Line, readings: Array, known: Bools) -> tuple[Errors, Array]:
    """Standard errors, and the covariance of the estimated bias: what each row contributes."""
    n, d = readings.shape
    pairs = int(known.sum())
    away, slope = readings - line.mean, line.slope
    rest, gain = np.zeros((n, d)), np.zeros((n, d))
    # A line through few pairs leaves over less than there is; each pair stands for n / pairs rows.
    rest[known] = line.rest * np.sqrt((pairs - 1) / (pairs - d - 1))
    gain[known] = np.linalg.solve(line.pair_cov, (readings[known] - line.centre).T).T
    stands = n / pairs
    of_mean = stands * rest * (1 + gain @ (line.mean - line.centre))[:, None] + away @ slope.T
    of_bias = away - of_mean

    def error(factor: Array, sign: float) -> Array:
        """Of O + F S F': rest, the slope in F (`sign` says whether it adds), and S."""
        seen, turned = away @ factor.T, sign * gain @ line.cov @ factor.T

        def part(a: int) -> Array:
            own = rest[:, [a]] * (rest + turned) + turned[:, [a]] * rest
            own = own - known[:, None] * line.rest_cov[a]
            return np.asarray(stands * own + seen[:, [a]] * seen)

        return standard.of_matrix(part, d)

    errs = Errors(
        standard.of_mean(of_mean),
        error(slope, 1.0),
        standard.of_mean(of_bias),
        error(np.eye(d) - slope, -1.0),
    )
    return errs, np.atleast_2d(np.cov(of_bias.T)) / n
