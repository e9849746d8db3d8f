"""What is a better sensor worth? Values with more noise than there is, extrapolated to less.

A policy that adds noise to the context it is shown is still a policy of that context, so a log can say what
it earns (evaluation/estimators.py). At level l the noise has the covariance (1 + l) N, and the policy takes
the arm that the model of rewards likes best for a context denoised with that; at l = 0 this is the sensor as
it is. What is read off at l = -1 is the value with a perfect sensor, at l = -1/2 with one of half the
variance. This is simulation and extrapolation (J. R. Cook and L. A. Stefanski, *Simulation-Extrapolation
Estimation in Parametric Measurement Error Models*).

Curves through the values V(l) are polynomials, or `model`: V = a + b f(l), where f is what the fitted model
of rewards says the value is at each l. If the model is right, b is 1 and nothing is left to be guessed. Every
curve here is linear in its coefficients, so that the extrapolated value is a sum c(l) V(l). Its error is
estimated by leaving out one stretch of time after the other (the jackknife), which accounts for the
correlation of values at different l. The model is refitted without each stretch as well, so that the error
includes the uncertainty of the shape of the curve.

The ladder compares policies of readings taken for the truth, of denoised readings and of a perfect sensor.
For rounds whose true context is known it has two more rungs, denoised readings and the true context; such
rounds may differ from others, so these two are compared with each other. The policy of the true context can
be valued like any other: the arm was drawn from the noisy context, and given that is independent of the true
one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents.choose.greedy import best
from unfog.channel.channel import Channel
from unfog.channel.knowledge import shrinkage
from unfog.evaluation.beliefs import Believed, infer_by_round
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.estimators import Case, DoublyRobust
from unfog.evaluation.model import Data, Model, Sums, fit, rows_of, solve_model
from unfog.evaluation.policies import Tick, choose_best, noisy_model, silent
from unfog.features import Context
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import singular_root
from unfog.maths.random import generator
from unfog.maths.statistics import Estimate, jackknife_error
from unfog.validation import InputError

LEVELS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
AS_IT_IS = (LEVELS == 0).astype(float)
READ = np.array([-1.0, -0.75, -0.5, -0.25])  # levels that are read off
DRAWS = 20  # of noise that is added to each round
DEGREES = {"linear": 1, "quadratic": 2, "cubic": 3}
CURVES = ("model", *DEGREES)
STRETCHES = 50  # of time, one of which is left out after the other
SAMPLE, FEWER = 200_000, 20_000  # contexts, for the model of all rounds and for each of the others
LEAST = 200  # rounds with a true context
THERE = "denoised, known"  # the rung of denoised contexts in the rounds whose true context is known


class Sensor(NamedTuple):
    """The results for one sensor, or for all of them together."""

    which: str  # a coordinate, or ""
    values: list[Estimate]  # at these
    read: dict[str, list[Estimate]]  # by curve, at READ
    worth: dict[str, list[Estimate]]  # by curve: the same, less the value at level 0
    slope: Estimate  # of values over what the model says of them: 1, if it is right


class Rung(NamedTuple):
    """A rung of the ladder."""

    name: str
    value: Estimate
    rounds: int


def sensor(evaluation: EvaluationContext, which: str = "", tick: Tick = silent) -> Sensor:
    """Values at every level, and what curves through them say of less noise."""
    if evaluation.channel is None:
        allowed = "a channel, or a log with enough true contexts to find one"
        raise InputError("channel", evaluation.about_channel, allowed)
    extra = own_noise(evaluation.channel, which, evaluation.log.coordinates)
    scores = np.stack([_scores(evaluation, extra, level, tick) for level in LEVELS])
    curves = _compute_curves(evaluation, evaluation.channel, extra)
    read, worth = dict[str, list[Estimate]](), dict[str, list[Estimate]]()
    for name in CURVES:
        combinations = [_find_coefficients(name, curves, i) for i in range(len(READ))]
        read[name] = [_combine(weights, scores) for weights in combinations]
        worth[name] = [_combine(weights - AS_IT_IS, scores) for weights in combinations]
    by_model = _combine(np.stack([slope(one[: len(LEVELS)]) for one in curves]), scores)
    return Sensor(which, [jackknife(row) for row in scores], read, worth, by_model)


def own_noise(channel: Channel, which: str, names: tuple[str, ...]) -> Array:
    """The noise covariance that is added and taken away: that of all sensors, or one sensor's own.

    A sensor's own noise is the part that the others do not share: its variance given their noise.
    """
    if not which:
        return channel.noise_cov
    if which not in names:
        raise InputError("sensor", which, f"all, or one of {', '.join(names)}")
    j, cov = names.index(which), np.zeros_like(channel.noise_cov)
    cov[j, j] = 1 / np.linalg.inv(channel.noise_cov)[j, j]
    return cov


def _scores(evaluation: EvaluationContext, extra: Array, level: float, tick: Tick) -> Array:
    """The doubly robust scores of the policy at this level of noise: (n,)."""
    log, channel = evaluation.log, evaluation.channel
    assert channel is not None
    noisier = channel._replace(noise_cov=channel.noise_cov + level * extra)
    rng, root = generator(evaluation.seed, 0, f"sensor {level:g}"), singular_root(level * extra)
    table, draws = np.zeros((log.rounds, len(log.arms))), DRAWS if level else 1
    noise = None if log.noise is None else log.noise + level * extra
    for _ in range(draws):
        added = rng.standard_normal(log.noisy.shape) @ root.T
        context = infer_by_round(
            noisier, log._replace(noisy=log.noisy + added, noise=noise), own=evaluation.own
        )
        table += choose_best(evaluation.across.asked(context), log) / draws
        tick(1)
    return score_policy(evaluation, table)


def score_policy(evaluation: EvaluationContext, table: Array) -> Array:
    """The doubly robust scores of a policy (n, K): (n,)."""
    log = evaluation.log
    case = Case(table, log.arm, log.reward, log.probability, lambda: evaluation.across)
    return DoublyRobust().scores(case).numerator


def _compute_curves(evaluation: EvaluationContext, channel: Channel, extra: Array) -> Array:
    """The values by the model at LEVELS and READ: fitted on all rounds first, then without each stretch."""
    noises = [channel.noise_cov + level * extra for level in (*LEVELS, *READ)]
    full, others = models(evaluation.data, stretches(evaluation.log.rounds))
    parts = [curve(evaluation, channel, noises, model, FEWER) for model in others]
    return np.stack([curve(evaluation, channel, noises, full, SAMPLE), *parts])


def models(data: Data, stretches: Sequence[Ints]) -> tuple[Model, list[Model]]:
    """Models of all rounds, and of all but each stretch; rounds keep the weights they have in the first."""
    full = fit(data, np.arange(data.rounds))
    sums = []
    for index in stretches:
        weights = full.weights(data, index)
        sums.append(Sums.of(rows_of(data, index), data.reward[index] - data.middle, weights))
    total = Sums.none(data.features.size)
    for stretch in sums:
        total = total.plus(stretch)
    return full, [solve_model(data, total.less(stretch)) for stretch in sums]


def curve(
    evaluation: EvaluationContext, channel: Channel, noises: Sequence[Array], model: Model, sample: int
) -> Array:
    """What a model of rewards says the policy earns at every level of noise: (levels,).

    At a level, which has a noise covariance (d, d), the policy takes the arm that the model likes best, for
    contexts denoised with that noise; contexts are Gaussian, as the channel has them. All levels, and all
    models, are asked about the same draws, so that they differ by what they say and not by chance.
    """
    units, features = evaluation.units(channel), evaluation.features
    mean, cov = units.inside(channel.context_mean), units.noise(channel.context_cov)
    normals = generator(evaluation.seed, 0, "sensor model").standard_normal((sample, 2, len(cov)))
    true = mean + normals[:, 0] @ np.linalg.cholesky(cov).T
    paid, values = features.at(true).scores(model.theta), []
    for noise in (units.noise(one) for one in noises):
        noisy, shrunk = true + normals[:, 1] @ singular_root(noise).T, shrinkage(mean, cov, noise)
        context = Context(mean + (noisy - mean) @ shrunk.gain.T, shrunk.cov)
        arm = best(features.design(context).scores(model.theta))
        values.append(float(np.take_along_axis(paid, arm[:, None], axis=1).mean()))
    return model.offset + np.array(values)


def _find_coefficients(name: str, curves: Array, i: int) -> Array:
    """The weights of values in the extrapolated one, for all rounds and without each stretch: (1 + S, L)."""
    n = len(LEVELS)
    return np.stack([coefficients(name, LEVELS, READ[i], model[:n], model[n + i]) for model in curves])


def coefficients(curve: str, levels: Array, at: float, model: Array, model_at: float) -> Array:
    """The weights c(l) of values at `levels` (L,) in what the curve says at another level.

    `model` (L,) and `model_at` are f at these levels and there.
    """
    if curve == "model":
        rows, target = _design_line(model), np.array([1.0, model_at])
    else:
        powers = np.arange(DEGREES[curve] + 1)
        rows, target = levels[:, None] ** powers, np.asarray(at**powers, dtype=float)
    return np.linalg.lstsq(rows.T, target)[0]


def slope(model: Array) -> Array:
    """The weights of values in b of the curve `model`, which is 1 if the model is right."""
    return np.linalg.lstsq(_design_line(model).T, np.array([0.0, 1.0]))[0]


def _design_line(model: Array) -> Array:
    return np.stack([np.ones_like(model), model], axis=1)


def _combine(weights: Array, scores: Array) -> Estimate:
    """A weighted sum of values, from scores (L, n); weights (1 + S, L) are those of `_find_coefficients`."""
    return jackknife_estimate(
        float(weights[0] @ scores.mean(axis=1)), np.vecdot(weights[1:], left_out(scores))
    )


def stretches(rounds: int) -> list[Ints]:
    """The rounds that are left out together."""
    return np.array_split(np.arange(rounds), min(STRETCHES, rounds))


def left_out(scores: Array) -> Array:
    """Means of scores (..., n) over all rounds but those of each stretch: (stretches, ...)."""
    n, total = scores.shape[-1], scores.sum(axis=-1)
    parts = stretches(n)
    return np.stack([(total - scores[..., part].sum(axis=-1)) / max(n - len(part), 1) for part in parts])


def jackknife_estimate(mean: float, leave_one_out: Array) -> Estimate:
    """The error of an estimate, from estimates (stretches,) without each stretch of time."""
    return Estimate(float(mean), jackknife_error(leave_one_out) if len(leave_one_out) > 1 else np.nan)


def jackknife(scores: Array) -> Estimate:
    """The mean of scores (n,)."""
    return jackknife_estimate(float(scores.mean()), left_out(scores))


def ladder(evaluation: EvaluationContext) -> list[Rung]:
    """Values of the policies that read noisy contexts, denoised ones and, where it is known, the truth."""
    n = evaluation.log.rounds
    denoised = score_policy(evaluation, choose_best(evaluation.across.asked(evaluation.seen), evaluation.log))
    rungs = [
        Rung(
            "naive",
            jackknife(score_policy(evaluation, choose_best(noisy_model(evaluation), evaluation.log))),
            n,
        ),
        Rung("denoised", jackknife(denoised), n),
    ]
    known = np.flatnonzero(evaluation.log.known())
    if len(known) >= LEAST and evaluation.log.true is not None and evaluation.channel is not None:
        rungs.append(Rung(THERE, jackknife(denoised[known]), len(known)))
        no_cov = np.zeros((1, *evaluation.channel.noise_cov.shape))
        inside = evaluation.units(evaluation.channel).inside(np.nan_to_num(evaluation.log.true))
        truth = Believed(inside, np.zeros(n, np.intp), no_cov)
        table = choose_best(evaluation.across.asked(truth), evaluation.log)
        rungs.append(Rung("true", jackknife(score_policy(evaluation, table)[known]), len(known)))
    return rungs
