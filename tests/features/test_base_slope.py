"""Slopes of expected scores in the context: against finite differences, which are exact up to rounding."""

from typing import Any

import numpy as np

from unfog.features import Context
from unfog.features.base import Sloped
from unfog.features.linear import Own, matrix, product
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature

D, K, T = 3, 4, 5
RNG = np.random.default_rng(21)
ACTIONS = RNG.normal(size=(T, K, D))
MAPS: dict[str, Any] = {
    "quadratic": quadratic(ACTIONS),
    "quadratic, shared": quadratic(ACTIONS[0]),
    "product": product(ACTIONS),
    "product, shared": product(ACTIONS[0]),
    "matrix": matrix(RNG.normal(size=(T, K, 5, D))),
    "matrix, shared": matrix(RNG.normal(size=(K, 5, D))),
    "per_arm": PerArm(K, D),
    "per_arm without intercepts": PerArm(K, D, intercept=False),
}


def test_the_slope_is_that_of_the_expected_score() -> None:
    for name in MAPS:
        check_the_slope_is_that_of_the_expected_score(name)


def check_the_slope_is_that_of_the_expected_score(name: str) -> None:
    features, rng = MAPS[name], np.random.default_rng(5)
    root = rng.normal(size=(T, D, D))
    mean, cov, theta = rng.normal(0.7, 1.5, (T, D)), root @ root.mT, rng.normal(size=(T, features.size))
    arm = rng.integers(K, size=T)

    def score(at: Any) -> Any:
        return (features.design(Context(at, cov)).row(arm) * theta).sum(-1)

    # Central differences have no error in a polynomial of degree two, whatever the step.
    steps = np.eye(D) * 0.5
    right = np.stack([score(mean + step) - score(mean - step) for step in steps], -1)
    found = features.slope(mean, theta, arm)
    assert found.shape == (T, D)
    np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-10)
    assert len({tuple(row) for row in found.round(6)}) == T  # every trial its own


def test_the_slope_of_an_arm_with_a_context_of_its_own() -> None:
    features, rng = Own(K, D), np.random.default_rng(6)
    mean, theta, arm = rng.normal(size=(T, K * D)), rng.normal(size=(T, D)), rng.integers(K, size=T)
    right = np.zeros((T, K, D))
    right[np.arange(T), arm] = theta
    np.testing.assert_array_equal(features.slope(mean, theta, arm), right.reshape(T, K * D))
    assert isinstance(features, Sloped)


def test_who_has_slopes() -> None:
    assert all(isinstance(features, Sloped) for features in MAPS.values())
    assert not isinstance(quadrature(lambda a, c: a * c, 2)(np.zeros((3, 2))), Sloped)
