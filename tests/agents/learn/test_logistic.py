"""Histories, logits and the posterior of theta: sums written out, finite differences, and integrals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from tests.problems import evidence, random_knowledge, spd
from unfog.agents.learn import logistic
from unfog.agents.learn.logistic import History
from unfog.maths.arrays import Array

M = 4
KNOWN = random_knowledge(11, dim=2, size=M)
PRIOR = logistic.prior(KNOWN)


class Rounds:
    """What happened in some rounds: rows, spreads and rewards, (n, *batch, ...)."""

    def __init__(self, n: int, *batch: int, seed: int = 2) -> None:
        rng = np.random.default_rng([seed, n])
        self.rows = rng.normal(0.4, 1.3, (n, *batch, M))
        roots = rng.normal(0.0, 0.6, (n, *batch, M, M))
        self.spreads = roots @ roots.mT
        self.rewards = rng.integers(0, 2, (n, *batch)).astype(np.float64)

    def history(self, marginal: bool, room: int | None = None) -> History:
        past = logistic.blank(KNOWN, room, marginal)
        for row, spread, reward in zip(self.rows, self.spreads, self.rewards, strict=True):
            past = logistic.add(past, evidence(row, spread), reward)
        return past

    def logits(self, theta: Array, marginal: bool) -> Array:
        """x'theta, shrunk by MacKay's factor where the context is averaged out; one round at a time."""
        found = []
        for row, spread in zip(self.rows, self.spreads, strict=True):
            variance = theta @ spread @ theta if marginal else 0.0
            found.append(row @ theta / np.sqrt(1 + np.pi / 8 * variance))
        return np.array(found)

    def energy(self, theta: Array, marginal: bool) -> float:
        """Minus the log of prior and likelihood, without what theta does not change."""
        away = theta - KNOWN.prior_mean
        prior = away @ np.linalg.inv(KNOWN.prior_cov) @ away / 2
        chances = expit(self.logits(theta, marginal))
        return float(prior - np.log(np.where(self.rewards == 1, chances, 1 - chances)).sum())


def slope(function: Any, theta: Array, step: float = 1e-5) -> Array:
    """Central differences along every coordinate, on a new last axis."""
    moves = step * np.eye(len(theta))
    return np.stack([(function(theta + e) - function(theta - e)) / (2 * step) for e in moves], -1)


THETAS = np.random.default_rng(7).normal(0.5, 1.0, (5, M))


def test_logits_are_those_of_every_round() -> None:
    for room in [None, 9, 30]:
        for marginal in [False, True]:
            check_logits_are_those_of_every_round(marginal, room)


def check_logits_are_those_of_every_round(marginal: bool, room: int | None) -> None:
    rounds = Rounds(9)
    past = rounds.history(marginal, room)
    assert float(past.seen) == 9
    for theta in THETAS:
        found = logistic.logits(past, theta).value
        np.testing.assert_allclose(found[:9], rounds.logits(theta, marginal), rtol=1e-12)
        assert not found[9:].any()


def test_gradients_of_logits_are_finite_differences() -> None:
    for marginal in [False, True]:
        check_gradients_of_logits_are_finite_differences(marginal)


def check_gradients_of_logits_are_finite_differences(marginal: bool) -> None:
    rounds = Rounds(9)
    past = rounds.history(marginal)
    for theta in THETAS:
        right = slope(lambda at: rounds.logits(at, marginal), theta)
        np.testing.assert_allclose(logistic.logits(past, theta).rows.T, right, rtol=1e-7, atol=1e-9)


def test_the_energy_is_minus_the_log_posterior() -> None:
    for room in [None, 20]:
        for marginal in [False, True]:
            check_the_energy_is_minus_the_log_posterior(marginal, room)


def check_the_energy_is_minus_the_log_posterior(marginal: bool, room: int | None) -> None:
    rounds = Rounds(12)
    past = rounds.history(marginal, room)
    # A slot that is still empty adds log 2 whatever theta is.
    empty = (0 if room is None else room - 12) * np.log(2)
    for theta in THETAS:
        found = float(logistic.energy(PRIOR, past, theta))
        assert found - empty == pytest.approx(rounds.energy(theta, marginal), rel=1e-11)


def test_the_gradient_is_that_of_the_energy() -> None:
    for room in [None, 20]:
        for marginal in [False, True]:
            check_the_gradient_is_that_of_the_energy(marginal, room)


def check_the_gradient_is_that_of_the_energy(marginal: bool, room: int | None) -> None:
    rounds = Rounds(12)
    past = rounds.history(marginal, room)
    for theta in THETAS:
        right = slope(lambda at: rounds.energy(at, marginal), theta)
        np.testing.assert_allclose(logistic.gradient(PRIOR, past, theta), right, rtol=1e-6, atol=1e-7)


def test_the_hessian_is_that_of_the_energy() -> None:
    for room in [None, 20]:
        check_the_hessian_is_that_of_the_energy(room)


def check_the_hessian_is_that_of_the_energy(room: int | None) -> None:
    rounds = Rounds(12)
    past = rounds.history(False, room)
    for theta in THETAS:
        right = slope(lambda at: slope(lambda to: rounds.energy(to, False), at, 1e-4), theta, 1e-4)
        np.testing.assert_allclose(logistic.hessian(PRIOR, past, theta), right, rtol=1e-5, atol=1e-5)


def test_with_contexts_averaged_out_it_is_gauss_and_newtons() -> None:
    """P + sum sigmoid'(z) g g', with g by finite differences: no second derivatives of the logits."""
    rounds = Rounds(12)
    past = rounds.history(True)
    for theta in THETAS:
        slopes, chances = slope(lambda at: rounds.logits(at, True), theta), expit(rounds.logits(theta, True))
        right = np.linalg.inv(KNOWN.prior_cov) + slopes.T @ np.diag(chances * (1 - chances)) @ slopes
        found = logistic.hessian(PRIOR, past, theta)
        np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-8)
        assert np.linalg.eigvalsh(found).min() > 0


def test_averaging_is_within_two_hundredths() -> None:
    """MacKay's logit against E[sigmoid] by SciPy's integral over a Gaussian score."""
    for variance in [0.0, 0.3, 2.0, 9.0, 40.0]:
        for mean in [-6.0, -1.5, 0.0, 0.4, 3.0]:
            check_averaging_is_within_two_hundredths(mean, variance)


def check_averaging_is_within_two_hundredths(mean: float, variance: float) -> None:
    theta = np.array([2.0, 0, 0, 0])
    row, spread = mean / 2 * np.eye(M)[0], np.diag([variance / 4, 9.0, 9.0, 9.0])
    past = logistic.add(logistic.blank(KNOWN, None, True), evidence(row, spread), np.asarray(1.0))
    found = float(expit(logistic.logits(past, theta).value[0]))
    width = max(variance, 1e-12) ** 0.5

    def integrand(z: float) -> float:
        return float(norm.pdf(z) * expit(mean + width * z))

    right = quad(integrand, -12, 12, limit=200, points=[-mean / width] if abs(mean) < 12 * width else None)[0]
    assert found == pytest.approx(right, abs=0.02)
    plain = float(expit(mean))
    # Better than not averaging at all, wherever that makes a difference.
    assert abs(found - right) < 0.5 * abs(plain - right) or abs(plain - right) < 0.01


def test_a_history_of_fixed_size_is_one_that_grows() -> None:
    for room in [12, 13, 40]:
        for marginal in [False, True]:
            check_a_history_of_fixed_size_is_one_that_grows(marginal, room)


def check_a_history_of_fixed_size_is_one_that_grows(marginal: bool, room: int) -> None:
    rounds = Rounds(12, 3)
    grown, fixed = rounds.history(marginal), rounds.history(marginal, room)
    theta = np.random.default_rng(1).normal(0.5, 1.0, (3, M))
    assert grown.rows.shape == (3, M, 12)
    assert fixed.rows.shape == (3, M, room)
    np.testing.assert_array_equal(fixed.rows[..., :12], grown.rows)
    np.testing.assert_array_equal(fixed.rewards[..., :12], grown.rewards)
    assert not fixed.rows[..., 12:].any()
    assert not fixed.rewards[..., 12:].any()
    for function in (logistic.gradient, logistic.hessian):
        found, right = function(PRIOR, fixed, theta), function(PRIOR, grown, theta)
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
    empty = (room - 12) * np.log(2)
    energies = (logistic.energy(PRIOR, past, theta) for past in (fixed, grown))
    np.testing.assert_allclose(next(energies) - empty, next(energies), rtol=1e-12)


def test_before_the_first_round_there_is_the_prior_alone() -> None:
    for marginal in [False, True]:
        check_before_the_first_round_there_is_the_prior_alone(marginal)


def check_before_the_first_round_there_is_the_prior_alone(marginal: bool) -> None:
    theta = THETAS[0]
    for room in (None, 5):
        past = logistic.blank(KNOWN, room, marginal)
        precision = np.linalg.inv(KNOWN.prior_cov)
        pull = precision @ (theta - KNOWN.prior_mean)
        np.testing.assert_allclose(logistic.gradient(PRIOR, past, theta), pull, rtol=1e-12)
        np.testing.assert_allclose(logistic.hessian(PRIOR, past, theta), precision, rtol=1e-12)
        assert float(past.seen) == 0


@pytest.mark.slow
def test_jax_fills_and_reads_a_history_alike() -> None:
    for marginal in [False, True]:
        check_jax_fills_and_reads_a_history_alike(marginal)


def check_jax_fills_and_reads_a_history_alike(marginal: bool) -> None:
    rounds = Rounds(6, 3)
    theta = np.random.default_rng(1).normal(0.5, 1.0, (3, M))

    def filled(blank: History, rows: Array, spreads: Array, rewards: Array, theta: Array) -> Any:
        past = blank
        for row, spread, reward in zip(rows, spreads, rewards, strict=True):
            past = logistic.add(past, evidence(row, spread), reward)
        prior = logistic.Prior(jnp.asarray(PRIOR.mean), jnp.asarray(PRIOR.precision))
        parts = logistic.gradient, logistic.hessian, logistic.energy
        return past, [part(prior, past, theta) for part in parts]

    blank = jax.tree.map(jnp.asarray, logistic.blank(KNOWN, 8, marginal))
    given = [jnp.asarray(part) for part in (rounds.rows, rounds.spreads, rounds.rewards, theta)]
    past, found = jax.jit(filled)(blank, *given)
    fixed = rounds.history(marginal, 8)
    assert float(past.seen) == 6
    np.testing.assert_array_equal(past.rows, fixed.rows)
    np.testing.assert_array_equal(past.rewards, fixed.rewards)
    right = [part(PRIOR, fixed, theta) for part in (logistic.gradient, logistic.hessian, logistic.energy)]
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_trials_remember_apart() -> None:
    for marginal in [False, True]:
        check_trials_remember_apart(marginal)


def check_trials_remember_apart(marginal: bool) -> None:
    rounds, theta = Rounds(7, 3), np.random.default_rng(1).normal(0.5, 1.0, (3, M))
    together = logistic.gradient(PRIOR, rounds.history(marginal), theta)
    for i in range(3):
        alone = Rounds(7, 3)
        alone.rows, alone.spreads, alone.rewards = (
            part[:, i] for part in (rounds.rows, rounds.spreads, rounds.rewards)
        )
        right = slope(lambda at, one=alone: one.energy(at, marginal), theta[i])
        np.testing.assert_allclose(together[i], right, rtol=1e-6, atol=1e-7)


def test_adding_a_round_leaves_the_old_history_alone() -> None:
    for room in (None, 4):
        past = logistic.blank(KNOWN, room, True)
        copies = [np.array(part) for part in past if part is not None]
        after = logistic.add(past, evidence(np.ones(M), spd(np.random.default_rng(0), M)), np.asarray(1.0))
        assert all(
            np.array_equal(a, b) for a, b in zip((p for p in past if p is not None), copies, strict=True)
        )
        assert float(after.seen) == 1


def test_saturated_rounds_give_no_warning_and_no_nan() -> None:
    past = logistic.blank(KNOWN, None, False)
    for sign, reward in ((1.0, 0.0), (-1.0, 1.0), (1.0, 1.0)):
        past = logistic.add(past, evidence(sign * np.full(M, 300.0)), np.asarray(reward))
    theta = np.full(M, 3.0)
    # Two rewards that were thought impossible, each with a logit of -3600 against it.
    assert float(logistic.energy(PRIOR, past, theta)) == pytest.approx(7200, rel=0.02)
    assert np.isfinite(logistic.gradient(PRIOR, past, theta)).all()
    precision = np.linalg.inv(KNOWN.prior_cov)
    np.testing.assert_allclose(logistic.hessian(PRIOR, past, theta), precision, rtol=1e-9)
