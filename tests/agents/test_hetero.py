"""The heteroscedastic learner against updates by hand and Monte Carlo of what rewards do."""

from typing import Any

import numpy as np
import pytest

from tests.problems import inverse, random_problem, spd, within
from unfog import gaussian
from unfog.agents import agent as agents
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.learn import conjugate
from unfog.agents.learn.hetero import Hetero
from unfog.blocks import Blocks
from unfog.features import Context
from unfog.features.block import Block
from unfog.features.quadratic import quadratic
from unfog.knowledge import Knowledge
from unfog.simulate import simulate

D = 3
EXACT = AGENTS["alg1-exact"]._replace(name="mine", learner=Hetero())


def test_one_number_by_hand() -> None:
    # theta ~ N(2, 9), c ~ N(3, 4), phi = c: w = 4 (2^2 + 9) = 52, s^2 = 5 + 52; precision 1/9 + 9/57.
    prior = gaussian.from_moments(np.array([2.0]), np.array([[9.0]]))
    learner, row, reward = Hetero(), np.array([3.0]), np.asarray(7.0)
    noise = (
        Block(1, 1).design(Context(np.array([3.0]), np.array([[4.0]]))).context_variance(prior, np.asarray(0))
    )
    assert noise == pytest.approx(52)
    belief = learner.update(np.asarray(5.0), prior, row, noise, reward)
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


def walk(agent: agents.Agent, known: Knowledge, features: Any, rng: np.random.Generator) -> Any:
    """Thirty rounds by hand, each checked against the precision form with Cov(phi) in full."""
    setup, memory = agents.begin(agent, known)
    m = known.prior_mean.shape[-1]
    whole = known.prior_cov if known.prior_cov.ndim == 2 else np.zeros((m, m))
    for b, block in enumerate(known.prior_cov if known.prior_cov.ndim == 3 else ()):
        whole[D * b : D * b + D, D * b : D * b + D] = block
    mean, cov = known.prior_mean, whole
    for _ in range(30):
        noisy, reward = rng.normal(1.0, 2.0, D), np.asarray(rng.normal(0.0, 3.0))
        decision = agents.decide(agent, setup, memory, features, noisy, np.asarray(rng.normal(size=m)))
        memory = agents.learn(agent, setup, memory, features, decision, noisy, reward, None)
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
    for belief, mean, cov in walk(EXACT, known, Block(3, D), rng):
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
    plain, hetero = (simulate(problem, [a], rounds=40, trials=3).values["regret"] for a in agents_)
    assert np.array_equal(plain, hetero)


def test_it_says_what_it_is() -> None:
    row = Catalogue()["alg1-exact-hetero"]
    assert row.learner == Hetero()
    assert (row.learner.kind, row.learner.spread, row.looks_back, row.amends) == (
        "gaussian",
        True,
        False,
        False,
    )


def test_without_a_context_to_guess_it_is_the_plain_learner(
    known: Knowledge, rng: np.random.Generator
) -> None:
    learner, row, reward = Hetero(), rng.normal(size=9), np.asarray(1.3)
    start, variance = conjugate.start(known, None), conjugate.setup(known)
    plain = conjugate.update(variance, start, row, None, reward)
    for spread in (None, np.zeros(())):
        found = learner.update(learner.setup(known), learner.start(known, None), row, spread, reward)
        assert np.array_equal(found.mean, plain.mean)


@pytest.mark.parametrize("name", ["alg1-exact-hetero", "naive-hetero", "alg2-hetero"])
def test_engines_agree(name: str) -> None:
    settings: Any = {"rounds": 60, "trials": 4, "seed": 3}
    numpy = simulate(random_problem(7), [name], **settings)
    jax = simulate(random_problem(7), [name], engine="jax", tape="numpy", **settings)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)
