"""Lifted rows against the designs of the maps, and variances due to the context against Cov(phi) in full."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import spd, within
from unfog.features import Context
from unfog.features.base import shift_matrix
from unfog.features.linear import matrix, product
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature
from unfog.maths import gaussian
from unfog.maths.arrays import Array, diagonal_matrix, matvec

T, K, D = 4, 5, 3

LIFTABLE: dict[str, Callable[[np.random.Generator], Any]] = {
    "quadratic": lambda rng: quadratic(rng.normal(size=(T, K, D))),
    "product": lambda rng: product(rng.normal(size=(T, K, D))),
    "matrix": lambda rng: matrix(rng.normal(size=(T, K, 4, D))),
    "per arm": lambda _: PerArm(K, D),
    "per arm, slopes alone": lambda _: PerArm(K, D, intercept=False),
}
MAPS = LIFTABLE | {"any": lambda rng: quadrature(lambda a, c: np.sin(a * c), D)(rng.normal(size=(T, K, D)))}


def project(projection: Array, row: Array) -> Array:
    """T z, block by block where T is that of one block."""
    cut = row.reshape(*row.shape[:-1], -1, projection.shape[-1])
    return matvec(projection[..., None, :, :], cut).reshape(*row.shape[:-1], -1)


@pytest.mark.parametrize("name", LIFTABLE)
def test_lifted_rows_give_the_designs_rows(name: str, rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_lifted_rows_give_the_designs_rows(name, shared, rng)


def check_lifted_rows_give_the_designs_rows(name: str, shared: bool, rng: np.random.Generator) -> None:
    features = LIFTABLE[name](rng)
    unbiased, shift = rng.normal(1.0, 1.0, (T, D)), rng.normal(-0.5, 2.0, (T, D))
    cov = spd(rng, D) if shared else np.stack([spd(rng, D) for _ in range(T)])
    arm = rng.integers(0, K, T)
    found = project(features.projection(shift, cov), features.lift(unbiased, arm))
    truth = features.design(Context(unbiased - shift, cov)).row(arm)
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-12)


def test_one_projection_serves_all_rounds_and_many_biases(rng: np.random.Generator) -> None:
    for name in LIFTABLE:
        check_one_projection_serves_all_rounds_and_many_biases(name, rng)


def check_one_projection_serves_all_rounds_and_many_biases(name: str, rng: np.random.Generator) -> None:
    features, cov, arm = LIFTABLE[name](rng), spd(rng, D), rng.integers(0, K, T)
    unbiased, nodes = rng.normal(size=(T, D)), rng.normal(size=(T, 6, D))
    row, projections = features.lift(unbiased, arm), features.projection(nodes, cov)
    for i in range(6):
        truth = features.design(Context(unbiased - nodes[:, i], cov)).row(arm)
        np.testing.assert_allclose(project(projections[:, i], row), truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LIFTABLE)
def test_jax_lifts_alike(name: str, rng: np.random.Generator) -> None:
    features, cov, arm = LIFTABLE[name](rng), spd(rng, D), rng.integers(0, K, T)
    unbiased, shift = rng.normal(size=(T, D)), rng.normal(size=(T, D))

    def lifted(features: Any, unbiased: Any, arm: Any, shift: Any, cov: Any) -> tuple[Any, Any]:
        return features.lift(unbiased, arm), features.projection(shift, cov)

    if name.startswith("per arm"):  # it has counts in it, which are no arrays
        found = jax.jit(lambda *inputs: lifted(features, *inputs))(
            *map(jnp.asarray, (unbiased, arm, shift, cov))
        )
    else:
        found = jax.jit(lifted)(*jax.tree.map(jnp.asarray, (features, unbiased, arm, shift, cov)))
    for ours, theirs in zip(found, lifted(features, unbiased, arm, shift, cov), strict=True):
        assert isinstance(ours, jax.Array)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_the_pieces() -> None:
    assert np.array_equal(diagonal_matrix(np.array([2.0, 3.0])), [[2, 0], [0, 3]])
    assert np.array_equal(shift_matrix(np.array([2.0, 3.0])), [[1, 0, -2], [0, 1, -3]])


def test_the_variance_due_to_the_context_is_that_of_the_covariance(rng: np.random.Generator) -> None:
    for name in MAPS:
        check_the_variance_due_to_the_context_is_that_of_the_covariance(name, rng)


def check_the_variance_due_to_the_context_is_that_of_the_covariance(
    name: str, rng: np.random.Generator
) -> None:
    features, arm = MAPS[name](rng), rng.integers(0, K, T)
    m = features.size
    design = features.design(Context(rng.normal(1.0, 1.0, (T, D)), np.stack([spd(rng, D) for _ in range(T)])))
    belief = gaussian.from_moments(rng.normal(size=(T, m)), np.stack([spd(rng, m) for _ in range(T)]))
    second = gaussian.covariance(belief) + belief.mean[:, :, None] * belief.mean[:, None]
    truth = (design.covariance(arm) * second).sum((-2, -1))
    np.testing.assert_allclose(design.context_variance(belief, arm), truth, rtol=1e-11)
    # Before the first round trials share one belief.
    one = gaussian.Gaussian(belief.mean[0], belief.root[0])
    truth = (design.covariance(arm) * second[0]).sum((-2, -1))
    np.testing.assert_allclose(design.context_variance(one, arm), truth, rtol=1e-11)


@pytest.mark.parametrize("name", MAPS)
def test_the_slope_of_the_context_is_the_covariance_times_theta(name: str, rng: np.random.Generator) -> None:
    for shape in [(), (T,), (T, 2)]:
        check_the_slope_of_the_context_is_the_covariance_times_theta(name, shape, rng)


def check_the_slope_of_the_context_is_the_covariance_times_theta(
    name: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    features, arm = MAPS[name](rng), rng.integers(0, K, shape)
    if len(shape) != 1 and not name.startswith("per arm"):
        features = features.over_rounds() if shape else type(features)(*_first(features))
    context = Context(rng.normal(1.0, 1.0, (*shape, D)), spd(rng, D))
    design, theta = features.design(context), rng.normal(0.3, 1.0, (*shape, features.size))
    for each in (theta, theta.reshape(-1, features.size)[0]):  # trials share a belief before the first round
        found, truth = design.context_slope(each, arm), matvec(design.covariance(arm), each)
        assert found.shape == truth.shape
        np.testing.assert_allclose(found, truth, rtol=1e-11, atol=1e-12)


def _first(features: Any) -> Any:
    """The parts of a map, those that have an axis for trials without it."""
    return [part[0] if getattr(part, "ndim", 0) > 2 else part for part in features]


def test_the_slope_of_the_context_is_half_a_gradient(rng: np.random.Generator) -> None:
    for name in MAPS:
        check_the_slope_of_the_context_is_half_a_gradient(name, rng)


def check_the_slope_of_the_context_is_half_a_gradient(name: str, rng: np.random.Generator) -> None:
    features, arm, m = MAPS[name](rng), rng.integers(0, K, T), MAPS[name](rng).size
    design = features.design(Context(rng.normal(1.0, 1.0, (T, D)), np.stack([spd(rng, D) for _ in range(T)])))
    theta, step = rng.normal(size=(T, m)), 1e-3

    def noise(theta: Array) -> Array:
        return design.context_variance(gaussian.Gaussian(theta, np.zeros((m, m))), arm)

    # Central differences of a quadratic are exact but for rounding.
    slopes = [(noise(theta + step * e) - noise(theta - step * e)) / (4 * step) for e in np.eye(m)]
    np.testing.assert_allclose(design.context_slope(theta, arm), np.stack(slopes, -1), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", LIFTABLE)
def test_jax_says_the_same_of_the_context(name: str, rng: np.random.Generator) -> None:
    features, arm, m = LIFTABLE[name](rng), rng.integers(0, K, T), LIFTABLE[name](rng).size
    context, theta = Context(rng.normal(size=(T, D)), spd(rng, D)), rng.normal(size=(T, m))
    belief = gaussian.from_moments(theta, np.stack([spd(rng, m) for _ in range(T)]))

    def says(features: Any, context: Any, belief: Any, arm: Any) -> tuple[Any, Any]:
        design = features.design(context)
        return design.context_variance(belief, arm), design.context_slope(belief.centre, arm)

    compiled, inputs = jax.tree.map(jnp.asarray, (context, belief, arm)), (context, belief, arm)
    parts = features if name.startswith("per arm") else jax.tree.map(jnp.asarray, features)
    for ours, theirs in zip(
        jax.jit(lambda *inputs: says(parts, *inputs))(*compiled), says(features, *inputs), strict=True
    ):
        assert isinstance(ours, jax.Array)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_a_belief_in_blocks_gives_the_same_as_in_one_piece(rng: np.random.Generator) -> None:
    covs, mean, arm = np.stack([spd(rng, D) for _ in range(K)]), rng.normal(size=K * D), rng.integers(0, K, T)
    design = PerArm(K, D, intercept=False).design(Context(rng.normal(size=(T, D)), spd(rng, D)))
    whole = design.context_variance(gaussian.from_moments(mean, gaussian.as_matrix(covs)), arm)
    np.testing.assert_allclose(
        design.context_variance(gaussian.blocks_from_moments(mean, covs), arm), whole, rtol=1e-12
    )


@pytest.mark.parametrize("name", LIFTABLE)
@pytest.mark.slow
def test_the_variance_due_to_the_context_by_monte_carlo(name: str, rng: np.random.Generator) -> None:
    # E over theta of Var(phi'theta | theta) = E[(s1 - s2)^2] / 2 for two contexts and one theta; within 5
    # standard errors: about one false alarm in 10^5 tests of 16 numbers.
    features, arm, draws = LIFTABLE[name](rng), rng.integers(0, K, T), 100_000
    m, mean, cov = features.size, rng.normal(1.0, 1.0, (T, D)), spd(rng, D)
    belief = gaussian.from_moments(rng.normal(size=m), spd(rng, m))
    theta = belief.mean + rng.standard_normal((draws, m)) @ belief.root.T
    root = np.linalg.cholesky(cov)
    wide, arms = features.over_rounds(), np.broadcast_to(arm[:, None], (T, draws))
    one, two = (
        wide.at(mean[:, None] + rng.standard_normal((T, draws, D)) @ root.T).row(arms) for _ in range(2)
    )
    squares = ((one - two) * theta).sum(-1) ** 2 / 2
    truth = features.design(Context(mean, cov)).context_variance(belief, arm)
    assert within(squares.mean(1), truth, squares.std(1) / np.sqrt(draws))
