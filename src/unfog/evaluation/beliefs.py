"""Beliefs about the context of every round of a log, given everything in the log.

The bias is estimated from the readings of all rounds and from true contexts where they are known; the context
of a round from its own noisy context, and from its true one as far as that is known. This is the posterior of
denoise/incomplete.py, for all rounds at once. Rounds in which the same coordinates are lost, and the same
true ones known, share their matrices, which are computed once for each such pattern.

A belief about round t may use readings and true contexts of later rounds without biasing an estimate: the arm
of a round was drawn from its noisy context alone, and contexts do not depend on arms.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.denoise.incomplete import Incomplete, Parameters, State, conditional, context_of, term_of
from unfog.channel.channel import Channel, Units, keep_units, standard
from unfog.channel.knowledge import limit_cov
from unfog.evaluation.log import DecisionLog
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, Ints

FLAT = 1e-12  # a standard deviation below this share of the mean counts as zero


class Believed(NamedTuple):
    """Gaussian beliefs about n contexts; rounds of the same kind share a covariance."""

    mean: Array  # (n, d)
    kind: Ints  # (n,)
    covs: Array  # (kinds, d, d)

    @property
    def alike(self) -> bool:
        """Whether all rounds have the same covariance."""
        return len(self.covs) == 1

    def rows(self, index: Ints | slice) -> Context:
        """The beliefs of some rounds."""
        cov = self.covs[0] if self.alike else self.covs[self.kind[index]]
        return Context(self.mean[index], cov)


def infer_contexts(channel: Channel | None, log: DecisionLog, *, own: bool = False) -> Believed:
    """Beliefs given the whole log: the posterior if there is a channel, else the readings themselves.

    In deviations from the mean, or in the caller's `own` units.
    """
    return _use_readings(log, own) if channel is None else _denoise(channel, log, own, seen=False)


def infer_by_round(channel: Channel | None, log: DecisionLog, *, own: bool = False) -> Believed:
    """The same, but given only the noisy context of each round, as a policy would see it.

    The bias is still estimated from all true contexts.
    """
    return _use_readings(log, own) if channel is None else _denoise(channel, log, own, seen=True)


def units_of(channel: Channel, own: bool) -> Units:
    """Deviations from the mean, or the caller's own units."""
    return keep_units(channel) if own else standard(channel)


def _use_readings(log: DecisionLog, own: bool) -> Believed:
    """Readings as they are; lost coordinates are filled in from the others of the same reading."""
    lost, d = np.isnan(log.noisy), log.noisy.shape[1]
    mean = mean_reading(log)
    centred = np.where(lost, 0.0, log.noisy - mean)
    pairs = np.maximum((~lost).T.astype(float) @ ~lost, 1)
    cov = centred.T @ centred / pairs
    spread = np.sqrt(np.diag(cov))
    scale = np.where(spread > FLAT * np.abs(mean), spread, 1.0)  # only rounding error in a constant
    contexts = centred / scale
    if lost.any():
        correlation = _make_definite(cov / scale / scale[:, None])
        contexts = conditional(np.zeros(d), correlation, (log.noisy - mean) / scale).mean
    contexts = mean + scale * contexts if own else contexts
    return Believed(contexts, np.zeros(log.rounds, np.intp), np.zeros((1, d, d)))


def mean_reading(log: DecisionLog) -> Array:
    """The mean of each coordinate (d,); zero for a coordinate that was always lost."""
    present = ~np.isnan(log.noisy)
    return np.asarray(np.where(present, log.noisy, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1))


def _make_definite(correlation: Array) -> Array:
    """Make correlations positive definite: from data with gaps they need not be."""
    least = float(np.linalg.eigvalsh(correlation)[0])
    return correlation + max(1e-6 - least, 0.0) * np.eye(len(correlation))


def _denoise(channel: Channel, log: DecisionLog, own: bool, *, seen: bool) -> Believed:
    """The posterior, given what the whole log says about each unit's bias."""
    units = units_of(channel, own)
    empty = np.zeros(0)
    known = channel.to_knowledge(units, prior_mean=empty, prior_cov=empty)
    noisy = units.read(log.noisy)
    true = np.full_like(noisy, np.nan) if log.true is None else units.inside(log.true)
    parameters = Incomplete(pairs=True).setup(known, None)
    unit_ids = np.zeros(log.rounds, np.intp) if log.unit is None else log.unit
    noise = log.own_noise(channel.noise_cov)
    noise = None if noise is None else limit_cov(units.noise(noise), known.context_cov)
    logged = _find_patterns(parameters, noisy, true, noise)
    hides_truth = seen and log.true is not None
    visible = _find_patterns(parameters, noisy, np.full_like(noisy, np.nan), noise) if hides_truth else logged
    return _compute_posterior(_sum_evidence(parameters, logged, unit_ids), logged, visible, unit_ids)


