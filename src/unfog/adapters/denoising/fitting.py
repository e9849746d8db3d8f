"""What a channel is fitted to be, from what is told of it and from rows.

What is told stands. The rest is found from sums over all rows so far (`kept.py`): covariances first
(`covariances.py`), then the mean of contexts and the biases of devices together (`joint.py`). So rows in
pieces come to what all rows at once come to. Where the law of contexts, the noise and how far biases spread
are all told, there is only a bias to learn, row by row, and no sum is kept; so is a bias that walks.

A mean that is not told and a bias that all rows share cannot be told apart: then the bias counts as a part of
the mean, and there is none to learn.
"""

from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising import biases as devices_biases
from unfog.adapters.denoising.biases import Biases
from unfog.adapters.denoising.covariances import covariances, merged, said_of, spread
from unfog.adapters.denoising.joint import doubted, solved
from unfog.adapters.denoising.kept import Kept, kept
from unfog.adapters.denoising.told import Rows, Told
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.validation import InputError


class Noises(NamedTuple):
    """Sums of the noises that were told row by row."""

    both: Array  # (d, d)  rows that have both coordinates
    total: Array  # (d, d)


class Fitted(NamedTuple):
    """The channel."""

    law: Context  # of contexts
    noise: Array  # (d, d)  of a row whose noise is not told
    biases: Biases
    kept: Kept | None = None  # of all rows so far; None where the law of contexts and the noise stand
    noises: Noises | None = None  # where these alone say what the noise of a row is like


def fit(told: Told, rows: Rows, noise: Array | None) -> Fitted:
    """From the first rows, which may be none where contexts are told; `noise` is what is told of these."""
    if told.settled(noise):
        return _first(told, rows, noise)
    sums = kept(None, rows, noise)
    found = _found(told, sums, rows)
    if told.walk is None:
        return found
    # A bias that walks is followed through the rows in their order, with the law that they have in common.
    spread = told.walk if told.bias_cov is None else told.bias_cov
    walks = devices_biases.unseen(_known(told), spread, told.walk)
    learnt = devices_biases.learnt(walks, found.law, found.noise if noise is None else noise, rows)
    return Fitted(found.law, found.noise, learnt)


def more(fitted: Fitted, told: Told, rows: Rows, noise: Array | None) -> Fitted:
    """After more rows."""
    if fitted.kept is not None:
        return _found(told, kept(fitted.kept, rows, noise), rows)
    used = fitted.noise if noise is None else noise
    learnt = devices_biases.learnt(fitted.biases, fitted.law, used, rows)
    if noise is None or fitted.noises is None:
        return fitted._replace(biases=learnt)
    noises = Noises(*(old + new for old, new in zip(fitted.noises, _noises(rows, noise), strict=True)))
    return Fitted(fitted.law, noises.total / np.maximum(noises.both, 1), learnt, None, noises)


def _first(told: Told, rows: Rows, noise: Array | None) -> Fitted:
    """Where a bias is all that there is to learn."""
    law, noises, shared = told.law, None, told.noise
    if shared is None:
        noises = _noises(rows, np.zeros_like(law.cov) if noise is None else noise)
        shared = noises.total / np.maximum(noises.both, 1)
    unseen = devices_biases.unseen(_known(told), told.bias_cov, told.walk)
    learnt = devices_biases.learnt(unseen, law, shared if noise is None else noise, rows)
    return Fitted(law, shared, learnt, None, noises)


def _noises(rows: Rows, noise: Array) -> Noises:
    seen = (~np.isnan(rows.noisy)).astype(np.float64)
    count = seen.T @ seen
    return Noises(count, noise * count if noise.ndim == 2 else np.einsum("nj,nk,njk->jk", seen, seen, noise))


def _known(told: Told) -> Array:
    return np.zeros(told.dim) if told.bias is None else told.bias


def _found(told: Told, sums: Kept, rows: Rows) -> Fitted:
    """What sums over all rows say."""
    aware = told.noise is not None or told.bias_cov is not None or sums.truths or sums.apart
    several = aware and len(sums.devices) > 1
    used = sums if several else _as_one(sums)
    covs = covariances(told, used, asked=rows.true is not None)
    if told.bias_cov is not None:
        wide = told.bias_cov if several or told.mean is not None or sums.truths else None
    else:
        wide = spread(told, used, covs) if several else None
    flat = wide is None and not several and sums.truths and told.bias is None
    if flat:
        _check_shown(used)
    if wide is None and not flat:
        biases = devices_biases.unseen(_known(told), None)
        return Fitted(Context(_mean(told, used), covs.context), covs.noise, biases, sums)
    beta = told.bias
    if beta is None and (told.bias_cov is not None or not used.shown.all()):
        beta = np.zeros(told.dim)
    mean = None if told.mean is None else told.mean - used.centre
    joint = solved(said_of(used, covs), wide, mean, beta)
    if covs.pairs is not None:
        joint = doubted(joint, covs.pairs.doubt, covs.pairs.slopes * (mean is None))
    law = Context(used.centre + joint.centre[: told.dim] if told.mean is None else told.mean, covs.context)
    return Fitted(law, covs.noise, devices_biases.found(sums.devices, joint, wide), sums)


def _as_one(sums: Kept) -> Kept:
    """Of one device, if devices are not told apart."""
    if len(sums.devices) < 2:
        return sums
    entries = sums.entries._replace(of=np.zeros_like(sums.entries.of))
    return sums._replace(devices={None: 0}, entries=entries, sums=merged(sums.sums))


def _mean(told: Told, used: Kept) -> Array:
    """Of contexts, where there is no bias to learn: that of readings, less what is known of the bias."""
    if told.mean is not None:
        return told.mean
    count, total = (np.diag(part.sum(0)) for part in (used.sums.both, used.sums.total))
    return np.asarray(used.centre + total / np.maximum(count, 1) - _known(told))


def _check_shown(used: Kept) -> None:
    read = np.diag(used.sums.both.sum(0)) > 0
    if not (used.shown & read).all():
        column = int(np.argmin(used.shown & read))
        what = "true context" if read[column] else "reading"
        allowed = "some in each column, to find the bias from; or bias_cov told, or bias"
        raise InputError("true", f"column {column} has no {what}", allowed)
