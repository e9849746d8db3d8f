"""The channel fitted from what is told of it and from rows: the law of contexts, the noise and the biases.

What is told stands. The rest is found from sums over all rows so far (denoising/statistics.py): covariances
first, then the mean of contexts and the biases of devices together. So rows in pieces come to what all rows
at once come to. Where the law of contexts, the noise and how far biases spread are all told, there is only a
bias to learn, row by row, and no sum is kept; so is a bias that walks. A mean that is not told and a bias
that all rows share cannot be told apart: then the bias counts as a part of the mean, and there is none to
learn.

Readings show S = C + N, about the mean of each device. With readings x = c + n, the noise of row i of
covariance N_i, and gaps, where N is told,

    C[j, k] = (sum over rows that have j and k of (x_j - mean_j)(x_k - mean_k)) / (count - 1)
              - (mean over the same rows of N_i[j, k]),

which is unbiased where coordinates are lost at random (W. A. Fuller, *Measurement Error Models*, section
1.1, for one noise; pairs of coordinates that are there, for the gaps). A difference of two covariances may be
none: no direction keeps less than a share `least` of the spread that is seen in it (`without`).

Where N is not told, pairs tell both. Truths are a line of their readings, c = a + B x + rest with
Cov(rest) = O, and

    C = O + B S B',    N = O + (I - B) S (I - B)',

as in `unfog.channel.studies`, but about the means of devices; S, B S and C make the covariance of (x, c). It
is what pairs alone say where each row is one; and it holds too where high readings are those whose truth was
looked up. Biases spread as far as estimates of them do, each device by itself, less the errors of these
(`unfog.channel.moments`); a little further, where devices are few.
"""

from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising.arguments import Rows, Told
from unfog.adapters.denoising.statistics import (
    Biases,
    Errors,
    Kept,
    Sums,
    Terms,
    doubted,
    joint_biases,
    kept,
    learn_biases,
    solved,
    terms,
    unseen_biases,
)
from unfog.channel.moments import between
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.validation import InputError

SINGULAR = 1e-10  # of a coordinate's variance, that every direction has at least
LEAST = 1e-12  # share of a column's variance that is not taken for zero


class Pairs(NamedTuple):
    """What pairs say, with all readings."""

    joint: Array  # (2 d, 2 d)  covariance of a reading and its context, about the means of their device
    context: Array  # (d, d)
    noise: Array  # (d, d)
    doubt: float  # variance of Student's law: by so much covariances of estimates are larger
    slopes: Array  # (d, d)  covariance that errors of the line add to the mean of contexts


class Covariances(NamedTuple):
    """The covariances of a context, and of the noise of a row to which none is told."""

    context: Array  # (d, d)
    noise: Array  # (d, d)
    pairs: Pairs | None  # where the noise is found from them


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
    """Fit the first rows, which may be none where contexts are told; `noise` is what is told of these."""
    if told.settled(noise):
        return _first(told, rows, noise)
    sums = kept(None, rows, noise)
    found = _found(told, sums, rows)
    if told.walk is None:
        return found
    # A bias that walks is followed through the rows in their order, with the law that they have in common.
    spread = told.walk if told.bias_cov is None else told.bias_cov
    walks = unseen_biases(_known(told), spread, told.walk)
    learnt = learn_biases(walks, found.law, found.noise if noise is None else noise, rows)
    return Fitted(found.law, found.noise, learnt)


def more(fitted: Fitted, told: Told, rows: Rows, noise: Array | None) -> Fitted:
    """The channel after more rows."""
    if fitted.kept is not None:
        return _found(told, kept(fitted.kept, rows, noise), rows)
    used = fitted.noise if noise is None else noise
    learnt = learn_biases(fitted.biases, fitted.law, used, rows)
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
    unseen = unseen_biases(_known(told), told.bias_cov, told.walk)
    learnt = learn_biases(unseen, law, shared if noise is None else noise, rows)
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
        biases = unseen_biases(_known(told), None)
        return Fitted(Context(_mean(told, used), covs.context), covs.noise, biases, sums)
    beta = told.bias
    if beta is None and (told.bias_cov is not None or not used.shown.all()):
        beta = np.zeros(told.dim)
    mean = None if told.mean is None else told.mean - used.centre
    joint = solved(said_of(used, covs), wide, mean, beta)
    if covs.pairs is not None:
        joint = doubted(joint, covs.pairs.doubt, covs.pairs.slopes * (mean is None))
    law = Context(used.centre + joint.centre[: told.dim] if told.mean is None else told.mean, covs.context)
    return Fitted(law, covs.noise, joint_biases(sums.devices, joint, wide), sums)


