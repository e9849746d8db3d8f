"""Fits the channel to rows, given what a caller knows of it: the law of contexts, the noise and the biases.

What the caller gives is not changed. The rest is estimated from sums over all rows so far
(denoising/statistics.py): covariances first, then the mean of contexts and the biases of devices together. So
rows in several pieces give the same result as all rows at once. If the law of contexts, the noise and the
covariance of biases are all given, only biases are learnt, row by row, and no sums are kept; so it is with a
bias that walks. A mean that is not given cannot be told apart from a bias that all rows share: then the bias
counts as a part of the mean, and none is learnt.

Readings show S = C + N, about the mean of each device. With readings x = c + n, the noise of row i of
covariance N_i, and gaps, if N is given,

    C[j, k] = (sum over rows that have j and k of (x_j - mean_j)(x_k - mean_k)) / (count - 1)
              - (mean over the same rows of N_i[j, k]),

which is unbiased if coordinates are lost at random (W. A. Fuller, *Measurement Error Models*, section 1.1,
for one noise; gaps by pairs of coordinates that are both present). A difference of two covariances need not
be a covariance: every direction keeps at least a share `least` of the observed spread (`without`).

If N is not given, pairs show both. Regress the truth on readings, c = a + B x + rest with Cov(rest) = O, and

    C = O + B S B',    N = O + (I - B) S (I - B)',

as in `unfog.channel.studies`, but about the means of devices; S, B S and C make the covariance of (x, c). If
every row is a pair this is the estimate from pairs alone; and it also holds if truths were looked up for high
readings. The covariance of biases is that of their estimates, one for each device, less the errors of these
(`unfog.channel.moments`); it is widened a little if there are few devices.
"""

from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising.arguments import ChannelSettings, Rows
from unfog.adapters.denoising.statistics import (
    EXACT,
    Biases,
    Errors,
    History,
    Sums,
    Terms,
    add_rows,
    joint_biases,
    learn_biases,
    prior_biases,
    solve_joint,
    terms,
    widen,
)
from unfog.channel.moments import between_covariance
from unfog.features import Context
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError

SINGULAR = 1e-10  # the smallest eigenvalue that a correlation is raised to
LEAST = 1e-12  # smaller shares of a column's variance count as zero


class Pairs(NamedTuple):
    """Estimates from pairs and from all readings."""

    joint: Array  # (2 d, 2 d)  covariance of a reading and its context, about the means of their device
    context: Array  # (d, d)
    noise: Array  # (d, d)
    doubt: float  # variance of Student's t, by which covariances of estimates are multiplied
    slopes: Array  # (d, d)  covariance that errors of the line add to the mean of contexts


class Covariances(NamedTuple):
    """The covariances of a context, and of the noise of a row without one of its own."""

    context: Array  # (d, d)
    noise: Array  # (d, d)
    pairs: Pairs | None  # if the noise is estimated from them


class Noises(NamedTuple):
    """Sums of the noises that were given row by row."""

    both: Array  # (d, d)  rows that have both coordinates
    total: Array  # (d, d)


class Fitted(NamedTuple):
    """A fitted channel, with what is needed to learn on."""

    law: Context  # of contexts
    noise: Array  # (d, d)  of a row without a noise of its own
    biases: Biases
    history: History | None = None  # of all rows so far; None where the law of contexts and the noise stand
    noises: Noises | None = None  # where these alone say what the noise of a row is like


def fit(settings: ChannelSettings, rows: Rows, noise: Array | None) -> Fitted:
    """Fit the first rows, of which there may be none if the law of contexts is given; `noise` is theirs."""
    settings = settings.limited(rows.noisy)
    if settings.settled(noise):
        return _fit_biases(settings, rows, noise)
    sums = add_rows(None, rows, noise)
    fitted = _fit_sums(settings, sums, rows)
    if settings.walk is None:
        return fitted
    # A bias that walks is followed through the rows in order, with the law fitted to all of them.
    spread = settings.walk if settings.bias_cov is None else settings.bias_cov
    walks = prior_biases(_known_bias(settings), spread, settings.walk)
    biases = learn_biases(walks, fitted.law, fitted.noise if noise is None else noise, rows)
    return Fitted(fitted.law, fitted.noise, biases)


