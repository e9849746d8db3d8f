"""Regret, its split and its estimates against loops over arms, numpy and simulation."""

from typing import NamedTuple

import numpy as np
import pytest

from tests.problems import feature_moments, quadratic_phi, random_knowledge, spd
from unfog.channel.knowledge import known_shrinkage
from unfog.features import Context
from unfog.features.link import Identity
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array, Ints
from unfog.theory import regret

TRIALS, K, D = 40, 5, 3
SCORES = Identity()


class Played(NamedTuple):
    """Rounds, one a trial, and what an agent with beliefs of its own did in them."""

    actions: Array
    theta: Array
    bias: Array
    context: Array
    noisy: Array
    own: Context
    arms: Ints
    tables: regret.Tables


@pytest.fixture
def played(rng: np.random.Generator) -> Played:
    known = random_knowledge(6)
    draw, zero = rng.multivariate_normal, np.zeros(D)
    actions, theta = rng.normal(size=(TRIALS, K, D)), rng.normal(0.2, 1.0, (TRIALS, 3 * D))
    bias = draw(zero, known.bias_cov, TRIALS)
    context = draw(known.context_mean, known.context_cov, TRIALS)
    noisy = context + bias + draw(zero, known.noise_cov, TRIALS)
    own = Context(rng.normal(1.0, 1.0, (TRIALS, D)), spd(rng, D))
    best = regret.oracle_context(known_shrinkage(known), noisy, bias)
    tables = regret.tables(SCORES, quadratic(actions), theta, best, context, noisy)
    return Played(actions, theta, bias, context, noisy, own, rng.integers(0, K, TRIALS), tables)


def oracle_scores(played: Played, i: int) -> Array:
    """E[phi(a, c)]'theta* given chat and gamma*, with the paper's A and M."""
    known = random_knowledge(6)
    c, n = np.linalg.inv(known.context_cov), np.linalg.inv(known.noise_cov)
    M = c + n
    A = np.linalg.solve(M, c @ known.context_mean + n @ (played.noisy[i] - played.bias[i]))
    rows, _ = feature_moments(quadratic_phi, played.actions[i], Context(A, np.asarray(np.linalg.inv(M))))
    return rows @ played.theta[i]


def own_scores(played: Played, i: int) -> Array:
    rows, _ = feature_moments(quadratic_phi, played.actions[i], Context(played.own.mean[i], played.own.cov))
    return rows @ played.theta[i]


def test_tables_are_mean_rewards_of_every_arm(played: Played) -> None:
    for i in range(TRIALS):
        np.testing.assert_allclose(played.tables.oracle[i], oracle_scores(played, i), rtol=1e-9, atol=1e-10)
        for arm in range(K):
            action, theta = played.actions[i, arm], played.theta[i]
            true, naive = quadratic_phi(action, played.context[i]), quadratic_phi(action, played.noisy[i])
            assert played.tables.true_context[i, arm] == pytest.approx(true @ theta, rel=1e-11, abs=1e-11)
            assert played.tables.plug_in is not None
            assert played.tables.plug_in[i, arm] == pytest.approx(naive @ theta, rel=1e-11, abs=1e-11)


def losses_of(played: Played, arms: Ints, own: Context | None = None) -> dict[str, Array]:
    design = quadratic(played.actions).design(played.own if own is None else own)
    return regret.losses(SCORES, played.tables, arms, design, played.theta)


def test_losses_are_gaps_to_the_best_arm(played: Played) -> None:
    losses = losses_of(played, played.arms)
    assert tuple(losses) == regret.names(True)
    for name, table in zip(regret.PLAIN, played.tables[:3], strict=True):
        assert table is not None
        for i in range(TRIALS):
            right = max(table[i]) - table[i][played.arms[i]]
            assert losses[name][i] == pytest.approx(right, abs=1e-13)


def test_regret_is_never_negative_and_nothing_for_the_best_arm(played: Played) -> None:
    for name, table in zip(regret.PLAIN, played.tables[:3], strict=True):
        assert table is not None
        best = table.argmax(-1)
        for arm in range(K):
            loss = losses_of(played, np.full(TRIALS, arm))[name]
            assert (loss >= 0).all()
            assert np.array_equal(loss == 0, best == arm)


@pytest.mark.slow
def test_the_split_is_its_definition(played: Played) -> None:
    split = losses_of(played, played.arms)
    for i, arm in enumerate(played.arms):
        own, oracle = own_scores(played, i), oracle_scores(played, i)
        hat, star = own.argmax(), oracle.argmax()
        assert split["cb"][i] == pytest.approx(own[hat] - own[arm], abs=1e-9)
        assert split["ee1"][i] == pytest.approx(oracle[star] - own[hat], abs=1e-9)
        assert split["ee2"][i] == pytest.approx(own[arm] - oracle[arm], abs=1e-9)


def test_the_split_adds_up_to_the_regret(played: Played) -> None:
    for arm in range(K):
        split = losses_of(played, np.full(TRIALS, arm))
        total = split["cb"] + split["ee1"] + split["ee2"]
        np.testing.assert_allclose(total, split["regret"], rtol=0, atol=1e-9)
        assert (split["cb"] >= 0).all()


def test_an_agent_with_the_oracles_belief_pays_for_learning_alone(played: Played) -> None:
    best = regret.oracle_context(known_shrinkage(random_knowledge(6)), played.noisy, played.bias)
    split = losses_of(played, played.arms, best)
    assert np.array_equal(split["cb"], split["regret"])
    assert not split["ee1"].any()
    assert not split["ee2"].any()


def test_regret_alone_needs_no_design(played: Played) -> None:
    found = regret.losses(SCORES, played.tables, played.arms, None, played.theta)
    assert list(found) == ["regret"]
    assert np.array_equal(found["regret"], losses_of(played, played.arms)["regret"])
