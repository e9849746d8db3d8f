"""What is believed of the context of every round of a log, with all that the log says of it.

Readings of all rounds, and true contexts where they are known, say what the bias is; the noisy context of a
round, and its true one as far as that is known, what its context is: the posterior of denoise/incomplete.py,
here for all rounds at once. Rounds that lost the same coordinates, and of which the same are known, differ
by their numbers alone, so that matrices are worked out once for each such pattern.

That a belief about round t uses readings and true contexts of rounds after t does no harm to an estimate: the
arm of a round was drawn from its noisy context alone, and contexts do not hang on arms.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.denoise.incomplete import Incomplete, Parameters, State, conditional, context_of, term_of
from unfog.channel.channel import Channel, Units, as_it_is, standard
from unfog.evaluation.log import Log
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, Ints

FLAT = 1e-12  # a spread that is less of the mean is none


class Believed(NamedTuple):
    """Gaussian beliefs about n contexts, in the units asked for; rounds of one kind share a covariance."""

    mean: Array  # (n, d)
    kind: Ints  # (n,)
    covs: Array  # (kinds, d, d)

    @property
    def alike(self) -> bool:
        """Whether all rounds have the same covariance."""
        return len(self.covs) == 1

    def rows(self, places: Ints | slice) -> Context:
        """The beliefs of some rounds."""
        cov = self.covs[0] if self.alike else self.covs[self.kind[places]]
        return Context(self.mean[places], cov)


def believed(channel: Channel | None, log: Log, *, own: bool = False) -> Believed:
    """With a channel, the posterior; without one readings are taken for the truth, as far as they go.

    In deviations from the mean, or in the caller's `own` units.
    """
    return _as_read(log, own) if channel is None else _denoised(channel, log, own, seen=False)


def seen(channel: Channel | None, log: Log, *, own: bool = False) -> Believed:
    """Likewise, but of each round with its noisy context alone: what a policy can know of it.

    What all true contexts say of the bias is used.
    """
    return _as_read(log, own) if channel is None else _denoised(channel, log, own, seen=True)


def units_of(channel: Channel, own: bool) -> Units:
    """Deviations from the mean, or the caller's own units."""
    return as_it_is(channel) if own else standard(channel)


def _as_read(log: Log, own: bool) -> Believed:
    """Readings as they are; what was lost of one is filled in from the rest of it."""
    lost, d = np.isnan(log.noisy), log.noisy.shape[1]
    mean = mean_reading(log)
    centred = np.where(lost, 0.0, log.noisy - mean)
    pairs = np.maximum((~lost).T.astype(float) @ ~lost, 1)
    cov = centred.T @ centred / pairs
    spread = np.sqrt(np.diag(cov))
    scale = np.where(spread > FLAT * np.abs(mean), spread, 1.0)  # a constant has none, but for rounding
    found = centred / scale
    if lost.any():
        correlation = _definite(cov / scale / scale[:, None])
        found = conditional(np.zeros(d), correlation, (log.noisy - mean) / scale).mean
    found = mean + scale * found if own else found
    return Believed(found, np.zeros(log.rounds, np.intp), np.zeros((1, d, d)))


def mean_reading(log: Log) -> Array:
    """The mean of each coordinate (d,); zero for one that was always lost."""
    there = ~np.isnan(log.noisy)
    return np.asarray(np.where(there, log.noisy, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1))


def _definite(correlation: Array) -> Array:
    """Moments of what is there need not be those of anything: then a little of I makes them so."""
    least = float(np.linalg.eigvalsh(correlation)[0])
    return correlation + max(1e-6 - least, 0.0) * np.eye(len(correlation))


