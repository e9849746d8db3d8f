"""Quadrature against exact Gaussian moments and closed forms, and against the map it must reproduce."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest

from tests.problems import every_covariance, every_row, feature_moments, spd
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import degree5_rule, error_estimate, product_rule, quadrature
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.validation import InputError

K, D = 4, 3


def vector_phi(action: Array, context: Array) -> Array:
    """The quadratic map as a user would write it."""
    action, context = np.broadcast_arrays(action, context)
    return np.concatenate([action**2, context**2, action * context], -1)


def wave_phi(action: Array, context: Array) -> Array:
    """Two features that are no polynomials: exp and sin of a'c."""
    angle = (action * context).sum(-1)
    return np.stack([np.exp(angle), np.sin(angle)], -1)


def wave_moments(action: Array, context: Context) -> tuple[Array, Array]:
    """Their expectations and standard deviations, in closed form."""
    mean, spread = action @ context.mean, action @ context.cov @ action
    grown, waved = np.exp(mean + spread / 2), np.sin(mean) * np.exp(-spread / 2)
    second = [np.exp(2 * mean + 2 * spread), (1 - np.cos(2 * mean) * np.exp(-2 * spread)) / 2]
    return np.array([grown, waved]), np.sqrt(np.array(second) - np.array([grown, waved]) ** 2)


def standard_moment(powers: Sequence[int]) -> int:
    """E of a monomial of independent standard normals: double factorials."""
    return prod(0 if p % 2 else prod(range(p - 1, 0, -2)) for p in powers)


def moment(powers: tuple[int, ...], mean: Array, cov: Array) -> float:
    """E of a monomial of N(mean, cov), by Stein: E[c_i f] = mean_i E[f] + sum_j cov_ij E[d_j f]."""
    if not any(powers):
        return 1.0
    i = next(i for i, p in enumerate(powers) if p)
    rest = [p - (j == i) for j, p in enumerate(powers)]
    total = float(mean[i]) * moment(tuple(rest), mean, cov)
    for j, p in enumerate(rest):
        if p:
            lower = tuple(q - (k == j) for k, q in enumerate(rest))
            total += float(cov[i, j]) * p * moment(lower, mean, cov)
    return total


def monomials(dim: int, degree: int) -> list[tuple[int, ...]]:
    return [powers for powers in product(range(degree + 1), repeat=dim) if sum(powers) <= degree]


class PhiOfPowers:
    """phi whose features are monomials of the context; the action scales them."""

    def __init__(self, powers: Array) -> None:
        self.powers = powers

    def __call__(self, action: Array, context: Array) -> Array:
        return action[..., :1] * np.prod(context[..., None, :] ** self.powers, -1)


@pytest.fixture
def actions(rng: np.random.Generator) -> Array:
    return rng.normal(0.3, 0.6, (K, D))


@pytest.fixture
def context(rng: np.random.Generator) -> Context:
    return Context(rng.normal(0.7, 0.5, D), spd(rng, D))


def test_product_rule_is_exact_to_its_degree_in_each_coordinate() -> None:
    for dim, order in [(1, 1), (1, 6), (2, 4), (3, 3)]:
        check_product_rule_is_exact_to_its_degree_in_each_coordinate(dim, order)


def check_product_rule_is_exact_to_its_degree_in_each_coordinate(dim: int, order: int) -> None:
    nodes, weights = product_rule(dim, order)
    assert nodes.shape == (order**dim, dim)
    for powers in product(range(2 * order), repeat=dim):
        found = weights @ np.prod(nodes ** np.array(powers), 1)
        scale = weights @ np.prod(np.abs(nodes) ** np.array(powers), 1)
        assert found == pytest.approx(standard_moment(powers), abs=1e-12 * max(1.0, scale))
    beyond = weights @ nodes[:, 0] ** (2 * order)
    assert beyond < 0.99 * standard_moment([2 * order])


def test_degree5_rule_is_exact_to_total_degree_5() -> None:
    for dim in [1, 2, 4, 5, 7]:
        check_degree5_rule_is_exact_to_total_degree_5(dim)


