"""The heteroscedastic learner against updates by hand and Monte Carlo of what rewards do."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.problems import evidence, inverse, random_problem, spd, within
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.learn import Conjugate, Hetero
from unfog.agents.round import Observation
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.maths.gaussian import Blocks
from unfog.simulation import play

D = 3
EXACT = replace(AGENTS["alg1-exact"], name="mine", learner=Hetero())


def test_one_number_by_hand() -> None:
    # theta ~ N(2, 9), c ~ N(3, 4), phi = c: w = 4 (2^2 + 9) = 52, s^2 = 5 + 52; precision 1/9 + 9/57.
    prior = gaussian.from_moments(np.array([2.0]), np.array([[9.0]]))
    features, reward = PerArm(1, 1, intercept=False), np.asarray(7.0)
    design = features.design(Context(np.array([3.0]), np.array([[4.0]])))
    seen = Evidence(features, design, prior, np.asarray(0))
    assert seen.context_variance() == pytest.approx(52)
    belief = Hetero().update(np.asarray(5.0), prior, seen, reward)
    precision = 1 / 9 + 9 / 57
    assert gaussian.covariance(belief)[0, 0] == pytest.approx(1 / precision)
    assert belief.mean[0] == pytest.approx((2 / 9 + 3 * 7 / 57) / precision)


def test_the_rewards_variance_by_monte_carlo(known: Knowledge, rng: np.random.Generator) -> None:
    # Var(r | theta, chat) averaged over theta, from pairs of rewards; within 5 standard errors.
    features, draws = quadratic(rng.normal(size=(1, 4, D))), 200_000
    context = Context(rng.normal(1.0, 1.0, D), spd(rng, D))
    prior, arm = gaussian.from_moments(known.prior_mean, known.prior_cov), np.array([2])
    variance = np.asarray(known.reward_var, np.float64)
    told = variance + features.design(context).context_variance(prior, arm)
    theta = prior.mean + rng.standard_normal((draws, 9)) @ prior.root.T
    arms, root = np.full(draws, arm), np.linalg.cholesky(context.cov)
    rewards = [
        (features.at(context.mean + rng.standard_normal((draws, D)) @ root.T).row(arms) * theta).sum(-1)
        + np.sqrt(variance) * rng.standard_normal(draws)
        for _ in range(2)
    ]
    squares = (rewards[0] - rewards[1]) ** 2 / 2
    assert within(squares.mean(), told, squares.std() / np.sqrt(draws))


def walk(agent: Agent, known: Knowledge, features: Any, rng: np.random.Generator) -> Any:
    """Thirty rounds by hand, each checked against the precision form with Cov(phi) in full."""
    setup, memory = rounds.start(agent, known)
    m = known.prior_mean.shape[-1]
    whole = known.prior_cov if known.prior_cov.ndim == 2 else np.zeros((m, m))
    for b, block in enumerate(known.prior_cov if known.prior_cov.ndim == 3 else ()):
        whole[D * b : D * b + D, D * b : D * b + D] = block
    mean, cov = known.prior_mean, whole
    for _ in range(30):
        noisy, reward = rng.normal(1.0, 2.0, D), np.asarray(rng.normal(0.0, 3.0))
        normals, observation = np.asarray(rng.normal(size=m)), Observation(noisy)
        decision = rounds.decide(agent, setup, memory, features, observation, normals)
        memory = rounds.observe(agent, setup, memory, observation)
        memory, decision = rounds.reward(agent, setup, memory, decision, reward)
        design = features.design(decision.context)
        row, spread = design.row(decision.arm), design.covariance(decision.arm)
        variance = known.reward_var + mean @ spread @ mean + np.trace(spread @ cov)
        precision = inverse(cov) + np.outer(row, row) / variance
        mean, cov = (
            np.linalg.solve(precision, inverse(cov) @ mean + row * reward / variance),
            inverse(precision),
        )
        yield agent.learner.belief(setup.learner, memory.learner), mean, cov


def test_thirty_rounds_in_one_piece(known: Knowledge, rng: np.random.Generator) -> None:
    for belief, mean, cov in walk(EXACT, known, quadratic(rng.normal(size=(5, D))), rng):
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(gaussian.covariance(belief), cov, rtol=1e-8, atol=1e-11)


def test_thirty_rounds_in_blocks(known: Knowledge, rng: np.random.Generator) -> None:
    known = known._replace(prior_cov=np.stack([spd(rng, D, 0.1) for _ in range(3)]))
    for belief, mean, cov in walk(EXACT, known, PerArm(3, D, intercept=False), rng):
        assert isinstance(belief, Blocks)
        np.testing.assert_allclose(belief.mean.reshape(-1), mean, rtol=1e-9, atol=1e-10)
        for b in range(3):
            own = slice(D * b, D * b + D)
            np.testing.assert_allclose(
                belief.root[b] @ belief.root[b].T, cov[own, own], rtol=1e-8, atol=1e-11
            )


def test_a_revealed_context_leaves_nothing_unknown() -> None:
    # Setting 2: rows are phi(a, c) themselves, and the plain learner is right.
    problem, agents_ = random_problem(3), [AGENTS["alg2-exact"], Catalogue()["alg2-exact-hetero"]]
    plain, hetero = (play(problem, [a], rounds=40, trials=3).values["regret"] for a in agents_)
    assert np.array_equal(plain, hetero)


def test_it_says_what_it_is() -> None:
    row = Catalogue()["alg1-exact-hetero"]
    assert row.learner == Hetero()
    assert row.learner.rewards == "gaussian"
    assert (row.can.sample, row.can.look_back, row.can.revise) == (None, None, None)
    assert row.learner.needs == row.learner.needs_features == ()


def test_without_a_context_to_guess_it_is_the_plain_learner(
    known: Knowledge, rng: np.random.Generator
) -> None:
    learner, conjugate, row, reward = Hetero(), Conjugate(), rng.normal(size=9), np.asarray(1.3)
    start, variance = conjugate.start(known, None), conjugate.setup(known)
    plain = conjugate.update(variance, start, evidence(row), reward)
    for spread in (None, np.zeros((9, 9))):
        shown = evidence(row, spread, start)
        found = learner.update(learner.setup(known), learner.start(known, None), shown, reward)
        assert np.array_equal(found.mean, plain.mean)
        assert np.array_equal(found.root, plain.root)


# Learning from the size of surprises.


def test_a_surprise_by_hand() -> None:
    # theta ~ N(2, 9), c ~ N(1, 4), phi = c, sigma^2 = 8: v = 8 + 4 (2^2 + 9) = 60, t = 60 + 9 = 69. A reward
    # of 25 surprises by 23: theta ~ N(5, 180 / 23) after it. With the slope 2 * 4 * 2 = 16 of the variance
    # its square is a measurement of variance 2 * 69^2 that lies 60 (23^2 / 69 - 1) = 400 above its mean.
    prior = gaussian.from_moments(np.array([2.0]), np.array([[9.0]]))
    seen = evidence(np.array([1.0]), np.array([[4.0]]), prior)
    found = Hetero(surprise=True).update(np.asarray(8.0), prior, seen, np.asarray(25.0))
    precision = 23 / 180 + 16**2 / (2 * 69**2)
    assert gaussian.covariance(found)[0, 0] == pytest.approx(1 / precision)
    assert found.mean[0] == pytest.approx(5 + 16 * 400 / (2 * 69**2) / precision)


def test_where_contexts_are_known_surprises_say_nothing(known: Knowledge, rng: np.random.Generator) -> None:
    plain, learner, variance = Hetero(), Hetero(surprise=True), Hetero().setup(known)
    rows, rewards, start = rng.normal(size=(4, 9)), rng.normal(size=4), plain.start(known, None)
    right = plain.update(variance, start, evidence(rows), rewards)
    for spread in (None, np.zeros((4, 9, 9))):
        found = learner.update(variance, start, evidence(rows, spread, start), rewards)
        np.testing.assert_allclose(found.mean, right.mean, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(found.root, right.root, rtol=1e-13, atol=1e-14)


TRUTH, MEAN, SPREAD, NOISE, TRIALS = 1.5, 0.3, 1.0, 0.2, 400  # theta; E[c] and Var(c); sigma^2


def filtered(learner: Hetero, rounds: int, mean: float) -> tuple[Any, Any]:
    """Mean and variance of theta ~ N(1, 1) after rewards theta c + noise, c ~ N(mean, SPREAD): (TRIALS,)."""
    rng = np.random.default_rng(11)
    belief = gaussian.Gaussian(np.ones((TRIALS, 1)), np.ones((TRIALS, 1, 1)))
    row, noise = np.full((TRIALS, 1), mean), np.asarray(NOISE)
    for _ in range(rounds):
        c, e = rng.standard_normal((2, TRIALS))
        reward = TRUTH * (mean + np.sqrt(SPREAD) * c) + np.sqrt(NOISE) * e
        belief = learner.update(noise, belief, evidence(row, np.array([[SPREAD]]), belief), reward)
    return belief.mean[:, 0], belief.root[:, 0, 0] ** 2


def test_surprises_bring_theta_nearer_where_it_decides_the_variance() -> None:
    # 200 rewards tell the variance of one to 10 %, and so theta to 5 %; their mean, 0.3 theta of deviation
    # 1.6, tells it to 0.35. Paired squared errors, five standard errors: wrong once in a million seeds.
    (plain, spread), (mean, variance) = (filtered(Hetero(surprise=s), 200, MEAN) for s in (False, True))
    gap = (plain - TRUTH) ** 2 - (mean - TRUTH) ** 2
    assert gap.mean() > 5 * gap.std() / np.sqrt(TRIALS)
    assert abs(mean.mean() - TRUTH) < 0.02 + 5 * mean.std() / np.sqrt(TRIALS)
    assert np.sqrt(((mean - TRUTH) ** 2).mean()) < 0.12
    assert (variance < spread / 3).all()


def test_at_first_it_is_too_sure_and_later_as_sure_as_it_may_be() -> None:
    for number, least, most in [(25, 1.5, 6), (200, 1.1, 2.2), (800, 0.75, 1.25)]:
        check_at_first_it_is_too_sure_and_later_as_sure_as_it_may_be(number, least, most)


def check_at_first_it_is_too_sure_and_later_as_sure_as_it_may_be(
    rounds: int, least: float, most: float
) -> None:
    mean, variance = filtered(Hetero(surprise=True), rounds, MEAN)
    assert least < ((mean - TRUTH) ** 2).mean() / variance.mean() < most


def test_more_surprises_bring_it_nearer_still() -> None:
    # Features of mean zero: the plain learner learns nothing at all. Errors fall as 1 / sqrt(rounds).
    start = filtered(Hetero(), 60, 0.0)
    assert np.array_equal(start[0], np.ones(TRIALS))
    assert np.array_equal(start[1], np.ones(TRIALS))
    steps = [filtered(Hetero(surprise=True), rounds, 0.0) for rounds in (25, 100, 400)]
    errors = [np.sqrt(((mean - TRUTH) ** 2).mean()) for mean, _ in steps]
    spreads = [variance.max() for _, variance in steps]
    for few, more in pairwise(errors):
        assert more < 0.65 * few
    assert 1 > spreads[0] > 2 * spreads[1] > 4 * spreads[2]


def test_surprises_in_blocks_are_those_in_one_piece(known: Knowledge, rng: np.random.Generator) -> None:
    covs = np.stack([spd(rng, D, 0.1) for _ in range(3)])
    agent, features = replace(EXACT, learner=Hetero(surprise=True)), PerArm(3, D, intercept=False)
    kinds = [known._replace(prior_cov=cov) for cov in (covs, gaussian.as_matrix(covs))]
    runs = [rounds.start(agent, kind) for kind in kinds]
    (setup, cut), (_, one) = runs
    for _ in range(30):
        observation, normals = Observation(rng.normal(1.0, 2.0, (2, D))), rng.standard_normal((2, 9))
        reward = rng.normal(0.0, 3.0, 2)
        told, same = (rounds.decide(agent, setup, x, features, observation, normals) for x in (cut, one))
        same = same._replace(evidence=same.evidence._replace(arm=told.arm))
        cut, one = (rounds.observe(agent, setup, memory, observation) for memory in (cut, one))
        cut, one = (
            rounds.reward(agent, setup, memory, decision, reward)[0]
            for memory, decision in ((cut, told), (one, same))
        )
    assert isinstance(cut.learner, Blocks)
    np.testing.assert_allclose(cut.learner.centre, one.learner.mean, rtol=1e-9, atol=1e-10)
    whole = gaussian.covariance(one.learner).reshape(2, 3, D, 3, D)
    for b in range(3):
        own = cut.learner.root[:, b] @ cut.learner.root[:, b].mT
        np.testing.assert_allclose(own, whole[:, b, :, b], rtol=1e-8, atol=1e-11)


@pytest.mark.slow
def test_engines_agree() -> None:
    settings: Any = {"agents": ["alg1-exact-hetero"], "rounds": 60, "trials": 4, "decompose": False}
    numpy = play(random_problem(7), **settings)
    jax = play(random_problem(7), engine="jax", draws="numpy", **settings)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)