def more(fitted: Fitted, settings: ChannelSettings, rows: Rows, noise: Array | None) -> Fitted:
    """The channel after more rows."""
    if fitted.history is not None:
        return _fit_sums(settings.limited(rows.noisy), add_rows(fitted.history, rows, noise), rows)
    noise_used = fitted.noise if noise is None else noise
    biases = learn_biases(fitted.biases, fitted.law, noise_used, rows)
    if noise is None or fitted.noises is None:
        return fitted._replace(biases=biases)
    noises = Noises(*(old + new for old, new in zip(fitted.noises, _sum_noises(rows, noise), strict=True)))
    return Fitted(fitted.law, noises.total / np.maximum(noises.both, 1), biases, None, noises)


def _fit_biases(settings: ChannelSettings, rows: Rows, noise: Array | None) -> Fitted:
    """Learn the biases if all else is given."""
    law, noises, row_noise = settings.law, None, settings.noise
    if row_noise is None:
        noises = _sum_noises(rows, np.zeros_like(law.cov) if noise is None else noise)
        row_noise = noises.total / np.maximum(noises.both, 1)
    unseen = prior_biases(_known_bias(settings), settings.bias_cov, settings.walk)
    biases = learn_biases(unseen, law, row_noise if noise is None else noise, rows)
    return Fitted(law, row_noise, biases, None, noises)


def _sum_noises(rows: Rows, noise: Array) -> Noises:
    seen = (~np.isnan(rows.noisy)).astype(np.float64)
    count = seen.T @ seen
    return Noises(count, noise * count if noise.ndim == 2 else np.einsum("nj,nk,njk->jk", seen, seen, noise))


def _known_bias(settings: ChannelSettings) -> Array:
    return np.zeros(settings.dim) if settings.bias is None else settings.bias


def _fit_sums(settings: ChannelSettings, sums: History, rows: Rows) -> Fitted:
    """Fit the channel to the sums over all rows."""
    aware = (
        settings.noise is not None or settings.bias_cov is not None or sums.has_truths or sums.has_own_noise
    )
    has_devices = aware and len(sums.devices) > 1
    used = sums if has_devices else _merge_devices(sums)
    covs = covariances(settings, used, with_truths=rows.true is not None)
    if settings.bias_cov is not None:
        wide = settings.bias_cov if has_devices or settings.mean is not None or sums.has_truths else None
    else:
        wide = spread(settings, used, covs) if has_devices else None
    flat = wide is None and not has_devices and sums.has_truths and settings.bias is None
    if flat:
        _check_columns(used)
    if wide is None and not flat:
        biases = prior_biases(_known_bias(settings), None)
        return Fitted(Context(_mean(settings, used), covs.context), covs.noise, biases, sums)
    beta = settings.bias
    if beta is None and (settings.bias_cov is not None or not used.known_columns.all()):
        beta = np.zeros(settings.dim)
    mean = None if settings.mean is None else settings.mean - used.centre
    joint = solve_joint(find_terms(used, covs), wide, mean, beta)
    if covs.pairs is not None:
        joint = widen(joint, covs.pairs.doubt, covs.pairs.slopes * (mean is None))
    law = Context(
        used.centre + joint.centre[: settings.dim] if settings.mean is None else settings.mean, covs.context
    )
    return Fitted(law, covs.noise, joint_biases(sums.devices, joint, wide), sums)


def _merge_devices(sums: History) -> History:
    """Merge the sums of all devices into one."""
    if len(sums.devices) < 2:
        return sums
    entries = sums.entries._replace(of=np.zeros_like(sums.entries.of))
    return sums._replace(devices={None: 0}, entries=entries, sums=merge_sums(sums.sums))


def merge_sums(sums: Sums) -> Sums:
    """Sums as if all rows were of one device."""
    merged = {name: getattr(sums, name).sum(0)[None] for name in ("both", "total", "pairs", "pair_total")}
    return sums._replace(**merged)


def _mean(settings: ChannelSettings, history: History) -> Array:
    """The mean of contexts if there is no bias to learn: that of readings, less the known bias."""
    if settings.mean is not None:
        return settings.mean
    count, total = (np.diag(part.sum(0)) for part in (history.sums.both, history.sums.total))
    return np.asarray(history.centre + total / np.maximum(count, 1) - _known_bias(settings))


