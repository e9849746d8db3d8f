"""What scores pay: themselves, or a probability that is averaged over the context and not of the average."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from tests.problems import gauss_hermite, spd
from unfog.features import Context
from unfog.features.base import Form
from unfog.features.linear import matrix
from unfog.features.link import KINDS, Identity, Sigmoid
from unfog.features.quadratic import QuadraticDesign, quadratic
from unfog.maths.logistic import NODES

TRIALS, K, D = 6, 4, 2


@pytest.fixture
def design(rng: np.random.Generator) -> QuadraticDesign:
    context = Context(rng.normal(0.6, 1.0, (TRIALS, D)), spd(rng, D, 0.2, 1.5))
    return quadratic(rng.normal(0.3, 1.0, (TRIALS, K, D))).design(context)


def test_kinds_are_named() -> None:
    assert (Identity().kind, Sigmoid().kind) == KINDS == ("gaussian", "bernoulli")


def test_a_score_pays_itself(design: QuadraticDesign, rng: np.random.Generator) -> None:
    theta, arms = rng.normal(size=(TRIALS, 3 * D)), rng.integers(0, K, TRIALS)
    scores = design.scores(theta)
    assert np.array_equal(Identity().mean(scores), scores)
    assert np.array_equal(Identity().values(design, theta, scores)(arms), scores[np.arange(TRIALS), arms])


def test_at_a_known_context_a_score_pays_its_sigmoid(rng: np.random.Generator) -> None:
    scores = rng.normal(0, 10, (TRIALS, K))
    np.testing.assert_allclose(Sigmoid().mean(scores), expit(scores), rtol=0, atol=2e-16)


def test_at_a_believed_one_the_mean_of_the_sigmoid(design: QuadraticDesign, rng: np.random.Generator) -> None:
    theta, arms = rng.normal(0.2, 1.0, (TRIALS, 3 * D)), rng.integers(0, K, TRIALS)
    scores = design.scores(theta)
    found = Sigmoid().values(design, theta, scores)(arms)
    assert found.shape == (TRIALS,)
    for i, arm in enumerate(arms):
        points, weights = gauss_hermite(design.mean[i], design.cov, 80)
        action = np.broadcast_to(design.table[i, arm, D : 2 * D], points.shape)
        values = np.concatenate([action**2, points**2, action * points], 1) @ theta[i]
        assert found[i] == pytest.approx(weights @ expit(values), abs=1e-5)
    assert np.abs(found - expit(scores[np.arange(TRIALS), arms])).max() > 0.02


def test_the_same_laws_serve_every_arm(design: QuadraticDesign, rng: np.random.Generator) -> None:
    theta = rng.normal(0.2, 1.0, (TRIALS, 3 * D))
    values = Sigmoid().values(design, theta, design.scores(theta))
    arms = rng.permuted(np.tile(np.arange(K), (TRIALS, 1)), axis=1)
    one_by_one = np.stack([values(arms[:, k]) for k in range(K)], 1)
    for i, k in np.ndindex(TRIALS, K):
        laws = (
            quadratic(design.table[i, :, D : 2 * D])
            .design(Context(design.mean[i], design.cov))
            .laws(theta[i])
        )
        assert one_by_one[i, k] == pytest.approx(float(laws.of(arms[i, k]).expected_sigmoid()), abs=1e-12)


def test_nodes_are_used(rng: np.random.Generator) -> None:
    map_, theta = matrix(rng.normal(size=(1, 3, 3))), np.array([9.0, -7.0, 8.0])
    design = map_.design(Context(np.ones(3), np.eye(3)))
    law, first = design.laws(theta).of(np.asarray(0)), np.asarray(0)
    assert isinstance(law, Form)
    for nodes in (6, 300):
        found = Sigmoid(nodes=nodes).values(design, theta, design.scores(theta))(first)
        assert float(found) == float(law.expected_sigmoid(nodes))
    assert abs(float(law.expected_sigmoid(6) - law.expected_sigmoid(300))) > 1e-4
    assert Sigmoid().nodes == NODES


def test_jax_gives_the_same_numbers(design: QuadraticDesign, rng: np.random.Generator) -> None:
    theta, arms = rng.normal(0.2, 1.0, (TRIALS, 3 * D)), rng.integers(0, K, TRIALS)
    there = QuadraticDesign(*(jnp.asarray(part) for part in design))
    for rewards in (Identity(), Sigmoid()):
        right = rewards.values(design, theta, design.scores(theta))(arms)
        found = jax.jit(lambda d, t, a, r=rewards: r.values(d, t, d.scores(t))(a))(
            there, jnp.asarray(theta), jnp.asarray(arms)
        )
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
