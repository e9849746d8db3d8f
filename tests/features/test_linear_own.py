"""phi(a, c) = c_a, the arm's part of the context, against its definition, closed forms and Monte Carlo."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from tests.problems import (
    covariance_error,
    every_covariance,
    every_row,
    feature_moments,
    law_mean,
    law_variance,
    spd,
    within,
)
from unfog.agents.catalogue import select_rows
from unfog.features import Context, own
from unfog.features.linear import Own
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian, from_moments
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds import GaussianProblem

K, M = 3, 2
D = K * M
ARMS: Any = np.arange(K)
MAP = Own(K, M)


def phi(arm: Any, context: Array) -> Array:
    """The definition: as many numbers as each arm has, from the place where its own begin."""
    return np.array([context[int(arm) * M + i] for i in range(M)])


def block(cov: Array, arm: int) -> Array:
    return cov[arm * M : (arm + 1) * M, arm * M : (arm + 1) * M]


@pytest.fixture
def context(rng: np.random.Generator) -> Context:
    """Arms whose contexts hang together."""
    return Context(rng.normal(1.0, 1.0, D), spd(rng, D))


def test_sizes() -> None:
    assert (MAP.size, MAP.arms, MAP.cells) == (M, K, 0)
    assert MAP.over_rounds() == MAP
    assert own(np.zeros((K, D))) == MAP
    with pytest.raises(InputError, match=r"^dim: 7; allowed: a multiple of 3"):
        own(np.zeros((K, 7)))


def test_at_is_phi_itself(context: Context) -> None:
    design = MAP.at(context.mean)
    assert np.array_equal(every_row(design, K), [phi(a, context.mean) for a in ARMS])
    assert not every_covariance(design, K).any()


def test_rows_and_covariances(context: Context) -> None:
    rows, covariances = feature_moments(phi, ARMS, context, 3)
    design = MAP.design(context)
    np.testing.assert_allclose(every_row(design, K), rows, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(every_covariance(design, K), covariances, rtol=1e-10, atol=1e-11)
    for arm in ARMS:  # nothing of what an arm shares with others
        np.testing.assert_array_equal(design.covariance(np.asarray(arm)), block(context.cov, arm))


def test_moments_by_monte_carlo(context: Context, rng: np.random.Generator) -> None:
    """Within five standard errors."""
    number = 50_000
    drawn = MAP.at(rng.multivariate_normal(context.mean, context.cov, number))
    design = MAP.design(context)
    for arm in ARMS:
        rows, cov = drawn.row(np.full(number, arm)), block(context.cov, arm)
        error = np.sqrt(np.diag(cov) / number)
        assert within(rows.mean(0), design.row(np.asarray(arm)), error)
        assert within(np.cov(rows.T), design.covariance(np.asarray(arm)), covariance_error(cov, number))


def test_scores_and_what_is_not_known_of_them(context: Context, rng: np.random.Generator) -> None:
    mean, cov = rng.normal(0.5, 1.0, M), spd(rng, M)
    belief, design = from_moments(mean, cov), MAP.design(context)
    rows = [phi(a, context.mean) for a in ARMS]
    np.testing.assert_allclose(design.scores(mean), [row @ mean for row in rows], rtol=1e-12)
    np.testing.assert_allclose(design.variances(belief), [row @ cov @ row for row in rows], rtol=1e-11)
    for arm in ARMS:
        spread, one = block(context.cov, arm), np.asarray(arm)
        right = mean @ spread @ mean + np.trace(spread @ cov)
        assert design.context_variance(belief, one) == pytest.approx(right, rel=1e-11)
        np.testing.assert_allclose(design.context_slope(mean, one), spread @ mean, rtol=1e-11)


def test_laws_of_the_scores(context: Context, rng: np.random.Generator) -> None:
    theta = rng.normal(0.3, 1.0, M)
    laws, grid = MAP.design(context).laws(theta), np.linspace(-9, 9, 20_001)
    for arm in ARMS:
        law, mean = laws.of(np.asarray(arm)), phi(arm, context.mean) @ theta
        variance = theta @ block(context.cov, arm) @ theta
        assert law_mean(law) == pytest.approx(mean, rel=1e-12)
        assert law_variance(law) == pytest.approx(variance, rel=1e-11)
        right = norm.pdf(grid) @ expit(mean + np.sqrt(variance) * grid) / norm.pdf(grid).sum()
        assert law.expected_sigmoid() == pytest.approx(right, rel=1e-5)


def test_a_batch_is_its_members(rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_a_batch_is_its_members(shared, rng)


def check_a_batch_is_its_members(shared: bool, rng: np.random.Generator) -> None:
    trials = 5
    means = rng.normal(1.0, 1.0, (trials, D))
    covs = np.stack([spd(rng, D)] * trials if shared else [spd(rng, D) for _ in range(trials)])
    belief, arms = (
        Gaussian(rng.normal(size=(trials, M)), rng.normal(size=(trials, M, M))),
        ARMS[[2, 0, 1, 1, 0]],
    )
    design = MAP.design(Context(means, covs[0] if shared else covs))
    compiled = jax.jit(lambda context: MAP.design(context).covariance(jnp.asarray(arms)))
    np.testing.assert_allclose(compiled(Context(means, covs)), design.covariance(arms) + 0 * covs[:, :M, :M])
    for i, arm in enumerate(arms):
        alone, one = MAP.design(Context(means[i], covs[i])), Gaussian(belief.mean[i], belief.root[i])
        np.testing.assert_allclose(design.row(arms)[i], alone.row(arm))
        np.testing.assert_allclose(design.scores(belief.mean)[i], alone.scores(one.mean))
        np.testing.assert_allclose(design.variances(belief)[i], alone.variances(one))
        np.testing.assert_allclose(design.context_variance(belief, arms)[i], alone.context_variance(one, arm))
        np.testing.assert_allclose(
            design.context_slope(belief.mean, arms)[i], alone.context_slope(one.mean, arm)
        )


def test_a_block_of_rounds(rng: np.random.Generator) -> None:
    contexts, theta = rng.normal(size=(4, 7, D)), rng.normal(size=(4, M))
    scores = MAP.over_rounds().at(contexts).scores(theta[:, None])
    right = np.einsum("tnkm,tm->tnk", contexts.reshape(4, 7, K, M), theta)
    np.testing.assert_allclose(scores, right, rtol=1e-12)


def test_an_arms_block_whoever_shares_the_covariance() -> None:
    for batch in [(), (5,), (1, 5), (4, 1), (4, 5)]:
        check_an_arms_block_whoever_shares_the_covariance(batch)


def check_an_arms_block_whoever_shares_the_covariance(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    root = rng.standard_normal((*batch, D, D))
    cov, arm = root @ root.mT, rng.integers(0, K, (4, 5))
    mean = rng.standard_normal((4, 5, D))
    found = MAP.design(Context(mean, cov)).covariance(arm)
    full = np.broadcast_to(cov, (4, 5, *cov.shape[-2:]))
    for i, t in np.ndindex(4, 5):
        part = slice(M * arm[i, t], M * (arm[i, t] + 1))
        np.testing.assert_allclose(found[i, t], full[i, t, part, part])


def world(**changes: Any) -> GaussianProblem:
    told: dict[str, Any] = {"dim": D, "actions": K, "features": "own", "prior_cov": 1.0, "bias_cov": 0.3}
    return GaussianProblem(**told | changes)


def test_a_law_of_one_arm_stands_for_all() -> None:
    """Arms are independent then, and alike."""
    mean, cov, noise = [0.5, -1.0], [[1.0, 0.4], [0.4, 0.7]], [0.2, 0.9]
    known = world(context_mean=mean, context_cov=cov, noise_cov=noise).knowledge()
    np.testing.assert_array_equal(known.context_mean, mean * K)
    np.testing.assert_array_equal(known.context_cov, np.kron(np.eye(K), cov))
    np.testing.assert_array_equal(known.noise_cov, np.diag(noise * K))
    np.testing.assert_array_equal(known.bias_cov, 0.3 * np.eye(D))
    with pytest.raises(InputError, match="context_cov"):
        world(context_cov=np.eye(4))
    with pytest.raises(InputError, match="context_mean"):
        world(features="product", context_mean=mean)


@pytest.mark.slow
def test_both_engines(rng: np.random.Generator) -> None:
    problem = world(context_cov=spd(rng, D), context_mean=np.linspace(-1, 1, D), noise_cov=spd(rng, D))
    names = [agent.name for agent in select_rows(["unfog", "alg1"])]
    plain = play(problem, names, rounds=30, trials=3)
    compiled = play(problem, names, rounds=30, trials=3, engine="jax", draws="numpy")
    np.testing.assert_allclose(compiled.values["regret"], plain.values["regret"], rtol=1e-6, atol=1e-9)