def _as_one(sums: Kept) -> Kept:
    """Sums as of one device, if devices are not told apart."""
    if len(sums.devices) < 2:
        return sums
    entries = sums.entries._replace(of=np.zeros_like(sums.entries.of))
    return sums._replace(devices={None: 0}, entries=entries, sums=merged(sums.sums))


def merged(sums: Sums) -> Sums:
    """Sums as if all rows were of one device."""
    apart = {name: getattr(sums, name).sum(0)[None] for name in ("both", "total", "pairs", "pair_total")}
    return sums._replace(**apart)


def _mean(told: Told, used: Kept) -> Array:
    """The mean of contexts where there is no bias to learn: that of readings, less the known bias."""
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


def covariances(told: Told, kept: Kept, *, asked: bool) -> Covariances:
    """What is told, and what sums say of the rest; where truths are given, they are `asked` for the noise."""
    dim, sums = told.dim, kept.sums
    noise = told.noise
    if noise is None and kept.apart:
        noise = sums.own_noise / np.maximum(sums.own, 1)
    enough = _freedom(sums) > dim
    pairs = None
    if (kept.truths or asked) and not kept.apart and (noise is None or enough):
        pairs = _paired(sums, known=noise is not None)
    if noise is None:
        context = told.cov if pairs is None else pairs.context
        noise = np.zeros((dim, dim)) if pairs is None else pairs.noise
    else:
        context, pairs = None if pairs is None else regular(pairs.context), None
    if told.cov is not None:
        context = told.cov
        told_joint = np.block([[context + noise, context], [context, context]])
        pairs = None if pairs is None else pairs._replace(joint=told_joint)
    return Covariances(_less_noise(sums, noise) if context is None else context, noise, pairs)


def _less_noise(sums: Sums, noise: Array) -> Array:
    """What noise leaves of the covariance of readings."""
    rows = sums.both.sum(0)
    blur = (sums.own_noise + noise * (rows - sums.own)) / np.maximum(rows, 1)
    least = 1 / (1 + max(1.0, float(rows.max())))
    return without(regular(_readings(sums)), blur, least)


def _freedom(sums: Sums) -> float:
    """Pairs, less one for each device."""
    return float(sums.pairs.sum() - (sums.pairs > 0).sum())


def _readings(sums: Sums) -> Array:
    """Their covariance, each device about a mean of its own."""
    scatter = sums.product - (sums.total * sums.total.mT / np.maximum(sums.both, 1)).sum(0)
    return np.asarray(scatter / np.maximum(np.maximum(sums.both - 1, 0).sum(0), 1))


def _paired(sums: Sums, *, known: bool) -> Pairs:
    dim, freedom = len(sums.product), _freedom(sums)
    if freedom <= dim:
        allowed = (
            f"at least {dim + 1} whole rows more than devices that have a true context; or noise_cov told"
        )
        raise InputError("true", f"{int(sums.pairs.sum())} whole pairs", allowed)
    means = sums.pair_total / np.maximum(sums.pairs, 1)[:, None]
    within = (sums.pair_product - sums.pair_total.T @ means) / freedom
    reading, cross, truth = within[:dim, :dim], within[:dim, dim:], within[dim:, dim:]
    error = reading - cross - cross.T + truth
    _check(error, truth, known=known)
    alone = 1 - float(sums.pairs.sum() / sums.both.sum(0).max())
    student = freedom / max(freedom - dim * alone - 2, 1.0)
    if not alone:
        total = sums.pair_total[:, dim:].sum(0)
        all_truths = sums.pair_product[dim:, dim:] - np.outer(total, total) / sums.pairs.sum()
        context = all_truths / (sums.pairs.sum() - 1)
        return Pairs(within, context, error, student, np.zeros((dim, dim)))
    slope = np.linalg.solve(reading, cross).T
    whole, rest, left = regular(_readings(sums)), truth - slope @ cross, np.eye(dim) - slope
    context = rest + slope @ whole @ slope.T
    joint = np.block([[whole, whole @ slope.T], [slope @ whole, context]])
    away = _away(sums, means[:, :dim])
    slopes = rest * float(away @ np.linalg.solve(reading, away)) / freedom
    return Pairs(joint, context, rest + left @ whole @ left.T, student, slopes)