class _Pattern(NamedTuple):
    """Rounds in which the same coordinates are lost, and the same true ones known; equally noisy."""

    rows: Ints
    term: State  # its precision is what each of these rounds adds to that of the bias
    context: Context  # of one of them, without its reading


class _Patterns(NamedTuple):
    """The patterns of a log, and what each of its rounds contributes."""

    patterns: list[_Pattern]
    pattern_ids: Ints  # (n,)  which pattern each round has
    centre: Array  # (n, d)  m, the mean given what is known of the true context
    deviation: Array  # (n, d)  chat - m, zero where it was lost
    natural: Array  # (n, d)  what each round adds to the natural mean of the bias: E (chat - m)


def _find_patterns(parameters: Parameters, noisy: Array, true: Array, noise: Array | None) -> _Patterns:
    index = _number_rows(np.concat([np.isnan(noisy), np.isnan(true)], axis=1))
    if noise is not None:
        noises = np.unique(noise.reshape(len(noise), -1), axis=0, return_inverse=True)[1].reshape(-1)
        index = np.unique(index * (noises.max() + 1) + noises, return_inverse=True)[1]
    patterns, centre, natural = list[_Pattern](), np.empty_like(noisy), np.empty_like(noisy)
    for number in range(int(index.max()) + 1):
        rows = np.flatnonzero(index == number)
        own = parameters if noise is None else Incomplete(pairs=True).with_noise(parameters, noise[rows[0]])
        term, context = term_of(own, noisy[rows[0]], true[rows[0]])
        centre[rows] = conditional(parameters.mean, parameters.context_cov, true[rows]).mean
        patterns.append(_Pattern(rows, term, context))
    deviation = np.where(np.isnan(noisy), 0.0, noisy - centre)
    for rows, term, _ in patterns:
        natural[rows] = deviation[rows] @ term.precision
    return _Patterns(patterns, index, centre, deviation, natural)


def _number_rows(gaps: Bools) -> Ints:
    """Number the rows (n, p) from 0, equal rows alike."""
    numbers = np.zeros(len(gaps), np.intp)
    for byte in np.packbits(gaps, axis=1).T:
        numbers = np.unique(numbers * 256 + byte, return_inverse=True)[1]
    return numbers


def _compute_posterior(state: State, logged: _Patterns, visible: _Patterns, unit_ids: Ints) -> Believed:
    """Beliefs about contexts given `visible`, with the bias from `logged`.

    If part of a round's true context is hidden, what it says about the bias is taken out as well: otherwise
    the true context would show through the bias.
    """
    kinds, kind = np.unique(logged.pattern_ids * len(state.precision) + unit_ids, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    mean, covs = np.empty_like(logged.deviation), np.empty((len(kinds), *state.precision.shape[1:]))
    for number, rows in enumerate(np.split(order, np.cumsum(np.bincount(kind))[:-1])):
        unit, logged_term = unit_ids[rows[0]], logged.patterns[logged.pattern_ids[rows[0]]].term
        _, term, context = visible.patterns[visible.pattern_ids[rows[0]]]
        natural = state.natural_mean[unit] + (visible.natural[rows] - logged.natural[rows])
        own_state = State(state.precision[unit] + (term.precision - logged_term.precision), natural)
        bias = np.linalg.solve(own_state.precision, natural.T).T
        mean[rows] = (
            visible.centre[rows] + (visible.deviation[rows] - bias) @ (context.cov @ term.precision).T
        )
        covs[number] = context_of(own_state._replace(natural_mean=natural[0]), term, context).cov
    return Believed(mean, kind, covs)


def _sum_evidence(parameters: Parameters, logged: _Patterns, unit_ids: Ints) -> State:
    """The belief about each unit's bias, from all its rounds: (units, d, d) and (units, d)."""
    units = int(unit_ids.max()) + 1
    precision = np.tile(Incomplete(pairs=True).start(parameters).precision, (units, 1, 1))
    for rows, term, _ in logged.patterns:
        precision = precision + np.bincount(unit_ids[rows], minlength=units)[:, None, None] * term.precision
    total = [np.bincount(unit_ids, column, minlength=units) for column in logged.natural.T]
    return State(precision, np.stack(total, axis=1))
