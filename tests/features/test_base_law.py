"""The laws of scores against brute-force integrals over the context, for every kind of map."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from tests.problems import gauss_hermite, law_mean, law_variance, spd
from unfog.features import Context, FeatureMap
from unfog.features.base import Form, Weighed
from unfog.features.linear import matrix, product
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature
from unfog.maths.arrays import Array

K, D = 4, 2

QUANTITIES: list[Any] = [law_mean, law_variance, lambda law: law.expected_sigmoid()]


def waves(action: Any, context: Any) -> Any:
    """A map that no polynomial is: sin(a c) and cos(a + c), entry by entry."""
    xp = context.__array_namespace__()
    return xp.concat([xp.sin(action * context), xp.cos(action + context)], axis=-1)


def squares(action: Array, contexts: Array) -> Array:
    """[a^2, c^2, a c] at many contexts (n, d)."""
    return np.concatenate([np.broadcast_to(action**2, contexts.shape), contexts**2, action * contexts], -1)


def times(matrix: Array, contexts: Array) -> Array:
    return contexts @ matrix.T


def multiplied(action: Array, contexts: Array) -> Array:
    return action * contexts


# The builder of each map, phi itself, the shape of one action, and the number of features.
MAPS: dict[str, tuple[Callable[[Array], FeatureMap], Callable[[Array, Array], Array], tuple[int, ...], int]]
MAPS = {
    "quadratic": (quadratic, squares, (D,), 3 * D),
    "matrix, tall": (matrix, times, (5, D), 5),
    "matrix, wide": (matrix, times, (1, D), 1),
    "product": (product, multiplied, (D,), D),
    "quadrature": (quadrature(waves, D, 30), waves, (D,), 2 * D),
}


class Case:
    """Actions, a belief about the context and a theta: correlated, anisotropic, not centred."""

    def __init__(self, name: str, rng: np.random.Generator, *batch: int) -> None:
        build, self.phi, shape, size = MAPS[name]
        self.actions = rng.normal(0.4, 1.0, (*batch, K, *shape))
        self.context = Context(rng.normal(0.7, 1.0, (*batch, D)), spd(rng, D, 0.2, 1.5))
        self.theta = rng.normal(0.3, 1.0, (*batch, size))
        self.map = build(self.actions)


def over_contexts(context: Context, step: float = 0.1) -> tuple[Array, Array]:
    """Points (n, 2) and weights of a trapezium rule over N(mean, cov), exact to 1e-12 for what is smooth."""
    line = np.arange(-8.0, 8.0 + step, step)
    z = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    weights = np.exp(-(z**2).sum(-1) / 2)
    values, vectors = np.linalg.eigh(context.cov)
    return context.mean + z * np.sqrt(values) @ vectors.T, weights / weights.sum()


EVERY_MAP = pytest.mark.parametrize("name", MAPS)


def test_mean_and_variance_are_those_of_the_features(rng: np.random.Generator) -> None:
    for name in MAPS:
        check_mean_and_variance_are_those_of_the_features(name, rng)


def check_mean_and_variance_are_those_of_the_features(name: str, rng: np.random.Generator) -> None:
    case = Case(name, rng)
    points, weights = over_contexts(case.context)
    laws = case.map.design(case.context).laws(case.theta)
    for arm in range(K):
        features = case.phi(case.actions[arm], points)
        row = weights @ features
        cov = (weights[:, None] * (features - row)).T @ (features - row)
        law = laws.of(np.asarray(arm))
        assert float(law_mean(law)) == pytest.approx(row @ case.theta, rel=1e-9, abs=1e-11)
        assert float(law_variance(law)) == pytest.approx(case.theta @ cov @ case.theta, rel=1e-8)


@EVERY_MAP
def test_the_expected_sigmoid_is_an_integral_over_contexts(name: str, rng: np.random.Generator) -> None:
    case = Case(name, rng)
    points, weights = over_contexts(case.context)
    for scale in (0.3, 1.0, 2.0):
        theta, gaps = scale * case.theta, []
        laws = case.map.design(case.context).laws(theta)
        for arm in range(K):
            scores = case.phi(case.actions[arm], points) @ theta
            found = float(laws.of(np.asarray(arm)).expected_sigmoid())
            assert found == pytest.approx(weights @ expit(scores), abs=5e-6)
            gaps.append(abs(found - expit(weights @ scores)))
        assert max(gaps) > 1e-4, scale  # the sigmoid of the mean is another thing


def test_in_a_quadratic_map_of_three_dimensions_too(rng: np.random.Generator) -> None:
    actions, theta = rng.normal(0.2, 1.0, (K, 3)), rng.normal(0.2, 0.8, 9)
    context = Context(rng.normal(0.5, 1.0, 3), spd(rng, 3, 0.2, 1.2))
    laws = quadratic(actions).design(context).laws(theta)
    points, weights = gauss_hermite(context.mean, context.cov, 40)
    for arm, action in enumerate(actions):
        right = weights @ expit(squares(action, points) @ theta)
        assert float(laws.of(np.asarray(arm)).expected_sigmoid()) == pytest.approx(right, abs=5e-6)


def test_at_a_known_context_it_is_the_sigmoid(rng: np.random.Generator) -> None:
    for name in MAPS:
        check_at_a_known_context_it_is_the_sigmoid(name, rng)


def check_at_a_known_context_it_is_the_sigmoid(name: str, rng: np.random.Generator) -> None:
    case = Case(name, rng, 3)
    arm = np.array([2, 0, 3])
    law = case.map.at(case.context.mean).laws(case.theta).of(arm)
    contexts = case.context.mean
    right = [(case.phi(case.actions[i, arm[i]], contexts[[i]]) @ case.theta[i]).item() for i in range(3)]
    np.testing.assert_allclose(law_mean(law), right, rtol=1e-12)
    np.testing.assert_allclose(law_variance(law), 0.0, atol=1e-12)
    np.testing.assert_allclose(law.expected_sigmoid(), expit(np.array(right)), rtol=0, atol=1e-5)


@EVERY_MAP
def test_a_batch_is_its_members(name: str, rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_a_batch_is_its_members(name, shared, rng)


def check_a_batch_is_its_members(name: str, shared: bool, rng: np.random.Generator) -> None:
    trials = 5
    case, arms = Case(name, rng, trials), rng.integers(0, K, trials)
    covs = np.stack([case.context.cov if shared else spd(rng, D) for _ in range(trials)])
    context = Context(case.context.mean, covs[0] if shared else covs)
    law = case.map.design(context).laws(case.theta).of(arms)
    assert law_mean(law).shape == law_variance(law).shape == law.expected_sigmoid().shape == (trials,)
    for i in range(trials):
        alone = MAPS[name][0](case.actions[i]).design(Context(case.context.mean[i], covs[i]))
        single = alone.laws(case.theta[i]).of(arms[i])
        for quantity in QUANTITIES:
            found, right = quantity(law)[i], quantity(single)
            assert found == pytest.approx(float(right), rel=1e-10, abs=1e-12), quantity


@EVERY_MAP
def test_a_block_of_rounds_is_its_rounds(name: str, rng: np.random.Generator) -> None:
    """As the engine asks: theta without an axis for rounds, covariances without one for trials."""
    for shared in [True, False]:
        for rounds in [1, 4]:
            check_a_block_of_rounds_is_its_rounds(name, rounds, shared, rng)


def check_a_block_of_rounds_is_its_rounds(
    name: str, rounds: int, shared: bool, rng: np.random.Generator
) -> None:
    trials = 3
    case, arms = Case(name, rng, trials), rng.integers(0, K, (trials, rounds))
    means, covs = rng.normal(0.5, 1.0, (trials, rounds, D)), np.stack([spd(rng, D) for _ in range(rounds)])
    covs = np.stack([covs[0]] * rounds) if shared else covs
    context = Context(means, covs[0] if shared else covs)
    block = case.map.over_rounds().design(context).laws(case.theta[:, None]).of(arms)
    for quantity in QUANTITIES:
        found = quantity(block)
        assert found.shape == (trials, rounds)
        for t in range(rounds):
            one = case.map.design(Context(means[:, t], covs[t])).laws(case.theta).of(arms[:, t])
            np.testing.assert_allclose(found[:, t], quantity(one), rtol=1e-10, atol=1e-12)


@EVERY_MAP
def test_jax_gives_the_same_numbers(name: str, rng: np.random.Generator) -> None:
    case, arms = Case(name, rng, 4), rng.integers(0, K, 4)
    build = MAPS[name][0]

    def value(actions: Array, context: Context, theta: Array, arm: Any) -> Array:
        return build(actions).design(context).laws(theta).of(arm).expected_sigmoid()

    given = case.actions, case.context, case.theta
    found = jax.jit(value)(*jax.tree.map(jnp.asarray, given), jnp.asarray(arms))
    np.testing.assert_allclose(found, value(*given, arms), rtol=0, atol=1e-12)


def test_a_form_has_the_moments_of_a_quadratic_in_normals(rng: np.random.Generator) -> None:
    form = Form(np.asarray(0.7), np.array([1.1, -0.3]), np.array([0.4, -0.9]))
    points, weights = gauss_hermite(np.zeros(2), np.eye(2), 10)
    values = form.shift + points @ form.slope + points**2 @ form.curvature
    assert float(law_mean(form)) == pytest.approx(weights @ values)
    assert float(law_variance(form)) == pytest.approx(weights @ values**2 - (weights @ values) ** 2)


def test_nodes_are_handed_on(rng: np.random.Generator) -> None:
    form = Form(np.asarray(3.0), np.array([9.0]), np.array([-4.0]))
    few, many = float(form.expected_sigmoid(4)), float(form.expected_sigmoid(200))
    assert abs(few - many) > 1e-3
    assert float(form.expected_sigmoid()) == pytest.approx(many, abs=1e-5)


def test_weighed_values_give_weighed_sums(rng: np.random.Generator) -> None:
    values, weights = rng.normal(1.0, 2.0, (3, 7)), rng.dirichlet(np.ones(7))
    law = Weighed(values, weights)
    for i in range(3):
        mean = sum(w * v for w, v in zip(weights, values[i], strict=True))
        spread = sum(w * (v - mean) ** 2 for w, v in zip(weights, values[i], strict=True))
        chance = sum(w / (1 + np.exp(-v)) for w, v in zip(weights, values[i], strict=True))
        found = law_mean(law)[i], law_variance(law)[i], law.expected_sigmoid()[i]
        assert found == pytest.approx((mean, spread, chance), rel=1e-12)
