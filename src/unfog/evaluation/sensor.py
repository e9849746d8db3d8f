"""What is a better sensor worth? Values with more noise than there is, extrapolated to less.

A policy that adds noise to the context it is shown is still a policy of that context, so a log can say what
it earns (evaluation/estimators). At level l the noise has the covariance (1 + l) N, and the policy takes the
arm that the model of rewards likes best for a context denoised with that; at l = 0 this is the sensor as it
is. What is read off at l = -1 is the value with a perfect sensor, at l = -1/2 with one of half the variance.

The ladder: readings taken for the truth, denoised, a perfect sensor; and in rounds whose true context is
known denoised ones again, and the policy that sees the truth. Such rounds may differ from others, so that
these two rungs go with each other. A policy of the truth is as valid as any other: the arm was drawn from the
noisy context, and given that has nothing to do with the true one.
"""

from typing import NamedTuple

import numpy as np

from unfog.channel.channel import Channel
from unfog.evaluation.case import Case
from unfog.evaluation.contexts import Believed, seen
from unfog.evaluation.curve import FEWER, SAMPLE, curve, models, root
from unfog.evaluation.estimators.doubly_robust import DoublyRobust
from unfog.evaluation.policies import liked, noisy_model
from unfog.evaluation.scene import Scene
from unfog.evaluation.simex import (
    CURVES,
    Jackknifed,
    coefficients,
    jackknife,
    jackknifed,
    left_out,
    slope,
    stretches,
)
from unfog.evaluation.taught import Tick, silent
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.validation import InputError

LEVELS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
AS_IT_IS = (LEVELS == 0).astype(float)
READ = np.array([-1.0, -0.75, -0.5, -0.25])  # levels that are read off
DRAWS = 20  # of noise that is added to each round
LEAST = 200  # rounds with a true context
THERE = "denoised, known"  # the rung of denoised contexts in the rounds whose truth is known


class Sensor(NamedTuple):
    """What was found, for one sensor or all of them."""

    which: str  # a coordinate, or ""
    values: list[Jackknifed]  # at these
    read: dict[str, list[Jackknifed]]  # by curve, at READ
    worth: dict[str, list[Jackknifed]]  # by curve: the same, less the value at level 0
    slope: Jackknifed  # of values over what the model says of them: 1, if it is right


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


def sensor(scene: Scene, which: str = "", tick: Tick = silent) -> Sensor:
    """Values at every level, and what curves through them say of less noise."""
    if scene.channel is None:
        allowed = "a channel, or a log with enough true contexts to find one"
        raise InputError("channel", scene.about_channel, allowed)
    extra = own_noise(scene.channel, which, scene.log.coordinates)
    scores = np.stack([_scores(scene, extra, level, tick) for level in LEVELS])
    curves = _curves(scene, scene.channel, extra)
    read, worth = dict[str, list[Jackknifed]](), dict[str, list[Jackknifed]]()
    for name in CURVES:
        told = [_coefficients(name, curves, place) for place in range(len(READ))]
        read[name] = [_combined(weights, scores) for weights in told]
        worth[name] = [_combined(weights - AS_IT_IS, scores) for weights in told]
    by_model = _combined(np.stack([slope(one[: len(LEVELS)]) for one in curves]), scores)
    return Sensor(which, [jackknife(row) for row in scores], read, worth, by_model)


def _curves(scene: Scene, channel: Channel, extra: Array) -> Array:
    """What models say at LEVELS and READ: that of all rounds first, then those without each stretch."""
    noises = [channel.noise_cov + level * extra for level in (*LEVELS, *READ)]
    whole, others = models(scene.data, stretches(scene.log.rounds))
    parts = [curve(scene, channel, noises, one, FEWER) for one in others]
    return np.stack([curve(scene, channel, noises, whole, SAMPLE), *parts])


def _coefficients(name: str, curves: Array, place: int) -> Array:
    """The weights of values in what is read off, for all rounds and without each stretch: (1 + S, L)."""
    number = len(LEVELS)
    return np.stack(
        [coefficients(name, LEVELS, READ[place], one[:number], one[number + place]) for one in curves]
    )


def _combined(weights: Array, scores: Array) -> Jackknifed:
    """Values (L, n) weighed, with these weights (1 + S, L) for all rounds and without each stretch."""
    return jackknifed(float(weights[0] @ scores.mean(axis=1)), np.vecdot(weights[1:], left_out(scores)))


def _scores(scene: Scene, extra: Array, level: float, tick: Tick) -> Array:
    """What the policy of this level earns, round by round: (n,)."""
    log, channel = scene.log, scene.channel
    assert channel is not None
    louder = channel._replace(noise_cov=channel.noise_cov + level * extra)
    source, spread = generator(scene.seed, 0, f"sensor {level:g}"), root(level * extra)
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


class Rung(NamedTuple):
    """One of the ladder."""

    name: str
    found: Jackknifed
    rounds: int


def ladder(scene: Scene) -> list[Rung]:
    """Naive, denoised, and where it is known, true."""
    n = scene.log.rounds
    found = [
        Rung("naive", jackknife(scored(scene, liked(noisy_model(scene), scene.log))), n),
        Rung("denoised", jackknife(scored(scene, liked(scene.across.asked(scene.seen), scene.log))), n),
    ]
    known = np.flatnonzero(scene.log.known())
    if len(known) >= LEAST and scene.log.true is not None and scene.channel is not None:
        there = scored(scene, liked(scene.across.asked(scene.seen), scene.log))[known]
        found.append(Rung(THERE, jackknife(there), len(known)))
        nothing = np.zeros((1, *scene.channel.noise_cov.shape))
        inside = scene.units(scene.channel).inside(np.nan_to_num(scene.log.true))
        truth = Believed(inside, np.zeros(n, np.intp), nothing)
        table = liked(scene.across.asked(truth), scene.log)
        found.append(Rung("true", jackknife(scored(scene, table)[known]), len(known)))
    return found
