"""Constants of time where true contexts are seldom: a `Tempo` from pairs and noisy contexts together."""

from typing import NamedTuple

import numpy as np

from unfog.inputs import InputError
from unfog.maths.arrays import Array, Ints
from unfog.model.leftover import leftover
from unfog.model.tempo import Moving, Tempo
from unfog.model.timing import Timing, check_order
from unfog.model.together import Together, record, together

SELDOM = (
    "{alone} noisy contexts without a true one are used beside {pairs} pairs: which of level and bias a slow "
    "move belongs to is decided by the true contexts alone"
)


class Rows(NamedTuple):
    """Readings, in the order of time within each label."""

    noisy: Array  # (n, d)
    true: Array  # (n, d)  NaN where there is none
    times: Array  # (n,)
    labels: Ints  # (n,)


class Covs(NamedTuple):
    """Of the pairs, (d, d) each."""

    contexts: Array
    errors: Array
    bias: Array  # at the start


def seldom(rows: Rows, covs: Covs) -> Timing:
    """The law in time; checks are of true contexts, and of noisy ones, each given all that came before."""
    order = np.argsort(rows.labels, kind="stable")
    times, labels = rows.times[order], rows.labels[order]
    check_order(times, labels)
    first = np.diff(labels, prepend=-1) != 0
    pairs = _check_pairs(rows.true)
    given = record(rows.noisy[order], rows.true[order], times, first, (covs.contexts, covs.errors))
    found = together(given)
    unit = np.eye(len(covs.bias))
    true, noisy = (leftover(z, np.ones(len(z)), unit) for z in (found.true_news, found.noisy_news))
    notes = [SELDOM.format(alone=len(times) - pairs, pairs=pairs)]
    notes += [f"true contexts: {words}" for words in true.doubts()]
    notes += [f"noisy contexts: {words}" for words in noisy.doubts()]
    span = max(part.sum() for part in np.split(given.steps, np.flatnonzero(first)[1:]))
    since = float(times[-1]) if first.sum() == 1 else None
    tempo = _tempo(found, covs, float(span))._replace(since=since).check(len(unit))
    return Timing(tempo, found.constants, true, noisy, found.value, tuple(notes))


def _check_pairs(true: Array) -> int:
    """Refuse fewer pairs than a mean and a covariance have numbers."""
    pairs, d = int(np.isfinite(true).all(axis=1).sum()), true.shape[1]
    least = d + d * (d + 1) // 2
    if pairs < least:
        raise InputError(
            "true", f"{pairs} pairs are complete", f"at least {least} with times, for {d} dimensions"
        )
    return pairs


def _tempo(found: Together, covs: Covs, span: float) -> Tempo:
    now = found.numbers
    contexts, errors = now["contexts.size"] * covs.contexts, now["errors.size"] * covs.errors
    level, bias, white = now["level.walk"] * contexts, now["bias.walk"] * errors, now["white.share"]
    return Tempo(
        fast=Moving(contexts, now["fast.time"]),
        bias=Moving(covs.bias, np.inf, bias if bias.any() else None),
        white=white * errors if white else None,
        level=Moving(level * span / 3, np.inf, level) if level.any() else None,
        error=Moving((1 - white) * errors, now["error.time"]) if white < 1 else None,
    )
