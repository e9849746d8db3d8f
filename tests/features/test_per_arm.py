"""phi(a, c) with c in the block of arm a, against its definition, brute force and the general linear map."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from tests.problems import (
    every_covariance,
    every_row,
    feature_moments,
    gauss_hermite,
    law_mean,
    law_variance,
    spd,
)
from unfog.features import Context
from unfog.features.linear import matrix
from unfog.features.per_arm import PerArm, per_arm
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Blocks, Gaussian

K, D = 4, 3
M = K * D
ARMS: Any = np.arange(K)
MAP = PerArm(K, D, intercept=False)


def phi(arm: Any, context: Array) -> Array:
    """The definition: zeros, and the context at the place of the arm."""
    features = np.zeros(M)
    for i in range(D):
        features[arm * D + i] = context[i]
    return features


def placed() -> Array:
    """G(a) with G(a) c = phi(a, c): (K, m, d)."""
    return np.array([[[float(p == a * D + i) for i in range(D)] for p in range(M)] for a in range(K)])


def random_context(rng: np.random.Generator) -> Context:
    return Context(rng.normal(1.0, 1.0, D), spd(rng, D))


@pytest.fixture
def context(rng: np.random.Generator) -> Context:
    return random_context(rng)


def some_blocks(rng: np.random.Generator, *shape: int) -> Blocks:
    """A belief in blocks, of another covariance each."""
    roots = rng.normal(0.3, 1.0, (*shape, K, D, D))
    return Blocks(rng.normal(1.0, 1.0, (*shape, K, D)), roots)


def spreads(rows: Array, cov: Array) -> list[float]:
    """The variance of every row's score, by the double sum."""
    m = range(len(cov))
    return [sum(row[i] * cov[i, j] * row[j] for i in m for j in m) for row in rows]


def dense(belief: Blocks) -> Array:
    """The covariance of all of theta, entry by entry."""
    cov = np.zeros((M, M))
    for a in range(K):
        cov[a * D : (a + 1) * D, a * D : (a + 1) * D] = belief.root[a] @ belief.root[a].T
    return cov


def test_sizes() -> None:
    assert (MAP.size, MAP.arms, MAP.cells) == (M, K, 0)
    assert MAP.over_rounds() == MAP


def test_at_is_phi_itself(context: Context) -> None:
    design = MAP.at(context.mean)
    assert np.array_equal(every_row(design, K), [phi(a, context.mean) for a in ARMS])
    assert not every_covariance(design, K).any()