def _away(sums: Sums, means: Array) -> Array:
    """How far the readings of pairs lie from all of their device, on the average over pairs, (d,)."""
    counts = np.maximum(np.linalg.diagonal(sums.both), 1)
    every = np.linalg.diagonal(sums.total) / counts
    return np.asarray((sums.pairs[:, None] * (every - means)).sum(0) / sums.pairs.sum())


def _check(error: Array, truth: Array, *, known: bool) -> None:
    """Refuse pairs of which no noise can be found."""
    scale = np.diag(error + truth)
    constant = np.diag(truth) <= LEAST * scale
    if constant.any():
        column = int(np.argmax(constant))
        raise InputError("true", f"column {column} is constant", "columns that vary from row to row")
    flat = np.diag(error) <= LEAST * scale
    if flat.any() and not known:
        said = f"column {int(np.argmax(flat))} is apart from true by a constant"
        raise InputError("X", said, "columns that vary from row to row; or noise_cov told")
    size = np.sqrt(np.where(flat, 1.0, np.diag(error)))
    if not known and np.linalg.eigvalsh(error / size / size[:, None])[0] < LEAST:
        raise InputError("X", "errors of one column follow from those of others", "columns without copies")


def said_of(kept: Kept, found: Covariances) -> Terms:
    """What all rows say of the mean of contexts and of biases."""
    joint = None if found.pairs is None else found.pairs.joint
    return terms(kept.entries, len(kept.devices), Errors(found.context, found.noise, joint))


def spread(told: Told, kept: Kept, found: Covariances) -> Array | None:
    """The covariance of biases that readings of several devices show; None where they are too few."""
    dim = told.dim
    seen = np.linalg.diagonal(kept.sums.both).all(axis=1)
    chosen = np.flatnonzero(seen)
    if len(chosen) < 2:
        return None
    said = said_of(kept, found)
    each = type(said)(*(part[chosen] for part in said))
    mean = None if told.mean is None else told.mean - kept.centre
    if mean is None and not kept.shown.all():
        mean = np.zeros(dim)  # then each estimate is off by the same, and their spread is what it is
    biases = solved(each, None, mean, None).bias
    errors = np.linalg.inv(each.precision[:, dim:, dim:]).mean(0)
    # No direction is taken for narrower than such an estimate is sure of; and as a variance of few devices is
    # an estimate, it is widened by about the variance of Student's law.
    count = len(chosen)
    return between(biases, 1.0, errors, float(np.sqrt(2 / (count - 1)))) * (count + 1) / (count - 1)


def regular(cov: Array) -> Array:
    """A covariance that can be inverted, if this one cannot: each direction gets some spread."""
    variance = np.diag(cov)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    values, vectors = np.linalg.eigh(cov / scale / scale[:, None])
    if values[0] >= SINGULAR:
        return cov
    half = scale[:, None] * vectors * np.sqrt(np.maximum(values, SINGULAR))
    return half @ half.T


def without(whole: Array, noise: Array, least: float) -> Array:
    """What noise leaves of a covariance, in every direction a share `least` of it."""
    if not noise.any():
        return whole
    root = np.linalg.cholesky(whole)
    share = np.linalg.solve(root, np.linalg.solve(root, noise).T)
    values, vectors = np.linalg.eigh((share + share.T) / 2)
    if 1 - values[-1] >= least:
        return whole - noise
    half = root @ vectors * np.sqrt(np.maximum(1 - values, least))
    return half @ half.T
