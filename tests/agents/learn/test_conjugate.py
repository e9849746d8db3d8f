"""The conjugate learner against the precision form, written out, with a general prior."""

import numpy as np

from tests.problems import evidence, inverse, random_knowledge
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array

LEARNER = Conjugate()


def posterior(known: Knowledge, rows: Array, rewards: Array) -> tuple[Array, Array]:
    """Mean and covariance of theta, by explicit inverses."""
    prior, variance = np.linalg.inv(known.prior_cov), np.asarray(known.reward_var, np.float64)
    precision = prior + sum(np.outer(x, x) for x in rows) / variance
    pull = prior @ known.prior_mean + sum(r * x for r, x in zip(rewards, rows, strict=True)) / variance
    cov = inverse(precision)
    return cov @ pull, cov


def start(known: Knowledge) -> gaussian.Gaussian:
    state = LEARNER.start(known, None)
    assert isinstance(state, gaussian.Gaussian)
    return state


def test_it_starts_from_the_prior(known: Knowledge) -> None:
    belief = LEARNER.belief(LEARNER.setup(known), start(known))
    assert isinstance(belief, gaussian.Gaussian)
    assert np.array_equal(belief.mean, known.prior_mean)
    np.testing.assert_allclose(gaussian.covariance(belief), known.prior_cov, rtol=1e-12, atol=1e-14)


def test_it_is_the_precision_form(rng: np.random.Generator) -> None:
    for seed in [1, 2]:
        check_it_is_the_precision_form(seed, rng)


def check_it_is_the_precision_form(seed: int, rng: np.random.Generator) -> None:
    known = random_knowledge(seed)
    rows, rewards = rng.normal(0.5, 1.0, (60, 9)), rng.normal(2.0, 3.0, 60)
    parameters, state = LEARNER.setup(known), start(known)
    for n, (row, reward) in enumerate(zip(rows, rewards, strict=True), 1):
        state = LEARNER.update(parameters, state, evidence(row), reward)
        mean, cov = posterior(known, rows[:n], rewards[:n])
        belief = LEARNER.belief(parameters, state)
        assert isinstance(belief, gaussian.Gaussian)
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gaussian.covariance(belief), cov, rtol=1e-9, atol=1e-12)


def test_the_papers_prior_gives_the_papers_posterior(rng: np.random.Generator) -> None:
    size, variance, prior_var = 4, 2.0, 0.01
    known = random_knowledge(3, size=size)._replace(
        prior_mean=np.zeros(size), prior_cov=prior_var * np.eye(size), reward_var=np.asarray(variance)
    )
    rows, rewards = rng.normal(0.5, 4.0, (30, size)), rng.normal(2.0, 3.0, 30)
    parameters, state = LEARNER.setup(known), start(known)
    for row, reward in zip(rows, rewards, strict=True):
        state = LEARNER.update(parameters, state, evidence(row), reward)
    precision = np.eye(size) / prior_var + rows.T @ rows / variance
    np.testing.assert_allclose(np.linalg.inv(gaussian.covariance(state)), precision, rtol=1e-10)
    np.testing.assert_allclose(
        state.mean, np.linalg.solve(precision, rows.T @ rewards / variance), rtol=1e-10
    )


def test_trials_learn_apart(known: Knowledge, rng: np.random.Generator) -> None:
    rows, rewards = rng.normal(0.5, 1.0, (20, 3, 9)), rng.normal(2.0, 3.0, (20, 3))
    parameters, state = LEARNER.setup(known), start(known)
    for row, reward in zip(rows, rewards, strict=True):
        state = LEARNER.update(parameters, state, evidence(row), reward)
    for i in range(3):
        mean, cov = posterior(known, rows[:, i], rewards[:, i])
        np.testing.assert_allclose(state.mean[i], mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gaussian.covariance(state)[i], cov, rtol=1e-9, atol=1e-12)
