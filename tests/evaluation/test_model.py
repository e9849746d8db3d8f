"""The model of rewards against generalised least squares written out, and sums against rounds one by one."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.evaluation.logs import World
from unfog.evaluation import model as models
from unfog.evaluation.beliefs import infer_contexts
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.model import PASSES, RIDGE, Data, cross_fit, fit
from unfog.maths.arrays import Array, Ints


def longhand(data: Data, places: Ints, weight: Array) -> tuple[Array, Array]:
    """Least squares with these weights for [1, mean] of each arm's block, from a stacked system."""
    k, d = data.features.arms, data.contexts.mean.shape[1]
    rows = np.zeros((len(places), k, d + 1))
    for row, t in zip(rows, places, strict=True):
        row[data.arm[t]] = [1.0, *data.contexts.mean[t]]
    rows = rows.reshape(len(places), -1)
    there = weight @ (rows != 0)
    size = np.where(there > 0, weight @ rows**2 / np.maximum(there, 1e-300), 1.0)
    offset = np.average(data.reward[places], weights=weight)
    root = np.sqrt(weight)
    stacked = np.concat([rows * root[:, None], np.diag(np.sqrt(RIDGE * size))])
    paid = np.concat([root * (data.reward[places] - offset), np.zeros(rows.shape[1])])
    return np.linalg.lstsq(stacked, paid)[0], rows


def test_where_rounds_know_equally_much_it_is_least_squares() -> None:
    world = World(d=2, arms=3)
    evaluation = EvaluationContext(world.log(60, 1), world.channel)
    places = np.arange(5, 47)
    theta, _ = longhand(evaluation.data, places, np.ones(len(places)))
    np.testing.assert_allclose(fit(evaluation.data, places).theta, theta, rtol=1e-9)


def test_rounds_that_know_less_weigh_less_as_their_variance_says() -> None:
    """W = s^2 / (s^2 + theta'Cov theta), theta'Cov theta with what theta may be, pass after pass."""
    world = World(d=2, arms=2)
    evaluation = EvaluationContext(world.log(80, 2, shown=0.3, lost=0.2), world.channel)
    data, places = evaluation.data, np.arange(10, 80)
    assert not data.contexts.alike
    weight = np.ones(len(places))
    for _ in range(PASSES + 1):
        theta, rows = longhand(data, places, weight)
        offset = np.average(data.reward[places], weights=weight)
        variance = float((weight * (data.reward[places] - offset - rows @ theta) ** 2).mean())
        there = weight @ (rows != 0)
        precision = (rows.T * weight) @ rows + RIDGE * np.diag(weight @ rows**2 / there)
        before, weight = weight, np.empty(len(places))
        for i, t in enumerate(places):
            cov = np.zeros((2, 3, 2, 3))
            arm = data.arm[t]
            cov[arm, 1:, arm, 1:] = data.contexts.covs[data.contexts.kind[t]]
            flat = cov.reshape(6, 6)
            hidden = theta @ flat @ theta + variance * np.trace(flat @ np.linalg.inv(precision))
            weight[i] = variance / (variance + hidden)
    found = fit(data, places)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-8)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-8)
    np.testing.assert_allclose(found.weights(data, places), weight, rtol=1e-8)
    assert before.min() < 0.9 < before.max()


@pytest.mark.parametrize("kind", [models.across, models.forward])
def test_models_of_sums_by_blocks_are_models_of_rounds(kind: Callable[[int], Iterator[models.Fold]]) -> None:
    world = World(d=3, arms=4)
    data = EvaluationContext(world.log(213, 4), world.channel).data
    cut = list(kind(data.rounds))
    for fold, model in zip(cut, cross_fit(data, cut).models, strict=True):
        alone = fit(data, fold.train)
        np.testing.assert_allclose(model.theta, alone.theta, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.offset, alone.offset)
        np.testing.assert_allclose(model.variance, alone.variance, rtol=1e-8)


def test_a_constant_added_to_rewards_is_added_to_what_it_says() -> None:
    world = World()
    data = EvaluationContext(world.log(100, 5), world.channel).data
    places = np.arange(100)
    plain = fit(data, places[:60])
    moved = data._replace(reward=data.reward + 1e6)
    np.testing.assert_allclose(
        fit(moved, places[:60]).predict(moved, places) - 1e6, plain.predict(data, places), atol=1e-6
    )


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_do_not_matter_to_a_map_in_the_callers_own(factor: float) -> None:
    """The ridge is as large as features are."""
    world, actions = World(d=2), np.array([[1.0, 0.5], [-0.4, 2.0], [0.7, -1.0]])
    log = world.log(90, 6)
    told = world.channel
    louder = told._replace(
        context_mean=told.context_mean * factor,
        bias=told.bias * factor,
        **{name: getattr(told, name) * factor**2 for name in ("context_cov", "noise_cov", "bias_cov")},
    )
    one = EvaluationContext(log, told, "product", actions)
    other = EvaluationContext(log._replace(noisy=log.noisy * factor), louder, "product", actions)
    np.testing.assert_allclose(other.across.rewards, one.across.rewards, rtol=1e-6)


def test_a_map_without_an_intercept_means_contexts_as_they_are() -> None:
    """Rewards (a * c)'theta without noise of their own, contexts known: it finds them, mean and all."""
    world, actions = World(d=2), np.array([[1.0, 0.5], [-0.4, 2.0], [0.7, -1.0]])
    log = world.log(4000, 7, shown=1.0)
    assert log.true is not None
    log = log._replace(reward=(actions[log.arm] * log.true) @ np.array([2.0, -1.0]))
    evaluation = EvaluationContext(log, world.channel, "product", actions)
    np.testing.assert_allclose(evaluation.across.models[0].theta, [2.0, -1.0], rtol=2e-3)
    assert log.true is not None
    np.testing.assert_allclose(infer_contexts(world.channel, log, own=True).mean, log.true)


def test_no_rounds_say_nothing() -> None:
    world = World()
    data = EvaluationContext(world.log(10, 8), world.channel).data
    found = fit(data, np.arange(0))
    assert (found.theta == 0).all()
    assert found.predict(data, np.arange(10)).shape == (10, 3)
