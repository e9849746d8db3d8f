"""Noise without any truth: the same context read twice or more, y_ij = c_i + bias + n_ij.

What readings of one context differ by is noise, and what their means differ by beyond it is context. With
r_i readings of context i, R in all, and means m_i of n contexts,

    Sigma_n = sum_i sum_j (y_ij - m_i)(y_ij - m_i)' / (R - n)
    Sigma_c = sum_i (m_i - m)(m_i - m)' / (n - 1) - Sigma_n mean(1 / r_i),    mu_c = m - bias,

the analysis of variance of one random effect (S. R. Searle, G. Casella and C. E. McCulloch, *Variance
Components*), unbiased for any r_i. In units of Sigma_n no eigenvalue of Sigma_c is below 1 / n.

The bias is in every reading and so in none of these differences: it is told, or taken for zero. Then contexts
are what the device reads of them on average, and of the bias is unknown what is unknown of m: `bias_cov` is
Cov(m_i) / n, besides what is told.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog import inputs
from unfog.inputs import InputError, Numbers
from unfog.maths.arrays import Array, Ints
from unfog.model import errors as standard
from unfog.model import tables
from unfog.model.between import between
from unfog.model.calibration import Calibration
from unfog.model.design import REPLICATES, Design
from unfog.model.errors import Errors

READINGS = (
    "readings (n, r, d): n contexts, each read r times; or (rows, d) with replicates=, a label for each row"
    " that says whose context it is; NaN where a value is missing"
)
FLOOR = "In some direction readings spread no more than noise does: context_cov is held at its floor there."


class Readings(NamedTuple):
    """Complete readings, and whose they are."""

    values: Array  # (R, d)
    labels: Ints  # (R,)  the context, from 0 to n - 1


def calibrate_replicates(
    noisy: npt.ArrayLike,
    replicates: npt.ArrayLike | None = None,
    bias: Numbers | None = None,
    bias_cov: Numbers | None = None,
) -> Calibration:
    """The channel from readings that repeat; a reading with a missing value is left out whole."""
    values, labels = _readings(noisy, replicates)
    d, means, sizes = values.shape[1], tables.group_means(values, labels), np.bincount(labels)
    n, away = len(means), values - means[labels]
    _check(values, away, means)
    noise = away.T @ away / (len(values) - n)
    blur = float((1 / sizes).mean())
    law = between(means, blur, noise, 1 / n)
    raw = np.atleast_2d(np.cov(means.T))
    known = np.zeros(d) if bias is None else inputs.vector("bias", bias, d)
    told = None if bias_cov is None else inputs.covariance("bias_cov", bias_cov, d)
    errs = Errors(
        np.sqrt(standard.of_mean(means) ** 2 + (0.0 if told is None else np.diag(told))),
        _law_error(Readings(away, labels), means, noise, blur),
        np.full(d, np.nan) if told is None else np.sqrt(np.diag(told)),
        standard.of_within(away, labels, noise),
    )
    seen = f"{len(values)} readings of {n} contexts, {int((sizes > 1).sum())} of them read more than once"
    notes = () if np.allclose(law, raw - noise * blur, rtol=1e-6) else (FLOOR,)
    left = raw / n if told is None else told + raw / n
    found = Calibration(means.mean(axis=0) - known, law, known, noise, left, 0, None)
    return found._replace(errors=errs, design=Design(REPLICATES, seen, notes))


def _readings(noisy: npt.ArrayLike, replicates: npt.ArrayLike | None) -> Readings:
    """All complete readings in one table."""
    if replicates is None:
        cube = tables.matrix("noisy", noisy, READINGS, ndim=3)
        values = cube.reshape(-1, cube.shape[2])
        owners = np.repeat(np.arange(len(cube)), cube.shape[1])
    else:
        values, owners = tables.matrix("noisy", noisy, READINGS), np.asarray(replicates)
    kept = np.asarray(np.isfinite(values).all(axis=1))
    allowed = f"a label for each of the {len(values)} readings: whose context it is"
    return Readings(values[kept], tables.numbered("replicates", owners, kept, allowed))


def _check(values: Array, away: Array, means: Array) -> None:
    """Refuse a study in which too little is repeated."""
    contexts, d = means.shape
    free = len(values) - contexts
    if free < d or contexts < d + 1:
        said = f"{free} readings beyond the first of their context, {contexts} contexts"
        said = "every context is read once" if free == 0 and contexts else said
        allowed = (
            f"for {d} dimensions, at least {d} readings beyond the first of their context, {d + 1} contexts;"
            " of contexts read once the noise must be told: noise_cov="
        )
        raise InputError("replicates", said, allowed)
    tables.check_varies("noisy", away, values, "is the same in all readings of a context")
    tables.check_independent("noisy", away)
    tables.check_varies("noisy", means, values, "is the same for all contexts")


def _law_error(away: Readings, means: Array, noise: Array, blur: float) -> Array:
    """Of context_cov: each context adds to what lies between, and takes off by the noise within it."""
    order = np.argsort(away.labels, kind="stable")
    sizes = np.bincount(away.labels)
    rows, starts = away.values[order], np.concatenate(([0], np.cumsum(sizes)[:-1]))
    n, free = len(means), len(rows) - len(means)
    apart, weight = means - means.mean(axis=0), blur * n / free

    def line(a: int) -> Array:
        within = np.add.reduceat(rows[:, [a]] * rows, starts) - (sizes - 1)[:, None] * noise[a]
        return np.asarray(apart[:, [a]] * apart - weight * within)

    return standard.of_matrix(line, rows.shape[1])