def _denoised(channel: Channel, log: Log, own: bool, *, seen: bool) -> Believed:
    """The posterior with what the whole log says of each unit's bias."""
    units = units_of(channel, own)
    nothing = np.zeros(0)
    known = channel.told(units, prior_mean=nothing, prior_cov=nothing)
    noisy = units.read(log.noisy)
    true = np.full_like(noisy, np.nan) if log.true is None else units.inside(log.true)
    parameters = Incomplete(pairs=True).setup(known, None)
    whose = np.zeros(log.rounds, np.intp) if log.unit is None else log.unit
    told = _patterns(parameters, noisy, true)
    hidden = seen and log.true is not None
    asked = _patterns(parameters, noisy, np.full_like(noisy, np.nan)) if hidden else told
    return _posterior(_state(parameters, told, whose), told, asked, whose)


class _Pattern(NamedTuple):
    """Rounds that lost the same, and of which the same is known."""

    rows: Ints
    term: State  # its precision is what each of them says of the bias
    context: Context  # of one of them, without its reading


class _Patterns(NamedTuple):
    """All of them, and every round's numbers."""

    all: list[_Pattern]
    place: Ints  # (n,)  of each round's
    centre: Array  # (n, d)  m, the mean given what is known of the true context
    away: Array  # (n, d)  chat - m, zero where it was lost
    natural: Array  # (n, d)  what each round says of the bias: E (chat - m)


def _patterns(parameters: Parameters, noisy: Array, true: Array) -> _Patterns:
    place = _same(np.concat([np.isnan(noisy), np.isnan(true)], axis=1))
    found, centre, natural = list[_Pattern](), np.empty_like(noisy), np.empty_like(noisy)
    for number in range(int(place.max()) + 1):
        rows = np.flatnonzero(place == number)
        term, context = term_of(parameters, noisy[rows[0]], true[rows[0]])
        centre[rows] = conditional(parameters.mean, parameters.context_cov, true[rows]).mean
        found.append(_Pattern(rows, term, context))
    away = np.where(np.isnan(noisy), 0.0, noisy - centre)
    for rows, term, _ in found:
        natural[rows] = away[rows] @ term.precision
    return _Patterns(found, place, centre, away, natural)


def _same(gaps: Bools) -> Ints:
    """Numbers from 0 that are equal where rows (n, p) are."""
    place = np.zeros(len(gaps), np.intp)
    for byte in np.packbits(gaps, axis=1).T:
        place = np.unique(place * 256 + byte, return_inverse=True)[1]
    return place


def _posterior(state: State, told: _Patterns, asked: _Patterns, whose: Ints) -> Believed:
    """With the state of `told`, contexts as far as they are known in `asked`.

    A round of which less may be known than was told says less of the bias, too: else its own true context
    would be seen through the bias.
    """
    kinds, kind = np.unique(told.place * len(state.precision) + whose, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    mean, covs = np.empty_like(told.away), np.empty((len(kinds), *state.precision.shape[1:]))
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(kind))[:-1])):
        unit, old = whose[rows[0]], told.all[told.place[rows[0]]].term
        _, term, context = asked.all[asked.place[rows[0]]]
        natural = state.natural_mean[unit] + (asked.natural[rows] - told.natural[rows])
        mine = State(state.precision[unit] + (term.precision - old.precision), natural)
        bias = np.linalg.solve(mine.precision, natural.T).T
        mean[rows] = asked.centre[rows] + (asked.away[rows] - bias) @ (context.cov @ term.precision).T
        covs[number] = context_of(mine._replace(natural_mean=natural[0]), term, context).cov
    return Believed(mean, kind, covs)


def _state(parameters: Parameters, told: _Patterns, whose: Ints) -> State:
    """What all rounds of each unit say of its bias: (units, d, d) and (units, d)."""
    units = int(whose.max()) + 1
    precision = np.tile(Incomplete(pairs=True).start(parameters).precision, (units, 1, 1))
    for rows, term, _ in told.all:
        precision = precision + np.bincount(whose[rows], minlength=units)[:, None, None] * term.precision
    total = [np.bincount(whose, column, minlength=units) for column in told.natural.T]
    return State(precision, np.stack(total, axis=1))
