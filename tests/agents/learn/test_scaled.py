"""Scales of theta and of the noise, learnt: against the closed form of the normal linear model."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_t

from tests.problems import spd
from unfog.agents.base import Evidence
from unfog.agents.learn import Hetero, Scaled
from unfog.agents.learn.scaled import State
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import as_matrix
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

D, M, N = 2, 6, 40


def knowledge(rng: np.random.Generator, noise: float = 0.7) -> Knowledge:
    cov = spd(rng, D)
    prior = rng.normal(size=M), spd(rng, M)
    return Knowledge(rng.normal(size=D), cov, cov, cov, *prior, np.asarray(noise))


def played(
    learner: Any, known: Knowledge, rng: np.random.Generator, theta: Array, sd: float, cov: Any = 0.0
) -> tuple[State, Array, Array]:
    """Rounds whose contexts are known, or N(mean, cov): the last state, the rows and the rewards."""
    setup, state = learner.setup(known), learner.start(known, None)
    rows, rewards = [], []
    for _ in range(N):
        features = quadratic(rng.normal(size=(3, D)))
        design = features.design(Context(rng.normal(size=D), np.eye(D) * cov))
        evidence = Evidence(features, design, learner.belief(setup, state), np.asarray(rng.integers(3)))
        rows.append(evidence.row())
        rewards.append(rows[-1] @ theta + sd * rng.standard_normal())
        state = learner.update(setup, state, evidence, np.asarray(rewards[-1]))
    return state, np.asarray(rows), np.asarray(rewards)


def at(state: State, index: int) -> Any:
    """The belief at one scale."""
    return gaussian.Gaussian(state.beliefs.mean[index], state.beliefs.root[index])


def test_every_scale_is_the_normal_inverse_gamma_of_the_textbook(rng: np.random.Generator) -> None:
    known = knowledge(rng)
    learner = Scaled(scales=3, ratio=2.0, trust=6.0)
    state, rows, rewards = played(learner, known, rng, rng.normal(size=M), 1.5)
    mu, told = known.prior_mean, 0.7
    for index, scale in enumerate((0.5, 1.0, 2.0)):
        before = np.linalg.inv(scale**2 * known.prior_cov / told)
        precision = before + rows.T @ rows
        mean = np.linalg.solve(precision, before @ mu + rows.T @ rewards)
        rate = 3.0 * told + 0.5 * (rewards @ rewards + mu @ before @ mu - mean @ precision @ mean)
        found = at(state, index)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
        np.testing.assert_allclose(
            gaussian.covariance(found), np.linalg.inv(precision), rtol=1e-8, atol=1e-12
        )
        np.testing.assert_allclose(state.rates[index], rate, rtol=1e-9)
    np.testing.assert_allclose(state.shape, 3.0 + N / 2)


def test_scales_are_weighed_by_the_density_of_all_rewards(rng: np.random.Generator) -> None:
    known = knowledge(rng)
    learner = Scaled(scales=3, ratio=2.0, trust=6.0, doubt=0.2)
    state, rows, rewards = played(learner, known, rng, rng.normal(size=M), 1.0)
    right = []
    for scale, doubt in ((0.5, 0.1), (1.0, 0.8), (2.0, 0.1)):
        spread = 0.7 * np.eye(N) + scale**2 * rows @ known.prior_cov @ rows.T
        density = multivariate_t(rows @ known.prior_mean, spread, df=6.0).logpdf(rewards)
        right.append(density + np.log(doubt))
    np.testing.assert_allclose(np.diff(state.weights), np.diff(right), rtol=1e-8)


def test_the_belief_is_that_of_the_most_probable_scale(rng: np.random.Generator) -> None:
    known = knowledge(rng)
    learner = Scaled(ratio=5.0, doubt=0.3)
    theta = known.prior_mean + 5 * np.linalg.cholesky(known.prior_cov) @ rng.standard_normal(M)
    state, *_ = played(learner, known, rng, theta, 0.8)
    assert state.weights.argmax() == 2
    setup = learner.setup(known)
    belief: Any = learner.belief(setup, state)
    noise = state.rates[2] / state.shape
    np.testing.assert_allclose(learner.noise(setup, state, np.zeros(())), noise)
    right = at(state, 2)
    np.testing.assert_array_equal(belief.mean, right.mean)
    np.testing.assert_allclose(gaussian.covariance(belief), noise * gaussian.covariance(right), rtol=1e-12)
    first: Any = learner.belief(setup, learner.start(known, None))  # to begin with, what is told
    np.testing.assert_allclose(gaussian.covariance(first), known.prior_cov, rtol=1e-12)


def test_mixed_it_has_the_moments_of_all_scales(rng: np.random.Generator) -> None:
    """Each scale by the textbook and its weight by the density of all rewards, as above; then moments."""
    known, told = knowledge(rng), 0.7
    learner = Scaled(scales=3, ratio=2.0, trust=6.0, doubt=0.6, larger=0.7, mixed=True)
    state, rows, rewards = played(learner, known, rng, rng.normal(size=M), 1.0)
    mu, logs, noises, means, covs = known.prior_mean, [], [], [], []
    for scale, share in ((0.5, 0.18), (1.0, 0.4), (2.0, 0.42)):
        before = np.linalg.inv(scale**2 * known.prior_cov / told)
        precision = before + rows.T @ rows
        means.append(np.linalg.solve(precision, before @ mu + rows.T @ rewards))
        total = rewards @ rewards + mu @ before @ mu - means[-1] @ precision @ means[-1]
        noises.append((3.0 * told + 0.5 * total) / (3.0 + N / 2))
        covs.append(noises[-1] * np.linalg.inv(precision))
        spread = told * np.eye(N) + scale**2 * rows @ known.prior_cov @ rows.T
        logs.append(np.log(share) + multivariate_t(rows @ mu, spread, df=6.0).logpdf(rewards))
    weights = np.exp(np.asarray(logs) - max(logs))
    weights /= weights.sum()
    assert weights.max() < 0.99  # or there would be nothing to mix
    second = sum(w * (c + np.outer(m, m)) for w, c, m in zip(weights, covs, means, strict=True))
    mean = weights @ np.asarray(means)
    setup = learner.setup(known)
    belief: Any = learner.belief(setup, state)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(
        gaussian.covariance(belief), second - np.outer(mean, mean), rtol=1e-6, atol=1e-10
    )
    np.testing.assert_allclose(learner.noise(setup, state, np.zeros(())), weights @ noises, rtol=1e-8)


def test_mixed_before_any_reward_it_is_wider_than_told(rng: np.random.Generator) -> None:
    known, learner = knowledge(rng), Scaled(ratio=2.0, doubt=0.4, larger=0.8, mixed=True)
    belief: Any = learner.belief(learner.setup(known), learner.start(known, None))
    np.testing.assert_allclose(belief.mean, known.prior_mean)
    wider = 0.08 / 4 + 0.6 + 0.32 * 4
    np.testing.assert_allclose(gaussian.covariance(belief), wider * known.prior_cov, rtol=1e-12)


def test_with_scales_that_are_certain_it_is_hetero(rng: np.random.Generator) -> None:
    known, theta = knowledge(rng), rng.normal(size=M)
    sure = Scaled(scales=1, trust=1e14)
    state, *_ = played(sure, known, np.random.default_rng(3), theta, 0.8, cov=0.4)
    right, *_ = played(Hetero(), known, np.random.default_rng(3), theta, 0.8, cov=0.4)
    belief = sure.belief(sure.setup(known), state)
    known_to_be: Any = right
    np.testing.assert_allclose(belief.mean, known_to_be.mean, rtol=1e-9)
    np.testing.assert_allclose(belief.root, known_to_be.root, rtol=1e-7, atol=1e-10)


def test_the_noise_is_found_whatever_is_told(rng: np.random.Generator) -> None:
    """Twenty times 300 rewards of variance 2.25: within 15 %, eight standard errors; what is told fades."""
    for told in (0.2, 2.25, 30.0):
        known = knowledge(rng, told)
        learner = Scaled()
        setup, state, theta = learner.setup(known), learner.start(known, None), rng.normal(size=M)
        features = quadratic(rng.normal(size=(20, 4, D)))  # twenty trials side by side
        for _ in range(300):
            design = features.at(rng.normal(size=(20, D)))
            arm = rng.integers(4, size=20)
            evidence = Evidence(features, design, learner.belief(setup, state), arm)
            paid = np.vecdot(evidence.row(), theta) + 1.5 * rng.standard_normal(20)
            state = learner.update(setup, state, evidence, paid)
        found = learner.noise(setup, state, np.zeros(()))
        assert found.shape == (20,)
        about = (10 * told + 300 * 2.25) / 310  # what is told is worth ten rewards
        assert abs(found.mean() / about - 1) < 0.15


def test_blocks_are_the_same_belief(rng: np.random.Generator) -> None:
    for mixed in [False, True]:
        check_blocks_are_the_same_belief(rng, mixed)


def check_blocks_are_the_same_belief(rng: np.random.Generator, mixed: bool) -> None:
    arms, dim = 3, 2
    covs = np.stack([spd(rng, dim) for _ in range(arms)])
    zero = np.zeros(dim)
    cut = Knowledge(zero, covs[0], covs[0], covs[0], rng.normal(size=arms * dim), covs, np.asarray(0.5))
    flat, learner = cut._replace(prior_cov=as_matrix(covs)), Scaled(mixed=mixed, doubt=0.4)
    features = PerArm(arms, dim, intercept=False)
    states = [learner.start(known, None) for known in (cut, flat)]
    for _ in range(30):
        design, arm = features.design(Context(rng.normal(size=dim), 0.3 * np.eye(dim))), rng.integers(arms)
        paid = np.asarray(3 * rng.standard_normal())
        for i, known in enumerate((cut, flat)):
            setup = learner.setup(known)
            evidence = Evidence(features, design, learner.belief(setup, states[i]), np.asarray(arm))
            states[i] = learner.update(setup, states[i], evidence, paid)
    np.testing.assert_allclose(states[0].weights, states[1].weights, rtol=1e-9)
    np.testing.assert_allclose(states[0].rates, states[1].rates, rtol=1e-9)
    pair = [learner.belief(learner.setup(known), s) for known, s in zip((cut, flat), states, strict=True)]
    np.testing.assert_allclose(pair[0].centre, pair[1].centre, rtol=1e-9)
    for row in np.kron(np.eye(arms), rng.normal(size=dim)):  # within one block each
        np.testing.assert_allclose(pair[0].variance(row), pair[1].variance(row), rtol=1e-9)


def test_a_theta_much_larger_than_told_costs_less_to_who_learns_its_scale() -> None:
    """The mean of 200 paired differences is well below zero: three standard errors."""
    told: Any = {"features": "per_arm", "prior_cov": 0.1, "reward_var": 0.3}
    problem = GaussianProblem(dim=3, actions=6, theta_scale=5.0, **told)
    found = play(problem, ["unfog", "unfog-hetero"], rounds=300, trials=200, seed=8, decompose=False)
    regret = found.values["regret"][:, :, -1]
    gap = regret[0] - regret[1]
    assert gap.mean() < -3 * gap.std() / np.sqrt(200)


@pytest.mark.slow
def test_mixed_it_does_not_lock_arms_out_where_theta_is_twice_as_large_as_told() -> None:
    """Many arms, each with features of its own: the mean of 200 paired differences, four standard errors."""
    told: Any = {"features": "per_arm", "prior_cov": 0.1, "reward_var": 0.5, "context_cov": 0.05}
    problem = GaussianProblem(dim=1, actions=25, theta_scale=2.0, **told)
    agents = ["unfog:mixed=true:ratio=2:doubt=0.25:larger=0.8", "unfog"]
    found = play(problem, agents, rounds=500, trials=200, seed=12, decompose=False)
    regret = found.values["regret"][:, :, -1]
    gap = regret[0] - regret[1]
    assert gap.mean() < -4 * gap.std() / np.sqrt(200)


def test_bad_settings_are_refused_by_name() -> None:
    bad: dict[str, list[Any]] = {
        "scales": [0, 2, 17],
        "ratio": [1.0, 101.0],
        "trust": [0.0],
        "doubt": [0.0, 1.0],
        "larger": [0.0, 1.0],
        "mixed": [1],
    }
    for field, values in bad.items():
        for value in values:
            with pytest.raises(InputError, match=rf"^{field}: .*; allowed: "):
                Scaled(**{field: value})
