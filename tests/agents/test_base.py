"""What a learner is shown of a round, against quadrature over the context and sums written out."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.problems import feature_moments, quadratic_phi, spd, within
from unfog.agents.base import Evidence
from unfog.features import Context
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

T, K, D = 4, 3, 2


def block_phi(action: Array, context: Array) -> Array:
    """The context at the place of the arm, whose number the action is."""
    found = np.zeros((K, len(context)))
    found[int(action[0])] = context
    return found.ravel()


class Case(NamedTuple):
    """Rounds of several trials, and what brute force needs to know of them."""

    evidence: Evidence
    actions: Array  # (T, K, p)
    context: Context
    phi: Any

    def moments(self, i: int) -> tuple[Array, Array]:
        """E[phi], (m,), and Cov(phi), (m, m), in trial i: phi is quadratic, the rule exact."""
        arm = int(self.evidence.arm[i])
        own = Context(self.context.mean[i], self.context.cov[i])
        rows, covs = feature_moments(self.phi, self.actions[i, arm][None], own, order=3)
        return rows[0], covs[0]

    def theta(self, i: int) -> tuple[Array, Array]:
        """Mean and covariance of theta in trial i."""
        belief = self.evidence.belief
        root = belief.root[i]
        cov = root @ root.mT
        return belief.centre[i], cov if isinstance(belief, Gaussian) else gaussian.as_matrix(cov)


def made(name: str) -> Case:
    rng = np.random.default_rng(3)
    context = Context(rng.normal(1, 1, (T, D)), np.stack([spd(rng, D) for _ in range(T)]))
    size = K * D if name.startswith("block") else 3 * D
    belief: Any = Gaussian(rng.normal(size=(T, size)), rng.normal(size=(T, size, size)))
    if name == "block, belief in blocks":
        covs = np.stack([[spd(rng, D) for _ in range(K)] for _ in range(T)])
        belief = gaussian.blocks_from_moments(rng.normal(size=(T, size)), covs)
    actions = rng.normal(size=(T, K, D))
    features: Any = quadratic(actions)
    if name.startswith("block"):
        features, actions = PerArm(K, D, intercept=False), np.broadcast_to(np.arange(K)[:, None], (T, K, 1))
    phi = block_phi if name.startswith("block") else quadratic_phi
    seen = Evidence(features, features.design(context), belief, rng.integers(0, K, T), context.mean - 0.7)
    return Case(seen, actions, context, phi)


EVERY = pytest.mark.parametrize("name", ["quadratic", "block", "block, belief in blocks"])


def test_row_and_covariance_are_the_moments_of_phi() -> None:
    for name in ["quadratic", "block", "block, belief in blocks"]:
        check_row_and_covariance_are_the_moments_of_phi(name)


def check_row_and_covariance_are_the_moments_of_phi(name: str) -> None:
    case = made(name)
    row, covariance = case.evidence.row(), case.evidence.covariance()
    for i in range(T):
        mean, cov = case.moments(i)
        np.testing.assert_allclose(row[i], mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(covariance[i], cov, rtol=1e-11, atol=1e-11)


def test_the_context_adds_its_variance_to_a_rewards() -> None:
    """E[theta'Cov(phi)theta] = sum_ij Cov(phi_i, phi_j) E[theta_i theta_j]."""
    for name in ["quadratic", "block", "block, belief in blocks"]:
        check_the_context_adds_its_variance_to_a_rewards(name)


def check_the_context_adds_its_variance_to_a_rewards(name: str) -> None:
    case = made(name)
    found = case.evidence.context_variance()
    for i in range(T):
        (_, cov), (mean, spread) = case.moments(i), case.theta(i)
        assert found[i] == pytest.approx((cov * (spread + np.outer(mean, mean))).sum(), rel=1e-11)


def test_the_slope_is_half_that_of_the_variance() -> None:
    """Cov(phi) E[theta], and by central differences of theta'Cov(phi)theta at the mean."""
    for name in ["quadratic", "block", "block, belief in blocks"]:
        check_the_slope_is_half_that_of_the_variance(name)


def check_the_slope_is_half_that_of_the_variance(name: str) -> None:
    case = made(name)
    found = case.evidence.context_slope()
    for i in range(T):
        (_, cov), (mean, _) = case.moments(i), case.theta(i)
        np.testing.assert_allclose(found[i], cov @ mean, rtol=1e-11, atol=1e-11)
        moves = 1e-4 * np.eye(len(mean))
        ends = [((mean + e) @ cov @ (mean + e), (mean - e) @ cov @ (mean - e)) for e in moves]
        np.testing.assert_allclose(2 * found[i], [(a - b) / 2e-4 for a, b in ends], rtol=1e-6, atol=1e-6)


def test_the_variance_of_rewards_by_monte_carlo() -> None:
    """Half the squared difference of two rewards with one theta; 5 standard errors: wrong once in 4e5."""
    case, rng, draws = made("quadratic"), np.random.default_rng(1), 200_000
    for i in range(T):
        mean, cov = case.theta(i)
        theta = rng.multivariate_normal(mean, cov, draws)
        action = case.actions[i, int(case.evidence.arm[i])]
        pair = rng.multivariate_normal(case.context.mean[i], case.context.cov[i], (2, draws))
        ones = np.broadcast_to(action, pair[0].shape)
        scores = [
            (np.concatenate([ones**2, context**2, ones * context], -1) * theta).sum(-1) for context in pair
        ]
        half = (scores[0] - scores[1]) ** 2 / 2
        right = np.asarray(case.evidence.context_variance()[i])
        assert within(half.mean(), right, np.asarray(half.std() / np.sqrt(draws)))


def test_a_lifted_row_waits_for_the_bias() -> None:
    """T(s, C) z is the expected row of a context N(v - s, C), whatever s and C come to be."""
    for name in ["quadratic", "block", "block, belief in blocks"]:
        check_a_lifted_row_waits_for_the_bias(name)


def check_a_lifted_row_waits_for_the_bias(name: str) -> None:
    case, rng = made(name), np.random.default_rng(2)
    lifted = case.evidence.lifted_row()
    features: Any = case.evidence.features
    for i in range(T):
        shift, cov = rng.normal(size=D), spd(rng, D)
        projection = features.projection(shift, cov)
        own = Context(case.evidence.unbiased[i] - shift, cov)  # type: ignore[index]
        arm = int(case.evidence.arm[i])
        rows, _ = feature_moments(case.phi, case.actions[i, arm][None], own, order=3)
        parts = lifted[i].reshape(-1, projection.shape[-1])
        found = (parts @ projection.T).ravel()
        np.testing.assert_allclose(found, rows[0], rtol=1e-11, atol=1e-11)


def test_a_known_context_leaves_nothing_to_chance() -> None:
    for name in ["quadratic", "block", "block, belief in blocks"]:
        check_a_known_context_leaves_nothing_to_chance(name)


def check_a_known_context_leaves_nothing_to_chance(name: str) -> None:
    case = made(name)
    context = case.context.mean + 0.3
    sure = case.evidence._replace(design=case.evidence.features.at(context))
    for i in range(T):
        action = case.actions[i, int(case.evidence.arm[i])]
        np.testing.assert_allclose(sure.row()[i], case.phi(action, context[i]), rtol=1e-13)
    assert not np.any(sure.covariance())
    assert not np.any(sure.context_variance())
    assert not np.any(sure.context_slope())
    certain = case.evidence.features.design(Context(context, np.zeros((D, D))))
    np.testing.assert_array_equal(sure.row(), certain.row(sure.arm))


def test_a_lifted_row_needs_a_denoiser_that_rewinds() -> None:
    with pytest.raises(ValueError, match="a lifted row needs a denoiser that rewinds"):
        made("quadratic").evidence._replace(unbiased=None).lifted_row()


def test_a_belief_in_one_piece_has_all_of_theta() -> None:
    """The case can fail: theta's blocks are correlated in one, and independent in the other."""
    (_, whole), (_, cut) = (made(name).theta(0) for name in ("block", "block, belief in blocks"))
    assert np.abs(whole[:D, D:]).min() > 0.01
    assert not cut[:D, D:].any()