def check_degree5_rule_is_exact_to_total_degree_5(dim: int) -> None:
    nodes, weights = degree5_rule(dim)
    assert nodes.shape == (2 * dim**2 + 1, dim)
    for powers in monomials(dim, 5):
        found = weights @ np.prod(nodes ** np.array(powers), 1)
        assert found == pytest.approx(standard_moment(powers), abs=1e-12)
    assert weights @ nodes[:, 0] ** 6 != pytest.approx(15, rel=0.05)


def test_polynomials_of_a_correlated_context_are_exact(context: Context) -> None:
    powers = monomials(D, 5)
    features = quadrature(PhiOfPowers(np.array(powers)), D, 3)(np.ones((1, 1)))
    rows = every_row(features.design(context), 1)[0]
    truth = [moment(p, context.mean, context.cov) for p in powers]
    np.testing.assert_allclose(rows, truth, rtol=1e-12, atol=1e-12)


def test_seven_dimensions_use_the_degree5_rule(rng: np.random.Generator) -> None:
    context = Context(rng.normal(0.7, 0.5, 7), spd(rng, 7))
    powers = rng.permutation(np.array(monomials(7, 5)))[:120]
    features = quadrature(PhiOfPowers(powers), 7)(np.array([[2.0]]))
    assert features.nodes.shape == (99, 7)
    truth = [2 * moment(tuple(p), context.mean, context.cov) for p in powers.tolist()]
    np.testing.assert_allclose(every_row(features.design(context), 1)[0], truth, rtol=1e-11, atol=1e-11)


def test_up_to_six_dimensions_the_rule_is_a_product_of_order_3() -> None:
    assert quadrature(vector_phi, 6)(np.ones((2, 6))).nodes.shape == (3**6, 6)


def test_the_quadratic_map_is_reproduced(actions: Array, context: Context, rng: np.random.Generator) -> None:
    ours, theirs = (make(actions) for make in (quadrature(vector_phi, D), quadratic))
    assert (ours.size, ours.arms) == (theirs.size, theirs.arms) == (3 * D, K)
    belief = Gaussian(rng.normal(size=3 * D), rng.normal(size=(3 * D, 3 * D)))
    pairs = [(ours.design(context), theirs.design(context)), (ours.at(context.mean), theirs.at(context.mean))]
    for found, right in pairs:
        np.testing.assert_allclose(every_row(found, K), every_row(right, K), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.scores(belief.mean), right.scores(belief.mean), rtol=1e-12)
        np.testing.assert_allclose(found.variances(belief), right.variances(belief), rtol=1e-12)
        np.testing.assert_allclose(every_covariance(found, K), every_covariance(right, K), atol=1e-11)


def test_the_error_of_a_smooth_map_is_as_estimated(actions: Array, context: Context) -> None:
    for order in [3, 5, 8]:
        check_the_error_of_a_smooth_map_is_as_estimated(order, actions, context)


def check_the_error_of_a_smooth_map_is_as_estimated(order: int, actions: Array, context: Context) -> None:
    rows = every_row(quadrature(wave_phi, D, order)(actions).design(context), K)
    truth = np.array([wave_moments(action, context)[0] for action in actions])
    error = np.abs(rows - truth).max()
    estimate = error_estimate(wave_phi, actions, context, order)
    assert 0.5 * estimate <= error <= 2 * estimate


def test_a_high_order_reaches_the_closed_form(actions: Array, context: Context) -> None:
    design = quadrature(wave_phi, D, 24)(actions).design(context)
    truth, spread = np.moveaxis(np.array([wave_moments(action, context) for action in actions]), 1, 0)
    np.testing.assert_allclose(every_row(design, K), truth, rtol=1e-9)
    found = np.sqrt(np.diagonal(every_covariance(design, K), axis1=1, axis2=2))
    np.testing.assert_allclose(found, spread, rtol=1e-6)


