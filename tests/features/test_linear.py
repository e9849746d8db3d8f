"""phi(a, c) = G(a) c with tall, wide and diagonal G(a), against brute force."""

import numpy as np
import pytest

from tests.problems import every_covariance, every_row, feature_moments, spd
from unfog.features import Context
from unfog.features.linear import matrix, product
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

K, D = 4, 3


def phi(matrix: Array, context: Array) -> Array:
    """G c, entry by entry."""
    return np.array([sum(row[j] * context[j] for j in range(len(context))) for row in matrix])


@pytest.fixture(params=[5, 2], ids=["tall", "wide"])
def matrices(request: pytest.FixtureRequest, rng: np.random.Generator) -> Array:
    return rng.normal(0.5, 1.0, (K, request.param, D))


@pytest.fixture
def context(rng: np.random.Generator) -> Context:
    return Context(rng.normal(1.0, 1.0, D), spd(rng, D))


def test_sizes(matrices: Array) -> None:
    features = matrix(matrices)
    assert (features.size, features.arms) == (matrices.shape[1], K)


def test_at_is_phi_itself(matrices: Array, rng: np.random.Generator) -> None:
    context = rng.normal(1.0, 2.0, D)
    design = matrix(matrices).at(context)
    np.testing.assert_allclose(every_row(design, K), [phi(g, context) for g in matrices], rtol=1e-13)
    assert not every_covariance(design, K).any()


def test_rows_and_covariances(matrices: Array, context: Context) -> None:
    design = matrix(matrices).design(context)
    rows, covariances = feature_moments(phi, matrices, context)
    np.testing.assert_allclose(every_row(design, K), rows, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(every_covariance(design, K), covariances, rtol=1e-11, atol=1e-11)


def test_scores_and_variances(matrices: Array, context: Context, rng: np.random.Generator) -> None:
    m = matrices.shape[1]
    belief = gaussian.from_moments(rng.normal(1.0, 1.0, (m,)), spd(rng, m))
    design = matrix(matrices).design(context)
    rows, _ = feature_moments(phi, matrices, context)
    cov = belief.root @ belief.root.T
    np.testing.assert_allclose(design.scores(belief.mean), rows @ belief.mean, rtol=1e-11)
    np.testing.assert_allclose(design.variances(belief), [row @ cov @ row for row in rows], rtol=1e-11)


def test_diagonal_multiplies_action_and_context(rng: np.random.Generator) -> None:
    actions, context = rng.normal(size=(K, D)), Context(rng.normal(1.0, 1.0, D), spd(rng, D))
    design = product(actions).design(context)
    for arm, action in enumerate(actions):
        products = [action[i] * context.mean[i] for i in range(D)]
        spread = [[action[i] * action[j] * context.cov[i, j] for j in range(D)] for i in range(D)]
        np.testing.assert_allclose(design.row(np.asarray(arm)), products, rtol=1e-14)
        np.testing.assert_allclose(design.covariance(np.asarray(arm)), spread, rtol=1e-14)
    assert (product(actions).size, product(actions).arms) == (D, K)


def test_a_batch_is_its_members(rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_a_batch_is_its_members(shared, rng)


def check_a_batch_is_its_members(shared: bool, rng: np.random.Generator) -> None:
    trials, m = 6, 5
    matrices, means = rng.normal(size=(trials, K, m, D)), rng.normal(1.0, 1.0, (trials, D))
    covs = np.stack([spd(rng, D)] * trials if shared else [spd(rng, D) for _ in range(trials)])
    thetas, roots = rng.normal(size=(trials, m)), rng.normal(size=(trials, m, m))
    arms = rng.integers(0, K, trials)
    design = matrix(matrices).design(Context(means, covs[0] if shared else covs))
    for i in range(trials):
        rows, covariances = feature_moments(phi, matrices[i], Context(means[i], covs[i]))
        np.testing.assert_allclose(design.scores(thetas)[i], rows @ thetas[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(design.row(arms)[i], rows[arms[i]], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(design.covariance(arms)[i], covariances[arms[i]], rtol=1e-10, atol=1e-11)
        spreads = [row @ roots[i] @ roots[i].T @ row for row in rows]
        np.testing.assert_allclose(design.variances(Gaussian(thetas, roots))[i], spreads, rtol=1e-10)


def test_a_block_of_rounds_is_its_rounds(rng: np.random.Generator) -> None:
    for rounds in [1, 4]:
        check_a_block_of_rounds_is_its_rounds(rounds, rng)


def check_a_block_of_rounds_is_its_rounds(rounds: int, rng: np.random.Generator) -> None:
    trials, m = 2, 5
    matrices, theta = rng.normal(size=(trials, K, m, D)), rng.normal(size=(trials, m))
    means, covs = rng.normal(1.0, 1.0, (trials, rounds, D)), np.stack([spd(rng, D) for _ in range(rounds)])
    arms = rng.integers(0, K, (trials, rounds))
    block = matrix(matrices).over_rounds().design(Context(means, covs))
    scores = block.scores(theta[:, None])
    assert scores.shape == (trials, rounds, K)
    for i, t in np.ndindex(trials, rounds):
        rows, covariances = feature_moments(phi, matrices[i], Context(means[i, t], covs[t]))
        np.testing.assert_allclose(scores[i, t], rows @ theta[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(block.row(arms)[i, t], rows[arms[i, t]], rtol=1e-10, atol=1e-12)
        found = block.covariance(arms)[i, t]
        np.testing.assert_allclose(found, covariances[arms[i, t]], rtol=1e-10, atol=1e-11)


def test_the_diagonal_map_is_the_linear_one_with_diagonal_matrices() -> None:
    rng = np.random.default_rng(8)
    actions, context = rng.normal(size=(4, 6, 3)), Context(rng.normal(size=(4, 3)), spd(rng, 3))
    theta, arm = rng.normal(size=(4, 3)), np.array([5, 0, 2, 2])
    belief = gaussian.from_moments(np.zeros(3), spd(rng, 3))
    short, full = (
        build(actions).design(context) for build in (product, lambda a: matrix(a[..., None] * np.eye(3)))
    )
    np.testing.assert_allclose(short.scores(theta), full.scores(theta), rtol=1e-12)
    np.testing.assert_allclose(short.row(arm), full.row(arm), rtol=1e-12)
    np.testing.assert_allclose(short.variances(belief), full.variances(belief), rtol=1e-12)
    np.testing.assert_allclose(short.covariance(arm), full.covariance(arm), rtol=1e-12, atol=1e-15)
    wide = product(actions).over_rounds()
    block = Context(rng.normal(size=(4, 5, 3)), context.cov)
    found = wide.design(block).scores(theta[:, None])
    right = [product(actions).design(Context(block.mean[:, t], context.cov)).scores(theta) for t in range(5)]
    np.testing.assert_allclose(found, np.stack(right, 1), rtol=1e-12)
    certain = product(actions).at(context.mean)
    np.testing.assert_allclose(certain.row(arm), actions[np.arange(4), arm] * context.mean, rtol=1e-15)
    assert not np.any(certain.covariance(arm))
