"""Park and Faradonbeh's two samplers against their formulas, written out for one trial."""

from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.plain import compare, tied, world
from unfog.agents.baselines import BASELINES
from unfog.agents.baselines.thompson import Centred
from unfog.agents.catalogue import select_rows
from unfog.maths.arrays import Array
from unfog.worlds.problem import Emission
from unfog.worlds.synthetic import GaussianProblem

CONTEXT = np.array([[1.0, 0.5, 0.0], [0.5, 1.5, -0.3], [0.0, -0.3, 0.6]])
NOISE = np.array([[1.4, -0.6, 0.2], [-0.6, 0.7, 0.0], [0.2, 0.0, 0.5]])


class Plain:
    """B and sum x r as they stand in the papers; rows are made by `features` of what was read.

    Draws hang on which root of B^-1 is taken. It is kept as the product of I - x x'B^-1 / (...), which is
    compared with the inverse of B in every round.
    """

    def __init__(self, size: int, v: float = 1.0, features: Any = None) -> None:
        self.b, self.total, self.v, self.features = np.eye(size), np.zeros(size), v, features
        self.root = np.eye(size)

    def rows(self, rows: Array, seen: Emission) -> Array:
        return rows if self.features is None else np.array(self.features(seen.noisy))

    def choose(self, rows: Array, normals: Array, seen: Emission) -> list[int]:
        inverse = np.linalg.inv(self.b)
        assert np.allclose(self.root @ self.root.T, inverse)
        drawn = inverse @ self.total + self.v * self.root @ normals
        return tied(self.rows(rows, seen) @ drawn)

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        row = self.rows(rows, seen)[arm]
        spread = np.linalg.solve(self.b, row)
        total = 1 + row @ spread
        self.root = self.root - np.outer(spread, row @ self.root) / (total + np.sqrt(total))
        self.b, self.total = self.b + np.outer(row, row), self.total + row * reward


def test_it_chooses_as_the_plain_loop_where_contexts_are_as_in_its_paper() -> None:
    problem = GaussianProblem(
        dim=12,
        actions=4,
        features="own",
        context_cov=np.kron(np.eye(4), CONTEXT),
        noise_cov=np.kron(np.eye(4), NOISE),
        bias_cov=1e-12,
        prior_cov=1.0,
        reward_var=0.5,
    )
    gain = np.linalg.inv(np.linalg.inv(NOISE) + np.linalg.inv(CONTEXT)) @ np.linalg.inv(NOISE)

    def features(noisy: Array) -> Array:
        return np.array([gain @ y for y in noisy.reshape(4, 3)])

    compare(BASELINES["park-faradonbeh"].agent, problem, lambda _: Plain(3, 1.0, features))


def test_a_matrix_before_the_context_is_another_noise() -> None:
    matrix = np.array([[0.8, -1.1, 0.3], [0.2, 0.9, 1.4], [-0.5, 0.1, 0.7]])
    precision, y = np.linalg.inv(NOISE), np.array([0.3, -1.2, 2.0])
    left = np.linalg.inv(matrix.T @ precision @ matrix + np.linalg.inv(CONTEXT))
    inverse = np.linalg.inv(matrix)
    known = world(noise_cov=inverse @ NOISE @ inverse.T, context_cov=CONTEXT).knowledge()
    believed = Centred().predict(Centred().setup(known, None), (), inverse @ y)
    mean = known.context_mean
    np.testing.assert_allclose(believed.mean, mean + left @ matrix.T @ precision @ (y - matrix @ mean))
    np.testing.assert_allclose(believed.cov, left)


def test_readings_are_centred_on_the_told_mean() -> None:
    """The context given the reading; where both are shifted, so is what is believed, and nothing else."""
    cov, y, mean = np.diag([4.0, 1.0, 0.5]), np.array([7.0, -1.0, 3.0]), np.array([5.0, -2.0, 3.0])
    known = world(noise_cov=np.eye(3), context_cov=cov).knowledge()
    here, shifted = (known._replace(context_mean=m) for m in (np.zeros(3), mean))
    believed = Centred().predict(Centred().setup(shifted, None), (), y)
    np.testing.assert_allclose(believed.mean, [5 + 0.8 * 2, -2 + 0.5 * 1, 3.0])
    centred = Centred().predict(Centred().setup(here, None), (), y - mean)
    np.testing.assert_allclose(believed.mean - mean, centred.mean)
    np.testing.assert_allclose(believed.cov, centred.cov)


def test_features_that_are_not_linear_are_expected() -> None:
    centre = world().knowledge().context_mean
    left = np.linalg.inv(np.linalg.inv(NOISE) + np.linalg.inv(CONTEXT))
    gain, source = left @ np.linalg.inv(NOISE), np.random.default_rng(5)
    actions = source.normal(size=(10, 3))

    def features(noisy: Array) -> Array:
        mean = centre + gain @ (noisy - centre)
        return np.array([[*(a * a), *(mean * mean + np.diag(left)), *(a * mean)] for a in actions])

    given = world(actions=actions)
    compare(BASELINES["park-faradonbeh"].agent, given, lambda _: Plain(9, 1.0, features))
    assert centre.any(), "a mean that the formula does not forget"


@pytest.mark.parametrize(("features", "size"), [("per_arm", 40), ("quadratic", 9), ("product", 3)])
def test_the_second_paper_regresses_on_what_is_read(features: str, size: int) -> None:
    problem = world(features=features, prior_cov=1.0)
    compare(BASELINES["park-faradonbeh-arms"].agent, problem, lambda _: Plain(size, 1.0), rounds=120)


def test_v_scales_the_deviations() -> None:
    [agent] = select_rows(["park-faradonbeh-arms:v=0.3"])
    compare(agent, world(features="product"), lambda _: Plain(3, 0.3))
    assert agent.chooser == BASELINES["park-faradonbeh-arms"].agent.chooser


def test_without_noise_both_are_thompson_sampling_on_the_context() -> None:
    problem = world(noise_cov=1e-12, bias_cov=1e-12, prior_cov=1.0)
    names = ["park-faradonbeh", "park-faradonbeh-arms"]
    first, second = (
        compare(BASELINES[name].agent, problem, lambda _: Plain(9, 1.0), rounds=60) for name in names
    )
    assert first == second