def _check_columns(history: History) -> None:
    read = np.diag(history.sums.both.sum(0)) > 0
    if not (history.known_columns & read).all():
        column = int(np.argmin(history.known_columns & read))
        what = "true context" if read[column] else "reading"
        allowed = "some in each column, to find the bias from; or bias_cov told, or bias"
        raise InputError("true", f"column {column} has no {what}", allowed)


def covariances(settings: ChannelSettings, history: History, *, with_truths: bool) -> Covariances:
    """The covariances that are given, and estimates of the others; `with_truths`: use true contexts."""
    dim, sums = settings.dim, history.sums
    noise = settings.noise
    if noise is None and history.has_own_noise:
        noise = sums.own_noise / np.maximum(sums.own, 1)
    enough = _freedom(sums) > dim
    pairs = None
    if (history.has_truths or with_truths) and not history.has_own_noise and (noise is None or enough):
        pairs = _fit_pairs(sums, known=noise is not None)
    if noise is None:
        context = settings.cov if pairs is None else pairs.context
        noise = np.zeros((dim, dim)) if pairs is None else pairs.noise
    else:
        context, pairs = None if pairs is None else regular(pairs.context), None
    if settings.cov is not None:
        context = settings.cov
        joint = np.block([[context + noise, context], [context, context]])
        pairs = None if pairs is None else pairs._replace(joint=joint)
    if pairs is not None:  # a joint covariance that can be inverted, also where readings are exact
        floor = np.zeros(2 * dim)
        floor[:dim] = EXACT * np.diag(pairs.context) * (np.diag(noise) == 0)
        pairs = pairs._replace(joint=pairs.joint + np.diag(floor))
    return Covariances(_subtract_noise(sums, noise) if context is None else context, noise, pairs)


def _subtract_noise(sums: Sums, noise: Array) -> Array:
    """The covariance of readings less that of their noise."""
    rows = sums.both.sum(0)
    blur = (sums.own_noise + noise * (rows - sums.own)) / np.maximum(rows, 1)
    least = 1 / (1 + max(1.0, float(rows.max())))
    return without(regular(_reading_cov(sums)), blur, least)


def _freedom(sums: Sums) -> float:
    """Degrees of freedom: pairs, less one for each device."""
    return float(sums.pairs.sum() - (sums.pairs > 0).sum())


def _reading_cov(sums: Sums) -> Array:
    """The covariance of readings, each device about its own mean."""
    scatter = sums.product - (sums.total * sums.total.mT / np.maximum(sums.both, 1)).sum(0)
    return np.asarray(scatter / np.maximum(np.maximum(sums.both - 1, 0).sum(0), 1))


def _fit_pairs(sums: Sums, *, known: bool) -> Pairs:
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
    exact = _find_exact(sums, error, truth)
    error[exact, :] = error[:, exact] = 0.0
    _check_pairs(error, truth, known | exact)
    alone = 1 - float(sums.pairs.sum() / sums.both.sum(0).max())
    student = freedom / max(freedom - dim * alone - 2, 1.0)
    if not alone:
        total = sums.pair_total[:, dim:].sum(0)
        all_truths = sums.pair_product[dim:, dim:] - np.outer(total, total) / sums.pairs.sum()
        context = all_truths / (sums.pairs.sum() - 1)
        return Pairs(within, context, error, student, np.zeros((dim, dim)))
    slope = np.linalg.solve(reading, cross).T
    cov, rest, complement = regular(_reading_cov(sums)), truth - slope @ cross, np.eye(dim) - slope
    context = rest + slope @ cov @ slope.T
    joint = np.block([[cov, cov @ slope.T], [slope @ cov, context]])
    shift = _mean_shift(sums, means[:, :dim])
    slopes = rest * float(shift @ np.linalg.solve(reading, shift)) / freedom
    noise = rest + complement @ cov @ complement.T
    noise[exact, :] = noise[:, exact] = 0.0
    return Pairs(joint, context, noise, student, slopes)


