"""What a channel is fitted to be, from what is told of it and from rows.

What is told stands. Of the rest, pairs of readings and true contexts say the noise, the common part of the
biases and how far biases spread (`unfog.model.calibration`); readings of several devices say how far biases
spread, since contexts are of one law for all devices (`unfog.model.between`); and readings less their noise
say the law of contexts (`moments.py`). A true context that is known stands in for its reading there.

A mean that is not told and a bias that all rows share cannot be told apart: then the bias counts as a part of
the mean, and there is none to learn.
"""

from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising import biases as devices_biases
from unfog.adapters.denoising import moments
from unfog.adapters.denoising.biases import Biases
from unfog.adapters.denoising.moments import Moments
from unfog.adapters.denoising.told import Rows, Told
from unfog.features import Context
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.model.between import between
from unfog.model.calibration import Calibration, calibrate


class Fitted(NamedTuple):
    """The channel."""

    law: Context  # of contexts
    noise: Array  # (d, d)  of a row whose noise is not told
    biases: Biases
    moments: Moments | None  # of all rows so far; None where the law of contexts stays as it is


def fit(told: Told, rows: Rows) -> Fitted:
    """From the first rows, which may be none where contexts are told."""
    dim = rows.noisy.shape[1]
    pairs = _calibrated(told, rows)
    offset = pairs.bias if pairs is not None and told.bias_cov is None else np.zeros(dim)
    noise = told.noise
    if noise is None:
        noise = np.zeros((dim, dim)) if pairs is None else pairs.noise_cov
    aware = told.noise is not None or told.bias_cov is not None or pairs is not None
    several = aware and len(rows.devices) > 1
    pools = _pools(rows, noise, offset, several)
    law = Context(
        _mean(pools, several) if told.mean is None else told.mean,
        moments.context_cov(list(pools.values())) if told.cov is None else told.cov,
    )
    shared = noise if noise.ndim == 2 else moments.noise_mean(list(pools.values()))
    spread = _spread(told, pairs, pools, law.cov + shared, several)
    known = devices_biases.unseen(offset, spread, told.walk)
    known = devices_biases.learnt(known, law, noise, rows)
    running = next(iter(pools.values())) if spread is None and len(pools) == 1 else None
    return Fitted(law, shared, known, running)


def more(fitted: Fitted, told: Told, rows: Rows) -> Fitted:
    """After more rows: biases are learnt on, or else the law of contexts is, as far as it is not told."""
    noise = fitted.noise if told.noise is None else told.noise
    if fitted.biases.prior is not None:
        return fitted._replace(biases=devices_biases.learnt(fitted.biases, fitted.law, noise, rows))
    if rows.true is not None:
        allowed = "none, unless the first fit was told bias_cov and context_mean, or had true contexts too"
        raise InputError("true", "there is no bias that they could speak of", allowed)
    if fitted.moments is None:
        return fitted
    sums = moments.plus(fitted.moments, rows.noisy, noise)
    law = Context(
        sums.mean if told.mean is None else told.mean,
        moments.context_cov([sums]) if told.cov is None else told.cov,
    )
    shared = fitted.noise if told.noise is None or told.noise.ndim == 2 else moments.noise_mean([sums])
    return Fitted(law, shared, fitted.biases, sums)


def _calibrated(told: Told, rows: Rows) -> Calibration | None:
    """What pairs say, where there are any and something is not told."""
    if rows.true is None or (told.noise is not None and told.bias_cov is not None):
        return None
    whole = np.isfinite(rows.noisy + rows.true).all(-1)
    groups = rows.of if len(set(rows.of[whole].tolist())) > 1 else None
    try:
        return calibrate(rows.noisy, rows.true, groups=groups)
    except InputError as error:
        raise InputError("X" if error.field == "noisy" else error.field, error.value, error.allowed) from None


def _pools(rows: Rows, noise: Array, offset: Array, several: bool) -> dict[int, Moments]:
    """Sums of the rows of each device, if kept apart; of those whose contexts are known, under -1."""
    best, pool = rows.noisy - offset, rows.of if several else np.zeros(len(rows.of), np.intp)
    if rows.true is not None:
        hidden = np.isnan(rows.true)
        best = np.where(hidden, best, rows.true)
        noise = noise * (hidden[:, :, None] & hidden[:, None, :])
        pool = np.where(hidden.any(-1), pool, -1)
    centre = moments.middle(best)
    if not len(pool):
        return {0: moments.summed(best, noise, centre)}
    return {
        int(i): moments.summed(best[pool == i], noise[pool == i] if noise.ndim == 3 else noise, centre)
        for i in np.unique(pool)
    }


def _mean(pools: dict[int, Moments], several: bool) -> Array:
    """Of known contexts; else of devices, each as one, however often it reads; else of all rows."""
    if several and -1 in pools:
        return pools[-1].mean
    counts = np.stack([np.diag(pool.both) for pool in pools.values()])
    means = np.stack([pool.mean for pool in pools.values()])
    weights = (counts > 0).astype(np.float64) if several else counts
    centre = next(iter(pools.values())).centre
    return centre + (weights * (means - centre)).sum(0) / np.maximum(weights.sum(0), 1)


def _spread(
    told: Told, pairs: Calibration | None, pools: dict[int, Moments], cov: Array, several: bool
) -> Array | None:
    """The covariance of biases; None where there is no bias to learn."""
    if told.walk is not None:
        return told.walk if told.bias_cov is None else told.bias_cov
    if told.bias_cov is not None:
        return told.bias_cov if several or told.mean is not None or -1 in pools else None
    if pairs is not None:
        return pairs.bias_cov
    whole = [pool for i, pool in pools.items() if i >= 0 and np.diag(pool.both).all()]
    if not several or len(whole) < 2:
        return None
    sizes = np.array([np.diag(pool.both).min() for pool in whole])
    return between(np.stack([pool.mean for pool in whole]), float((1 / sizes).mean()), cov, 1 / sizes.sum())
