"""The covariances of contexts, of the noise and of biases, from sums over rows, as far as they are not told.

Readings show S = C + N, about the mean of each device. Where N is told, C = S - N (`moments.py`). Where it is
not, pairs tell both. Truths are a line of their readings, c = a + B x + rest with Cov(rest) = O, and

    C = O + B S B',    N = O + (I - B) S (I - B)',

as in `unfog.channel.studies`, but about the means of devices; S, B S and C make the covariance of (x, c). It
is what pairs alone say where each row is one; and it holds too where high readings are those whose truth was
looked up. Biases spread as far as estimates of them do, each device by itself, less the errors of these
(`unfog.channel.moments`); a little further, where devices are few.
"""

from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising import moments
from unfog.adapters.denoising.joint import Errors, Terms, solved, terms
from unfog.adapters.denoising.kept import Kept, Sums
from unfog.adapters.denoising.told import Told
from unfog.channel.moments import between
from unfog.maths.arrays import Array
from unfog.validation import InputError

LEAST = 1e-12  # share of a column's variance that is not taken for zero


class Pairs(NamedTuple):
    """What pairs say, with all readings."""

    joint: Array  # (2 d, 2 d)  covariance of a reading and its context, about the means of their device
    context: Array  # (d, d)
    noise: Array  # (d, d)
    doubt: float  # variance of Student's law: by so much covariances of estimates are larger
    slopes: Array  # (d, d)  covariance that errors of the line add to the mean of contexts


class Covariances(NamedTuple):
    """Of a context and of the noise of a row to which none is told."""

    context: Array  # (d, d)
    noise: Array  # (d, d)
    pairs: Pairs | None  # where the noise is found from them


def merged(sums: Sums) -> Sums:
    """As if all rows were of one device."""
    apart = {name: getattr(sums, name).sum(0)[None] for name in ("both", "total", "pairs", "pair_total")}
    return sums._replace(**apart)


def covariances(told: Told, kept: Kept, *, asked: bool) -> Covariances:
    """What is told, and what sums say of the rest; truths are `asked` for the noise where they are given."""
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
        context, pairs = None if pairs is None else moments.regular(pairs.context), None
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
    return moments.without(moments.regular(_readings(sums)), blur, least)


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
    whole, rest, left = moments.regular(_readings(sums)), truth - slope @ cross, np.eye(dim) - slope
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