def _mean_shift(sums: Sums, means: Array) -> Array:
    """The mean reading of a device less that of its pairs, averaged over pairs, (d,)."""
    counts = np.maximum(np.linalg.diagonal(sums.both), 1)
    means_of_all = np.linalg.diagonal(sums.total) / counts
    return np.asarray((sums.pairs[:, None] * (means_of_all - means)).sum(0) / sums.pairs.sum())


def _find_exact(sums: Sums, error: Array, truth: Array) -> Bools:
    """The columns whose readings all equal the truth, up to rounding, (d,)."""
    dim = len(error)
    totals = np.abs(sums.pair_total[:, :dim]), np.abs(sums.pair_total[:, dim:])
    apart = np.abs(sums.pair_total[:, :dim] - sums.pair_total[:, dim:]) > LEAST * (totals[0] + totals[1])
    return (np.diag(error) <= LEAST * np.diag(error + truth)) & ~apart.any(0)


def _check_pairs(error: Array, truth: Array, known: Bools) -> None:
    """Raise InputError for pairs that cannot show the noise, in columns where it is not `known`."""
    scale = np.diag(error + truth)
    constant = np.diag(truth) <= LEAST * scale
    if constant.any():
        column = int(np.argmax(constant))
        raise InputError("true", f"column {column} is constant", "columns that vary from row to row")
    flat = np.diag(error) <= LEAST * scale
    if (flat & ~known).any():
        actual = f"column {int(np.argmax(flat & ~known))} is apart from true by a constant"
        raise InputError("X", actual, "columns that vary from row to row; or noise_cov told")
    size, noisy = np.sqrt(np.where(flat, 1.0, np.diag(error))), np.flatnonzero(~known)
    scaled = (error / size / size[:, None])[np.ix_(noisy, noisy)]
    if len(noisy) and np.linalg.eigvalsh(scaled)[0] < LEAST:
        raise InputError("X", "errors of one column follow from those of others", "columns without copies")


def find_terms(history: History, covs: Covariances) -> Terms:
    """What all rows say about the mean of contexts and the biases, in information form."""
    joint = None if covs.pairs is None else covs.pairs.joint
    return terms(history.entries, len(history.devices), Errors(covs.context, covs.noise, joint))


def spread(settings: ChannelSettings, history: History, covs: Covariances) -> Array | None:
    """The covariance of biases, estimated from several devices; None if there are too few."""
    dim = settings.dim
    is_complete = np.linalg.diagonal(history.sums.both).all(axis=1)
    index = np.flatnonzero(is_complete)
    if len(index) < 2:
        return None
    all_terms = find_terms(history, covs)
    terms_used = type(all_terms)(*(part[index] for part in all_terms))
    mean = None if settings.mean is None else settings.mean - history.centre
    if mean is None and not history.known_columns.all():
        mean = np.zeros(dim)  # every estimate is off by the same vector, which does not change their spread
    biases = solve_joint(terms_used, None, mean, None).bias
    errors = np.linalg.inv(terms_used.precision[:, dim:, dim:]).mean(0)
    # No direction is narrower than the error of such an estimate; and since few devices give an uncertain
    # variance, it is widened by about the variance of Student's t.
    count = len(index)
    return (
        between_covariance(biases, 1.0, errors, float(np.sqrt(2 / (count - 1)))) * (count + 1) / (count - 1)
    )


def regular(cov: Array) -> Array:
    """Make a covariance invertible: every direction gets some variance."""
    variance = np.diag(cov)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    values, vectors = np.linalg.eigh(cov / scale / scale[:, None])
    if values[0] >= SINGULAR:
        return cov
    half = scale[:, None] * vectors * np.sqrt(np.maximum(values, SINGULAR))
    return half @ half.T


def without(cov: Array, noise: Array, least: float) -> Array:
    """A covariance less that of noise; every direction keeps at least a share `least` of it."""
    if not noise.any():
        return cov
    root = np.linalg.cholesky(cov)
    share = np.linalg.solve(root, np.linalg.solve(root, noise).T)
    values, vectors = np.linalg.eigh((share + share.T) / 2)
    if 1 - values[-1] >= least:
        return cov - noise
    half = root @ vectors * np.sqrt(np.maximum(1 - values, least))
    return half @ half.T
