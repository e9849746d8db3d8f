"""What is a better sensor worth? Values with more noise than there is, extrapolated to less.

A policy that adds noise to the context it is shown is still a policy of that context, so a log can say what
it earns (evaluation/estimators.py). At level l the noise has the covariance (1 + l) N, and the policy takes
the arm that the model of rewards likes best for a context denoised with that; at l = 0 this is the sensor as
it is. What is read off at l = -1 is the value with a perfect sensor, at l = -1/2 with one of half the
variance. This is simulation and extrapolation (J. R. Cook and L. A. Stefanski, *Simulation-Extrapolation
Estimation in Parametric Measurement Error Models*).

Curves through the values V(l) are polynomials, or `model`: V = a + b f(l), where f is what the fitted model
of rewards says the value is at each l. If the model is right, b is 1 and nothing is left to be guessed. Every
curve here is linear in its coefficients, so that what is read off is a sum c(l) V(l). Its error is found by
leaving out one stretch of time after the other (the jackknife), which sees also how values at different l
hang together. The model is fitted anew without each stretch, too, so that the error knows how uncertain the
shape of its curve is.

The ladder: readings taken for the truth, denoised, a perfect sensor; and in rounds whose true context is
known denoised ones again, and the policy that sees the truth. Such rounds may differ from others, so that
these two rungs go with each other. A policy of the truth is as valid as any other: the arm was drawn from the
noisy context, and given that has nothing to do with the true one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents.choose.greedy import best
from unfog.channel.channel import Channel
from unfog.channel.knowledge import shrinkage
from unfog.evaluation.beliefs import Believed, seen
from unfog.evaluation.context import Scene
from unfog.evaluation.estimators import Case, DoublyRobust
from unfog.evaluation.model import Data, Model, Sums, fit, rows_of, solved
from unfog.evaluation.policies import Tick, liked, noisy_model, silent
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
THERE = "denoised, known"  # the rung of denoised contexts in the rounds whose truth is known


class Sensor(NamedTuple):
    """What was found, for one sensor or all of them."""

    which: str  # a coordinate, or ""
    values: list[Estimate]  # at these
    read: dict[str, list[Estimate]]  # by curve, at READ
    worth: dict[str, list[Estimate]]  # by curve: the same, less the value at level 0
    slope: Estimate  # of values over what the model says of them: 1, if it is right


class Rung(NamedTuple):
    """One of the ladder."""

    name: str
    found: Estimate
    rounds: int


def sensor(scene: Scene, which: str = "", tick: Tick = silent) -> Sensor:
    """Values at every level, and what curves through them say of less noise."""
    if scene.channel is None:
        allowed = "a channel, or a log with enough true contexts to find one"
        raise InputError("channel", scene.about_channel, allowed)
    extra = own_noise(scene.channel, which, scene.log.coordinates)
    scores = np.stack([_scores(scene, extra, level, tick) for level in LEVELS])
    curves = _curves(scene, scene.channel, extra)
    read, worth = dict[str, list[Estimate]](), dict[str, list[Estimate]]()
    for name in CURVES:
        told = [_coefficients(name, curves, place) for place in range(len(READ))]
        read[name] = [_combined(weights, scores) for weights in told]
        worth[name] = [_combined(weights - AS_IT_IS, scores) for weights in told]
    by_model = _combined(np.stack([slope(one[: len(LEVELS)]) for one in curves]), scores)
    return Sensor(which, [jackknife(row) for row in scores], read, worth, by_model)


def own_noise(channel: Channel, which: str, names: tuple[str, ...]) -> Array:
    """The covariance that is added and taken away: of all sensors, or what one has of its own.

    Of one that is the part of its noise that the others do not share: the variance given theirs.
    """
    if not which:
        return channel.noise_cov
    if which not in names:
        raise InputError("sensor", which, f"all, or one of {', '.join(names)}")
    place, found = names.index(which), np.zeros_like(channel.noise_cov)
    found[place, place] = 1 / np.linalg.inv(channel.noise_cov)[place, place]
    return found


def _scores(scene: Scene, extra: Array, level: float, tick: Tick) -> Array:
    """What the policy of this level earns, round by round: (n,)."""
    log, channel = scene.log, scene.channel
    assert channel is not None
    louder = channel._replace(noise_cov=channel.noise_cov + level * extra)
    source, spread = generator(scene.seed, 0, f"sensor {level:g}"), singular_root(level * extra)
    table, number = np.zeros((log.rounds, len(log.arms))), DRAWS if level else 1
    for _ in range(number):
        added = source.standard_normal(log.noisy.shape) @ spread.T
        context = seen(louder, log._replace(noisy=log.noisy + added), own=scene.own)
        table += liked(scene.across.asked(context), log) / number
        tick(1)
    return scored(scene, table)


def scored(scene: Scene, table: Array) -> Array:
    """The doubly robust scores of a policy (n, K): (n,)."""
    log = scene.log
    case = Case(table, log.arm, log.reward, log.probability, lambda: scene.across)
    return DoublyRobust().scores(case).numerator


def _curves(scene: Scene, channel: Channel, extra: Array) -> Array:
    """What models say at LEVELS and READ: that of all rounds first, then those without each stretch."""
    noises = [channel.noise_cov + level * extra for level in (*LEVELS, *READ)]
    whole, others = models(scene.data, stretches(scene.log.rounds))
    parts = [curve(scene, channel, noises, one, FEWER) for one in others]
    return np.stack([curve(scene, channel, noises, whole, SAMPLE), *parts])


def models(data: Data, stretches: Sequence[Ints]) -> tuple[Model, list[Model]]:
    """Models of all rounds, and of all but each stretch; rounds keep the weights they have in the first."""
    every = fit(data, np.arange(data.rounds))
    sums = []
    for places in stretches:
        weights = every.weights(data, places)
        sums.append(Sums.of(rows_of(data, places), data.reward[places] - data.middle, weights))
    total = Sums.none(data.features.size)
    for one in sums:
        total = total.plus(one)
    return every, [solved(data, total.less(one)) for one in sums]


def curve(scene: Scene, channel: Channel, noises: Sequence[Array], model: Model, sample: int) -> Array:
    """What a model of rewards says the policy earns at every level of noise: (levels,).

    At a level, which has a noise covariance (d, d), the policy takes the arm that the model likes best, for
    contexts denoised with that noise; contexts are Gaussian, as the channel has them. All levels, and all
    models, are asked about the same draws, so that they differ by what they say and not by chance.
    """
    units, features = scene.units(channel), scene.features
    mean, cov = units.inside(channel.context_mean), units.noise(channel.context_cov)
    normals = generator(scene.seed, 0, "sensor model").standard_normal((sample, 2, len(cov)))
    true = mean + normals[:, 0] @ np.linalg.cholesky(cov).T
    paid, found = features.at(true).scores(model.theta), []
    for noise in (units.noise(one) for one in noises):
        noisy, shrunk = true + normals[:, 1] @ singular_root(noise).T, shrinkage(mean, cov, noise)
        context = Context(mean + (noisy - mean) @ shrunk.gain.T, shrunk.cov)
        arm = best(features.design(context).scores(model.theta))
        found.append(float(np.take_along_axis(paid, arm[:, None], axis=1).mean()))
    return model.offset + np.array(found)


def _coefficients(name: str, curves: Array, place: int) -> Array:
    """The weights of values in what is read off, for all rounds and without each stretch: (1 + S, L)."""
    number = len(LEVELS)
    return np.stack(
        [coefficients(name, LEVELS, READ[place], one[:number], one[number + place]) for one in curves]
    )


def coefficients(curve: str, levels: Array, at: float, model: Array, model_at: float) -> Array:
    """The weights c(l) of values at `levels` (L,) in what the curve says at another level.

    `model` (L,) and `model_at` are f at these levels and there.
    """
    if curve == "model":
        rows, wanted = _line(model), np.array([1.0, model_at])
    else:
        powers = np.arange(DEGREES[curve] + 1)
        rows, wanted = levels[:, None] ** powers, np.asarray(at**powers, dtype=float)
    return np.linalg.lstsq(rows.T, wanted)[0]


def slope(model: Array) -> Array:
    """The weights of values in b of the curve `model`, which is 1 if the model is right."""
    return np.linalg.lstsq(_line(model).T, np.array([0.0, 1.0]))[0]


def _line(model: Array) -> Array:
    return np.stack([np.ones_like(model), model], axis=1)


def _combined(weights: Array, scores: Array) -> Estimate:
    """Values (L, n) weighed, with these weights (1 + S, L) for all rounds and without each stretch."""
    return jackknifed(float(weights[0] @ scores.mean(axis=1)), np.vecdot(weights[1:], left_out(scores)))


def stretches(rounds: int) -> list[Ints]:
    """The rounds that are left out together."""
    return np.array_split(np.arange(rounds), min(STRETCHES, rounds))


def left_out(scores: Array) -> Array:
    """Means of scores (..., n) over all rounds but those of each stretch: (stretches, ...)."""
    n, total = scores.shape[-1], scores.sum(axis=-1)
    parts = stretches(n)
    return np.stack([(total - scores[..., part].sum(axis=-1)) / max(n - len(part), 1) for part in parts])


def jackknifed(mean: float, left: Array) -> Estimate:
    """The error of an estimate, from estimates (stretches,) without each stretch of time."""
    return Estimate(float(mean), jackknife_error(left) if len(left) > 1 else np.nan)


def jackknife(scores: Array) -> Estimate:
    """The mean of scores (n,)."""
    return jackknifed(float(scores.mean()), left_out(scores))


def ladder(scene: Scene) -> list[Rung]:
    """Values of the policies that read noisy contexts, denoised ones and, where it is known, the truth."""
    n = scene.log.rounds
    denoised = scored(scene, liked(scene.across.asked(scene.seen), scene.log))
    found = [
        Rung("naive", jackknife(scored(scene, liked(noisy_model(scene), scene.log))), n),
        Rung("denoised", jackknife(denoised), n),
    ]
    known = np.flatnonzero(scene.log.known())
    if len(known) >= LEAST and scene.log.true is not None and scene.channel is not None:
        found.append(Rung(THERE, jackknife(denoised[known]), len(known)))
        nothing = np.zeros((1, *scene.channel.noise_cov.shape))
        inside = scene.units(scene.channel).inside(np.nan_to_num(scene.log.true))
        truth = Believed(inside, np.zeros(n, np.intp), nothing)
        table = liked(scene.across.asked(truth), scene.log)
        found.append(Rung("true", jackknife(scored(scene, table)[known]), len(known)))
    return found
