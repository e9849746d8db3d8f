"""What the model of rewards says that a policy earns at every level of noise: the shape of the curve.

At a level the policy takes the arm that the model likes best, for contexts denoised with the noise of that
level; contexts are Gaussian, as the channel has them. All levels, and all models, are asked about the same
draws, so that they differ by what they say and not by chance.

The curve is as uncertain as the model. Models of all rounds but one stretch of time say by how much.
"""

from collections.abc import Sequence

import numpy as np

from unfog.agents.choose.greedy import best
from unfog.channel.channel import Channel
from unfog.channel.knowledge import shrinkage
from unfog.evaluation.model import Data, Model, fit, rows_of, solved
from unfog.evaluation.scene import Scene
from unfog.evaluation.sums import Sums
from unfog.features import Context
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator

SAMPLE, FEWER = 200_000, 20_000  # contexts, for the model of all rounds and for each of the others


def curve(scene: Scene, channel: Channel, noises: Sequence[Array], model: Model, sample: int) -> Array:
    """Of a model, for noise covariances (d, d) each: (levels,)."""
    units, features = scene.units(channel), scene.features
    mean, cov = units.inside(channel.context_mean), units.noise(channel.context_cov)
    normals = generator(scene.seed, 0, "sensor model").standard_normal((sample, 2, len(cov)))
    true = mean + normals[:, 0] @ np.linalg.cholesky(cov).T
    paid, found = features.at(true).scores(model.theta), []
    for noise in (units.noise(one) for one in noises):
        noisy, shrunk = true + normals[:, 1] @ root(noise).T, shrinkage(mean, cov, noise)
        context = Context(mean + (noisy - mean) @ shrunk.gain.T, shrunk.cov)
        arm = best(features.design(context).scores(model.theta))
        found.append(float(np.take_along_axis(paid, arm[:, None], axis=1).mean()))
    return model.offset + np.array(found)


def root(cov: Array) -> Array:
    """A square root of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def models(data: Data, stretches: Sequence[Ints]) -> tuple[Model, list[Model]]:
    """Of all rounds, and of all but each stretch; rounds keep the weights that they have in the first."""
    every = fit(data, np.arange(data.rounds))
    sums = []
    for places in stretches:
        weights = every.weights(data, places)
        sums.append(Sums.of(rows_of(data, places), data.reward[places] - data.middle, weights))
    total = Sums.none(data.features.size)
    for one in sums:
        total = total.plus(one)
    return every, [solved(data, total.less(one)) for one in sums]