def test_random_points_estimate_the_error_in_many_dimensions(rng: np.random.Generator) -> None:
    actions, context = rng.normal(0.0, 0.5, (K, 7)), Context(rng.normal(0.3, 0.3, 7), spd(rng, 7, 0.3, 1.5))
    rows = every_row(quadrature(wave_phi, 7)(actions).design(context), K)
    moments = [wave_moments(action, context) for action in actions]
    error = np.abs(rows - [mean for mean, _ in moments]).max()
    noise = max(spread.max() for _, spread in moments) / np.sqrt(20_000)
    # Eight means of 20,000 points within 5 standard errors each: wrong with probability 5e-6.
    assert abs(error_estimate(wave_phi, actions, context) - error) <= 5 * noise


def test_no_spread_is_the_context_itself(actions: Array, context: Context) -> None:
    features = quadrature(wave_phi, D)(actions)
    certain = features.design(Context(context.mean, 0 * context.cov))
    literal = [wave_phi(action, context.mean) for action in actions]
    np.testing.assert_allclose(every_row(certain, K), literal, rtol=1e-13)
    np.testing.assert_allclose(every_row(features.at(context.mean), K), literal, rtol=1e-15)
    np.testing.assert_allclose(every_covariance(certain, K), 0, atol=1e-28)
    assert not every_covariance(features.at(context.mean), K).any()


@pytest.mark.slow
def test_a_batch_is_its_members(rng: np.random.Generator) -> None:
    trials = 5
    actions, means = rng.normal(0, 0.5, (trials, K, D)), rng.normal(0.5, 0.5, (trials, D))
    covs, theta = np.stack([spd(rng, D) for _ in range(trials)]), rng.normal(size=(trials, 2))
    arms, roots = rng.integers(0, K, trials), rng.normal(size=(trials, 2, 2))
    design = quadrature(wave_phi, D, 20)(actions).design(Context(means, covs))
    for i in range(trials):
        rows, covariances = feature_moments(wave_phi, actions[i], Context(means[i], covs[i]), 20)
        np.testing.assert_allclose(design.scores(theta)[i], rows @ theta[i], rtol=1e-7)
        np.testing.assert_allclose(design.row(arms)[i], rows[arms[i]], rtol=1e-7)
        np.testing.assert_allclose(design.covariance(arms)[i], covariances[arms[i]], rtol=1e-4)
        spreads = [row @ roots[i] @ roots[i].T @ row for row in rows]
        np.testing.assert_allclose(design.variances(Gaussian(theta, roots))[i], spreads, rtol=1e-7)


def test_a_block_of_rounds_is_its_rounds(rng: np.random.Generator) -> None:
    for rounds in [1, 4]:
        check_a_block_of_rounds_is_its_rounds(rounds, rng)


def check_a_block_of_rounds_is_its_rounds(rounds: int, rng: np.random.Generator) -> None:
    trials = 2
    actions, theta = rng.normal(size=(trials, K, D)), rng.normal(size=(trials, 3 * D))
    means, covs = rng.normal(1.0, 1.0, (trials, rounds, D)), np.stack([spd(rng, D) for _ in range(rounds)])
    arms = rng.integers(0, K, (trials, rounds))
    block = quadrature(vector_phi, D)(actions).over_rounds().design(Context(means, covs))
    assert block.scores(theta[:, None]).shape == (trials, rounds, K)
    for i, t in np.ndindex(trials, rounds):
        rows, covariances = feature_moments(vector_phi, actions[i], Context(means[i, t], covs[t]))
        np.testing.assert_allclose(block.scores(theta[:, None])[i, t], rows @ theta[i], rtol=1e-10)
        np.testing.assert_allclose(block.row(arms)[i, t], rows[arms[i, t]], rtol=1e-10, atol=1e-12)
        found = block.covariance(arms)[i, t]
        np.testing.assert_allclose(found, covariances[arms[i, t]], rtol=1e-9, atol=1e-10)


def test_bad_settings_are_refused_by_name() -> None:
    for order in (0, 28):
        with pytest.raises(InputError, match=r"^order: "):
            quadrature(wave_phi, D, order)
    with pytest.raises(InputError, match=r"^dim: "):
        quadrature(wave_phi, 0)
