"""The paper's map against entry-by-entry brute force over a correlated, non-centred context."""

import numpy as np
import pytest

from tests.problems import every_covariance, every_row, feature_moments, quadratic_phi, spd
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

K, D = 4, 3


@pytest.fixture
def actions(rng: np.random.Generator) -> Array:
    return rng.normal(0.4, 1.0, (K, D))


@pytest.fixture
def context(rng: np.random.Generator) -> Context:
    return Context(rng.normal(1.0, 1.0, D), spd(rng, D))


@pytest.fixture
def belief(rng: np.random.Generator) -> Gaussian:
    return gaussian.from_moments(rng.normal(1.0, 1.0, 3 * D), spd(rng, 3 * D))


def test_sizes(actions: Array) -> None:
    features = quadratic(actions)
    assert (features.size, features.arms) == (3 * D, K)


def test_at_is_phi_itself(actions: Array, rng: np.random.Generator) -> None:
    context = rng.normal(1.0, 2.0, D)
    design = quadratic(actions).at(context)
    literal = [quadratic_phi(action, context) for action in actions]
    np.testing.assert_allclose(every_row(design, K), literal, rtol=1e-14)
    assert np.array_equal(every_covariance(design, K), np.zeros((K, 3 * D, 3 * D)))


def test_rows_and_covariances(actions: Array, context: Context) -> None:
    design = quadratic(actions).design(context)
    rows, covariances = feature_moments(quadratic_phi, actions, context)
    np.testing.assert_allclose(every_row(design, K), rows, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(every_covariance(design, K), covariances, rtol=1e-11, atol=1e-11)


def test_scores_and_variances(actions: Array, context: Context, belief: Gaussian) -> None:
    design = quadratic(actions).design(context)
    rows, _ = feature_moments(quadratic_phi, actions, context)
    cov = belief.root @ belief.root.T
    np.testing.assert_allclose(design.scores(belief.mean), rows @ belief.mean, rtol=1e-11)
    np.testing.assert_allclose(design.variances(belief), [row @ cov @ row for row in rows], rtol=1e-11)


def test_a_batch_is_its_members(rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_a_batch_is_its_members(shared, rng)


def check_a_batch_is_its_members(shared: bool, rng: np.random.Generator) -> None:
    trials, m = 5, 3 * D
    actions, means = rng.normal(size=(trials, K, D)), rng.normal(1.0, 1.0, (trials, D))
    covs = np.stack([spd(rng, D)] * trials if shared else [spd(rng, D) for _ in range(trials)])
    thetas, roots = rng.normal(size=(trials, m)), rng.normal(size=(trials, m, m))
    arms = rng.integers(0, K, trials)
    design = quadratic(actions).design(Context(means, covs[0] if shared else covs))
    assert design.scores(thetas).shape == design.variances(Gaussian(thetas, roots)).shape == (trials, K)
    for i in range(trials):
        rows, covariances = feature_moments(quadratic_phi, actions[i], Context(means[i], covs[i]))
        np.testing.assert_allclose(design.scores(thetas)[i], rows @ thetas[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(design.row(arms)[i], rows[arms[i]], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(design.covariance(arms)[i], covariances[arms[i]], rtol=1e-10, atol=1e-11)
        spreads = [row @ roots[i] @ roots[i].T @ row for row in rows]
        np.testing.assert_allclose(design.variances(Gaussian(thetas, roots))[i], spreads, rtol=1e-10)


def test_a_block_of_rounds_is_its_rounds(rng: np.random.Generator) -> None:
    for rounds in [1, 4]:
        check_a_block_of_rounds_is_its_rounds(rounds, rng)


def check_a_block_of_rounds_is_its_rounds(rounds: int, rng: np.random.Generator) -> None:
    trials, m = 2, 3 * D
    actions, theta = rng.normal(size=(trials, K, D)), rng.normal(size=(trials, m))
    means, covs = rng.normal(1.0, 1.0, (trials, rounds, D)), np.stack([spd(rng, D) for _ in range(rounds)])
    arms = rng.integers(0, K, (trials, rounds))
    block = quadratic(actions).over_rounds().design(Context(means, covs))
    known = quadratic(actions).over_rounds().at(means)
    assert block.scores(theta[:, None]).shape == (trials, rounds, K)
    for i, t in np.ndindex(trials, rounds):
        rows, covariances = feature_moments(quadratic_phi, actions[i], Context(means[i, t], covs[t]))
        literal = np.array([quadratic_phi(action, means[i, t]) for action in actions[i]])
        arm = arms[i, t]
        np.testing.assert_allclose(block.scores(theta[:, None])[i, t], rows @ theta[i], rtol=1e-10)
        np.testing.assert_allclose(known.scores(theta[:, None])[i, t], literal @ theta[i], rtol=1e-10)
        np.testing.assert_allclose(block.row(arms)[i, t], rows[arm], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(block.covariance(arms)[i, t], covariances[arm], rtol=1e-10, atol=1e-11)


def test_variances_broadcast_a_belief_that_all_trials_share() -> None:
    rng = np.random.default_rng(5)
    design = quadratic(rng.normal(size=(4, 5, 3))).design(Context(rng.normal(size=(4, 3)), np.eye(3)))
    shared = gaussian.from_moments(np.zeros(9), spd(rng, 9))
    each = gaussian.Gaussian(np.zeros((4, 9)), np.broadcast_to(shared.root, (4, 9, 9)))
    np.testing.assert_allclose(design.variances(shared), design.variances(each), rtol=1e-12)