def test_rows_and_covariances(context: Context) -> None:
    rows, covariances = feature_moments(phi, ARMS, context)
    design = MAP.design(context)
    np.testing.assert_allclose(every_row(design, K), rows, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(every_covariance(design, K), covariances, rtol=1e-11, atol=1e-11)


def test_scores_and_variances_under_a_correlated_belief(context: Context, rng: np.random.Generator) -> None:
    cov = spd(rng, M, 0.05, 5.0)
    belief = gaussian.from_moments(rng.normal(1.0, 1.0, M), cov)
    rows, _ = feature_moments(phi, ARMS, context)
    design = MAP.design(context)
    np.testing.assert_allclose(design.scores(belief.mean), rows @ belief.mean, rtol=1e-11)
    np.testing.assert_allclose(design.variances(belief), spreads(rows, cov), rtol=1e-11)


def test_variances_under_a_belief_in_blocks(context: Context, rng: np.random.Generator) -> None:
    belief = some_blocks(rng)
    rows, _ = feature_moments(phi, ARMS, context)
    np.testing.assert_allclose(
        MAP.design(context).variances(belief), spreads(rows, dense(belief)), rtol=1e-11
    )


def test_laws_of_the_scores(context: Context, rng: np.random.Generator) -> None:
    theta = rng.normal(0.3, 1.0, M)
    points, weights = gauss_hermite(context.mean, context.cov, 20)
    laws = MAP.design(context).laws(theta)
    for arm in ARMS:
        law, scores = laws.of(np.asarray(arm)), np.array([phi(arm, point) @ theta for point in points])
        mean = weights @ scores
        assert law_mean(law) == pytest.approx(mean, rel=1e-11)
        assert law_variance(law) == pytest.approx(weights @ (scores - mean) ** 2, rel=1e-10)
        assert law.expected_sigmoid() == pytest.approx(weights @ expit(scores), rel=1e-6)
    certain = MAP.at(context.mean).laws(theta).of(np.asarray(2))
    assert law_mean(certain) == pytest.approx(phi(np.asarray(2), context.mean) @ theta, rel=1e-13)
    assert law_variance(certain) == 0


def test_a_batch_is_its_members(rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_a_batch_is_its_members(shared, rng)


def check_a_batch_is_its_members(shared: bool, rng: np.random.Generator) -> None:
    trials = 6
    means = rng.normal(1.0, 1.0, (trials, D))
    covs = np.stack([spd(rng, D)] * trials if shared else [spd(rng, D) for _ in range(trials)])
    thetas, roots, pieces = (
        rng.normal(size=(trials, M)),
        rng.normal(size=(trials, M, M)),
        some_blocks(rng, trials),
    )
    arms = rng.permutation(np.arange(trials) % K)
    design = MAP.design(Context(means, covs[0] if shared else covs))
    law = design.laws(thetas).of(arms)
    for i in range(trials):
        rows, covariances = feature_moments(phi, ARMS, Context(means[i], covs[i]))
        np.testing.assert_allclose(design.scores(thetas)[i], rows @ thetas[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(design.row(arms)[i], rows[arms[i]], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(design.covariance(arms)[i], covariances[arms[i]], rtol=1e-10, atol=1e-11)
        found = design.variances(Gaussian(thetas, roots))[i]
        np.testing.assert_allclose(found, spreads(rows, roots[i] @ roots[i].T), rtol=1e-10)
        found, one = design.variances(pieces)[i], Blocks(pieces.mean[i], pieces.root[i])
        np.testing.assert_allclose(found, spreads(rows, dense(one)), rtol=1e-10)
        assert law_mean(law)[i] == pytest.approx(rows[arms[i]] @ thetas[i], rel=1e-10)
        right = thetas[i] @ covariances[arms[i]] @ thetas[i]
        assert law_variance(law)[i] == pytest.approx(right, rel=1e-9)


def test_a_block_of_rounds_is_its_rounds(rng: np.random.Generator) -> None:
    for trials in [1, 2]:
        for rounds in [1, 4]:
            check_a_block_of_rounds_is_its_rounds(trials, rounds, rng)


def check_a_block_of_rounds_is_its_rounds(trials: int, rounds: int, rng: np.random.Generator) -> None:
    theta = rng.normal(size=(trials, M))
    means, covs = rng.normal(1.0, 1.0, (trials, rounds, D)), np.stack([spd(rng, D) for _ in range(rounds)])
    arms = rng.integers(0, K, (trials, rounds))
    wide = MAP.over_rounds()
    block, known = wide.design(Context(means, covs)), wide.at(means)
    scores, laws = block.scores(theta[:, None]), block.laws(theta[:, None]).of(arms)
    assert scores.shape == known.scores(theta[:, None]).shape == (trials, rounds, K)
    for i, t in np.ndindex(trials, rounds):
        rows, covariances = feature_moments(phi, ARMS, Context(means[i, t], covs[t]))
        arm = arms[i, t]
        np.testing.assert_allclose(scores[i, t], rows @ theta[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(known.scores(theta[:, None])[i, t], rows @ theta[i], rtol=1e-10)
        np.testing.assert_allclose(block.row(arms)[i, t], rows[arm], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(block.covariance(arms)[i, t], covariances[arm], rtol=1e-10, atol=1e-11)
        assert law_variance(laws)[i, t] == pytest.approx(theta[i] @ covariances[arm] @ theta[i], rel=1e-9)


def everything(design: Any, theta: Any, arms: Any, belief: Any) -> dict[str, Any]:
    """All that a design can be asked."""
    law = design.laws(theta).of(arms)
    return {
        "scores": design.scores(theta),
        "row": design.row(arms),
        "variances": design.variances(belief),
        "covariance": design.covariance(arms),
        "mean": law_mean(law),
        "variance": law_variance(law),
        "chance": law.expected_sigmoid(),
    }


def test_it_is_the_linear_map_of_block_matrices(rng: np.random.Generator) -> None:
    trials = 5
    context = Context(rng.normal(1.0, 1.0, (trials, D)), spd(rng, D))
    theta, arms = rng.normal(size=(trials, M)), np.array([3, 0, 1, 1, 2])
    belief = gaussian.from_moments(np.zeros(M), spd(rng, M))
    matrices = np.broadcast_to(placed(), (trials, K, M, D))
    short = everything(MAP.design(context), theta, arms, belief)
    full = everything(matrix(matrices).design(context), theta, arms, belief)
    for name, value in full.items():
        np.testing.assert_allclose(short[name], value, rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["dense", "blocks"])
def test_compiled_it_is_the_same(kind: str, precision: str, rng: np.random.Generator) -> None:
    context, trials = Context(rng.normal(1.0, 1.0, (3, D)), spd(rng, D)), 3
    theta, arms = rng.normal(size=(trials, M)), np.array([3, 0, 2])
    belief: Any = gaussian.from_moments(np.zeros(M), spd(rng, M))
    if kind == "blocks":
        belief = gaussian.blocks_from_moments(np.zeros(M), np.stack([spd(rng, D) for _ in range(K)]))

    def all_of_it(context: Any, theta: Any, arms: Any, belief: Any) -> Any:
        return everything(MAP.design(context), theta, arms, belief)

    right = all_of_it(context, theta, arms, belief)
    here = jax.tree.map(lambda x: jnp.asarray(x, precision), (context, theta, belief))
    found = jax.jit(all_of_it)(here[0], here[1], jnp.asarray(arms), here[2])
    near = {"float64": 1e-11, "float32": 1e-4}[precision]
    for name, value in right.items():
        assert (found[name].shape, found[name].dtype) == (value.shape, precision), name
        np.testing.assert_allclose(found[name], value, rtol=near, atol=near, err_msg=name)


# With an intercept

SIZE = D + 1
WITH = PerArm(K, D)


def placed_with_one(arm: Any, context: Array) -> Array:
    """The definition: zeros, a one and the context at the place of the arm."""
    features = np.zeros(K * SIZE)
    features[arm * SIZE] = 1
    features[arm * SIZE + 1 : (arm + 1) * SIZE] = context
    return features


def test_an_intercept_is_a_feature_more_for_each_arm(context: Context) -> None:
    assert (WITH.size, WITH.block, WITH.arms, WITH.cells) == (K * SIZE, SIZE, K, 0)
    assert per_arm(np.zeros((2, K, D))) == WITH == WITH.over_rounds()
    assert per_arm(np.zeros((K, D)), intercept=False) == MAP
    right = [placed_with_one(a, context.mean) for a in ARMS]
    assert np.array_equal(every_row(WITH.at(context.mean), K), right)
    assert not every_covariance(WITH.at(context.mean), K).any()


def test_moments_with_an_intercept(context: Context, rng: np.random.Generator) -> None:
    rows, covariances = feature_moments(placed_with_one, ARMS, context)
    design, m = WITH.design(context), K * SIZE
    np.testing.assert_allclose(every_row(design, K), rows, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(every_covariance(design, K), covariances, rtol=1e-11, atol=1e-11)
    cov = spd(rng, m, 0.05, 5.0)
    belief = gaussian.from_moments(rng.normal(1.0, 1.0, m), cov)
    np.testing.assert_allclose(design.scores(belief.mean), rows @ belief.mean, rtol=1e-11)
    np.testing.assert_allclose(design.variances(belief), spreads(rows, cov), rtol=1e-11)
    second = cov + np.outer(belief.mean, belief.mean)
    for arm in ARMS:
        found = design.context_variance(belief, np.asarray(arm))
        assert found == pytest.approx((covariances[arm] * second).sum(), rel=1e-10)
        slope = design.context_slope(belief.mean, np.asarray(arm))
        np.testing.assert_allclose(slope, covariances[arm] @ belief.mean, rtol=1e-10, atol=1e-11)


def test_a_belief_in_blocks_with_an_intercept(context: Context, rng: np.random.Generator) -> None:
    covs, mean = np.stack([spd(rng, SIZE) for _ in range(K)]), rng.normal(size=K * SIZE)
    whole = gaussian.from_moments(mean, gaussian.as_matrix(covs))
    pieces, design = gaussian.blocks_from_moments(mean, covs), WITH.design(context)
    np.testing.assert_allclose(design.variances(pieces), design.variances(whole), rtol=1e-11)
    for arm in map(np.asarray, ARMS):
        right = design.context_variance(whole, arm)
        np.testing.assert_allclose(design.context_variance(pieces, arm), right, rtol=1e-11)


def test_laws_with_an_intercept(context: Context, rng: np.random.Generator) -> None:
    theta = rng.normal(0.3, 1.0, K * SIZE)
    points, weights = gauss_hermite(context.mean, context.cov, 20)
    laws = WITH.design(context).laws(theta)
    for arm in ARMS:
        law = laws.of(np.asarray(arm))
        scores = np.array([placed_with_one(arm, point) @ theta for point in points])
        assert law_mean(law) == pytest.approx(weights @ scores, rel=1e-11)
        assert law_variance(law) == pytest.approx(weights @ (scores - weights @ scores) ** 2, rel=1e-10)
        # A Gaussian score: 20 nodes a coordinate are too few for one as wide as this, a fine grid is not.
        grid = np.linspace(-9, 9, 20_001)
        chances = expit(law_mean(law) + np.sqrt(law_variance(law)) * grid)
        right = norm.pdf(grid) @ chances / norm.pdf(grid).sum()
        assert law.expected_sigmoid() == pytest.approx(right, rel=1e-6)


def test_lifted_rows_with_an_intercept(rng: np.random.Generator) -> None:
    unbiased, shift, cov = rng.normal(1.0, 1.0, D), rng.normal(-0.5, 2.0, D), spd(rng, D)
    projection = WITH.projection(shift, cov)
    assert projection.shape == (SIZE, D + 1)
    for arm in ARMS:
        lifted = WITH.lift(unbiased, np.asarray(arm)).reshape(K, D + 1)
        right = placed_with_one(arm, unbiased - shift)
        np.testing.assert_allclose((lifted @ projection.T).ravel(), right, rtol=1e-12, atol=1e-13)


def test_no_contexts_have_no_rows() -> None:
    """Of an array without elements a size cannot be left for NumPy to find."""
    assert MAP.at(np.zeros((1, 0, D))).row(np.zeros((1, 0), int)).shape == (1, 0, M)
