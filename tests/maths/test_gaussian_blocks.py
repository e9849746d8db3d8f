"""A belief in independent blocks against the dense Gaussian of the same prior, by explicit inverses."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import block_diag

from tests.problems import evidence, inverse, random_knowledge, spd
from unfog.agents.learn import Adf, Conjugate, logistic
from unfog.maths import gaussian
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Blocks, Gaussian

B, K = 4, 3  # blocks, and numbers in each
SHAPE = (2, 3)  # of a batch


def dense(covs: Array) -> Array:
    return np.asarray(block_diag(*covs), np.float64)


def exact(mean: Array, cov: Array, rows: Array, values: Array, variances: Array) -> tuple[Array, Array]:
    """Mean and covariance of the dense Gaussian after all observations."""
    prior = inverse(cov)
    after = inverse(prior + (rows.T / variances) @ rows)
    return after @ (prior @ mean + (rows.T / variances) @ values), after


def in_blocks(places: Ints, parts: Array) -> Array:
    """Rows (..., B k) that are zero but for one block each."""
    rows = np.zeros((*places.shape, B * K))
    for index in np.ndindex(*places.shape):
        first = K * places[index]
        rows[index][first : first + K] = parts[index]
    return rows


def covariance(belief: Blocks) -> Array:
    """That of every block, (..., B, k, k)."""
    return belief.root @ belief.root.mT


def outside(cov: Array) -> Array:
    """The entries of a dense covariance between different blocks."""
    return cov[block_diag(*[np.ones((K, K))] * B) == 0]


def some_covs(rng: np.random.Generator) -> Array:
    """Correlated blocks, each of another size."""
    return np.stack([spd(rng, K, 0.05 * 2**b, 2.0 * 2**b) for b in range(B)])


class Seen:
    """Many observations of a batch of vectors, each within a block of its own."""

    def __init__(self, rng: np.random.Generator, number: int) -> None:
        shape = (number, *SHAPE)
        self.places = rng.integers(0, B, shape)
        self.rows = in_blocks(self.places, rng.normal(0.7, 1.5, (*shape, K)))
        self.values, self.variances = rng.normal(2.0, 3.0, shape), rng.uniform(0.1, 3.0, shape)


@pytest.fixture
def means(rng: np.random.Generator) -> Array:
    return rng.normal(1.0, 1.0, (*SHAPE, B * K))


@pytest.fixture
def covs(rng: np.random.Generator) -> Array:
    return np.stack([[some_covs(rng) for _ in range(SHAPE[1])] for _ in range(SHAPE[0])])


def test_from_moments_keeps_mean_and_covariances(means: Array, covs: Array) -> None:
    belief = gaussian.blocks_from_moments(means, covs)
    assert belief.mean.shape == (*SHAPE, B, K)
    assert np.array_equal(belief.mean.ravel(), means.ravel())
    np.testing.assert_allclose(covariance(belief), covs, rtol=1e-13, atol=1e-14)


def test_conditioning_is_that_of_the_dense_gaussian(means: Array, covs: Array) -> None:
    seen, belief = Seen(np.random.default_rng(1), 80), gaussian.blocks_from_moments(means, covs)
    for n in range(80):
        belief = belief.condition(seen.rows[n], seen.values[n], seen.variances[n])
        for i in np.ndindex(*SHAPE):
            so_far = (slice(n + 1), *i)
            given = seen.rows[so_far], seen.values[so_far], seen.variances[so_far]
            mean, cov = exact(means[i], dense(covs[i]), *given)
            np.testing.assert_allclose(belief.mean[i].ravel(), mean, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(dense(covariance(belief)[i]), cov, rtol=1e-10, atol=1e-10)
            assert np.abs(outside(cov)).max() < 1e-12  # blocks stay independent of each other


def test_the_variance_of_a_score_is_that_of_the_dense_gaussian(rng: np.random.Generator) -> None:
    covs = some_covs(rng)
    belief = gaussian.blocks_from_moments(rng.normal(size=(*SHAPE, B * K)), covs)
    rows = rng.normal(size=(*SHAPE, B * K))  # in all blocks at once
    right = np.einsum("...i,ij,...j->...", rows, dense(covs), rows)
    np.testing.assert_allclose(belief.variance(rows), right, rtol=1e-12)


def test_other_blocks_stay_as_they_are_to_the_bit(means: Array, covs: Array) -> None:
    seen, belief = Seen(np.random.default_rng(2), 30), gaussian.blocks_from_moments(means, covs)
    for n in range(30):
        after = belief.condition(seen.rows[n], seen.values[n], seen.variances[n])
        for i in np.ndindex(*SHAPE):
            for b in range(B):
                same = [x[i][b].tobytes() == y[i][b].tobytes() for x, y in zip(belief, after, strict=True)]
                assert same == [b != seen.places[n][i]] * 2
        belief = after


def test_a_shared_prior_spreads_over_the_batch(rng: np.random.Generator) -> None:
    mean, covs = rng.normal(1.0, 1.0, B * K), some_covs(rng)
    seen = Seen(np.random.default_rng(3), 1)
    belief = gaussian.blocks_from_moments(mean, covs).condition(seen.rows[0], seen.values[0], np.asarray(0.5))
    assert belief.mean.shape == (*SHAPE, B, K)
    for i in np.ndindex(*SHAPE):
        right = exact(mean, dense(covs), seen.rows[0][i][None], seen.values[0][i][None], np.array([0.5]))
        np.testing.assert_allclose(belief.mean[i].ravel(), right[0], rtol=1e-10)
        np.testing.assert_allclose(dense(covariance(belief)[i]), right[1], rtol=1e-10, atol=1e-12)


def test_a_draw_is_affine_with_the_right_mean_and_covariance(means: Array, covs: Array) -> None:
    seen, belief = Seen(np.random.default_rng(4), 20), gaussian.blocks_from_moments(means, covs)
    for n in range(20):
        belief = belief.condition(seen.rows[n], seen.values[n], seen.variances[n])
    centre = belief.sample(np.zeros((*SHAPE, B * K)))
    axes = np.broadcast_to(np.eye(B * K)[:, None, None], (B * K, *SHAPE, B * K))
    columns = belief.sample(axes) - centre
    for i in np.ndindex(*SHAPE):
        given = seen.rows[:, *i], seen.values[:, *i], seen.variances[:, *i]
        mean, cov = exact(means[i], dense(covs[i]), *given)
        np.testing.assert_allclose(centre[i], mean, rtol=1e-10, atol=1e-11)
        spread = columns[:, *i]  # row j is what the j-th normal adds
        np.testing.assert_allclose(spread.T @ spread, cov, rtol=1e-9, atol=1e-11)
    normals = np.random.default_rng(5).normal(size=(7, *SHAPE, B * K))
    right = centre + np.einsum("n...j,j...i->n...i", normals, columns)
    np.testing.assert_allclose(belief.sample(normals), right, rtol=1e-11, atol=1e-12)


def test_whole_puts_blocks_on_the_diagonal(rng: np.random.Generator) -> None:
    for library in [np.asarray, jnp.asarray]:
        check_whole_puts_blocks_on_the_diagonal(library, rng)


def check_whole_puts_blocks_on_the_diagonal(library: Any, rng: np.random.Generator) -> None:
    covs = some_covs(rng)
    found = gaussian.as_matrix(library(covs))
    assert isinstance(found, type(library(covs)))
    assert np.array_equal(np.asarray(found), dense(covs))
    one = library(covs[0])
    assert gaussian.as_matrix(one) is one


def learnt(prior_cov: Array, mean: Array, rows: Array, rewards: Array) -> Blocks | Gaussian:
    known = random_knowledge(6, K, B * K)._replace(prior_mean=mean, prior_cov=prior_cov)
    learner = Conjugate()
    parameters, state = learner.setup(known), learner.start(known, None)
    for row, reward in zip(rows, rewards, strict=True):
        state = learner.update(parameters, state, evidence(row), reward)
    return learner.belief(parameters, state)


def test_the_conjugate_learner_learns_the_same_in_blocks(rng: np.random.Generator) -> None:
    rounds, trials, variance = 50, 3, float(np.asarray(random_knowledge(6).reward_var))
    mean, covs = rng.normal(0.5, 1.0, B * K), some_covs(rng)
    places = rng.integers(0, B, (rounds, trials))
    rows, rewards = in_blocks(places, rng.normal(1.0, 1.0, (rounds, trials, K))), rng.normal(1, 2, (50, 3))
    small, large = learnt(covs, mean, rows, rewards), learnt(dense(covs), mean, rows, rewards)
    assert isinstance(small, Blocks)
    assert isinstance(large, Gaussian)
    normals = rng.normal(size=(trials, B * K))
    for i in range(trials):
        right = exact(mean, dense(covs), rows[:, i], rewards[:, i], np.full(rounds, variance))
        for found_mean, found_cov in (
            (small.mean[i].ravel(), dense(covariance(small)[i])),
            (large.mean[i], gaussian.covariance(large)[i]),
        ):
            np.testing.assert_allclose(found_mean, right[0], rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(found_cov, right[1], rtol=1e-10, atol=1e-10)
    # Not only the laws: the roots are the same, and so the same normals make the same draw.
    np.testing.assert_allclose(small.sample(normals), large.sample(normals), rtol=1e-10, atol=1e-10)


def test_learners_that_need_one_matrix_take_blocks(rng: np.random.Generator) -> None:
    covs = some_covs(rng)
    known = random_knowledge(7, K, B * K)._replace(prior_cov=covs)
    np.testing.assert_allclose(logistic.prior(known).precision, inverse(dense(covs)), rtol=1e-12, atol=1e-12)
    start = Adf().start(known, None)
    np.testing.assert_allclose(gaussian.covariance(start), dense(covs), rtol=1e-12, atol=1e-13)


def test_compiled_it_is_the_same(means: Array, covs: Array) -> None:
    seen = Seen(np.random.default_rng(8), 4)
    normals = np.random.default_rng(9).normal(size=(*SHAPE, B * K))

    def all_of_it(*given: Any) -> Any:
        mean, covs, rows, values, variances, normals = given
        belief = gaussian.blocks_from_moments(mean, covs)
        for n in range(len(rows)):
            belief = belief.condition(rows[n], values[n], variances[n])
        return belief, belief.sample(normals)

    inputs = means, covs, seen.rows, seen.values, seen.variances, normals
    right, found = all_of_it(*inputs), jax.jit(all_of_it)(*map(jnp.asarray, inputs))
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(right), strict=True):
        assert isinstance(ours, jax.Array)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def test_one_row_is_conditioned_on_as_many_are(means: Array, covs: Array, rng: np.random.Generator) -> None:
    """To the bit: for one row the other blocks are copied, and for many nothing is added to them."""
    belief, made = gaussian.blocks_from_moments(means, covs), Seen(rng, 5)
    for row, value, variance in zip(made.rows, made.values, made.variances, strict=True):
        after = belief.condition(row, value, variance)
        for place in np.ndindex(*SHAPE):
            alone = gaussian.Blocks(belief.mean[place][None], belief.root[place][None])
            found = alone.condition(row[place][None], value[place][None], variance[place][None])
            np.testing.assert_array_equal(found.mean[0], after.mean[place])
            np.testing.assert_array_equal(found.root[0], after.root[place])
        belief = after
