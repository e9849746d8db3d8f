"""Regret where rewards are sigmoids of scores: brute-force integrals over contexts, arm by arm."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from tests.problems import inverse, quadratic_phi, random_knowledge, spd
from unfog.channel.knowledge import known_shrinkage
from unfog.features import Context
from unfog.features.link import Identity, Sigmoid
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array, Ints
from unfog.theory import regret

TRIALS, K, D = 30, 5, 2
KNOWN = random_knowledge(6, dim=D, size=3 * D)


class Played(NamedTuple):
    """Rounds, one a trial, and what an agent with beliefs of its own did in them."""

    actions: Array
    theta: Array
    bias: Array
    context: Array
    noisy: Array
    own: Context
    arms: Ints


@pytest.fixture
def played(rng: np.random.Generator) -> Played:
    draw, zero = rng.multivariate_normal, np.zeros(D)
    actions, theta = rng.normal(size=(TRIALS, K, D)), rng.normal(0.2, 1.2, (TRIALS, 3 * D))
    bias = draw(zero, KNOWN.bias_cov, TRIALS)
    context = draw(KNOWN.context_mean, KNOWN.context_cov, TRIALS)
    noisy = context + bias + draw(zero, KNOWN.noise_cov, TRIALS)
    own = Context(rng.normal(1.0, 1.0, (TRIALS, D)), spd(rng, D))
    return Played(actions, theta, bias, context, noisy, own, rng.integers(0, K, TRIALS))


def tables(played: Played, decompose: bool = True) -> regret.Tables:
    best = regret.oracle_context(known_shrinkage(KNOWN), played.noisy, played.bias)
    return regret.tables(
        Sigmoid(), quadratic(played.actions), played.theta, best, played.context, played.noisy, decompose
    )


def losses(played: Played, arms: Ints | None = None) -> dict[str, Array]:
    own = quadratic(played.actions).design(played.own)
    return regret.losses(Sigmoid(), tables(played), played.arms if arms is None else arms, own, played.theta)


def oracle_belief(played: Played, i: int) -> Context:
    """P(c | chat, gamma*), with the paper's A and M."""
    c, n = inverse(KNOWN.context_cov), inverse(KNOWN.noise_cov)
    cov = inverse(c + n)
    return Context(cov @ (c @ KNOWN.context_mean + n @ (played.noisy[i] - played.bias[i])), cov)


def over(actions: Array, theta: Array, belief: Context) -> tuple[Array, Array]:
    """E[phi'theta] and E[sigmoid(phi'theta)] of every arm, by a trapezium rule over the context."""
    line = np.linspace(-7.0, 7.0, 95)
    z = np.stack(np.meshgrid(line, line), -1).reshape(-1, D)
    weights = np.exp(-(z**2).sum(-1) / 2)
    points = belief.mean + z @ np.linalg.cholesky(belief.cov).T
    scores = [
        np.concatenate([np.broadcast_to(a**2, points.shape), points**2, a * points], 1) @ theta
        for a in actions
    ]
    weights = weights / weights.sum()
    return np.array([weights @ s for s in scores]), np.array([weights @ expit(s) for s in scores])


def test_names_say_what_is_lost() -> None:
    plain = ("regret", "regret_true_context", "regret_plug_in")
    assert regret.names(True) == (*plain, "regret_realised", "cb", "ee1", "ee2")
    more = (*plain, "regret_realised", "regret_bayes", "cb", "ee1", "ee2")
    assert regret.names(True, discrete=True) == more
    assert regret.names(False) == regret.names(False, discrete=True) == ("regret",)


def test_every_loss_is_its_definition(played: Played) -> None:
    found = losses(played)
    assert tuple(found) == regret.names(True)
    for i, arm in enumerate(played.arms):
        actions, theta = played.actions[i], played.theta[i]
        scores, values = over(actions, theta, oracle_belief(played, i))
        mine, my_values = over(actions, theta, Context(played.own.mean[i], played.own.cov))
        star, hat = scores.argmax(), mine.argmax()
        true = np.array([quadratic_phi(a, played.context[i]) @ theta for a in actions])
        naive = np.array([quadratic_phi(a, played.noisy[i]) @ theta for a in actions])
        right = {
            "regret": values[star] - values[arm],
            "regret_true_context": expit(max(true)) - expit(true[arm]),
            "regret_plug_in": expit(max(naive)) - expit(naive[arm]),
            "regret_realised": expit(true[star]) - expit(true[arm]),
            "cb": my_values[hat] - my_values[arm],
            "ee1": values[star] - my_values[hat],
            "ee2": my_values[arm] - values[arm],
        }
        for name, value in right.items():
            assert found[name][i] == pytest.approx(value, abs=1e-5), name


def test_the_split_adds_up_to_the_regret(played: Played) -> None:
    for arm in range(K):
        found = losses(played, np.full(TRIALS, arm))
        total = found["cb"] + found["ee1"] + found["ee2"]
        np.testing.assert_allclose(total, found["regret"], rtol=0, atol=1e-12)


def test_the_oracles_arm_costs_nothing(played: Played) -> None:
    top = tables(played).paper.top
    best = [
        over(played.actions[i], played.theta[i], oracle_belief(played, i))[0].argmax() for i in range(TRIALS)
    ]
    assert top.tolist() == best
    found = losses(played, top)
    assert not found["regret"].any()
    assert not found["regret_realised"].any()


def test_the_oracle_takes_the_best_score_and_so_may_lose(played: Played) -> None:
    """The paper's oracle is by scores: now and then another arm has the higher chance of a reward."""
    everywhere = np.stack([losses(played, np.full(TRIALS, arm))["regret"] for arm in range(K)], 1)
    assert (everywhere < -1e-4).any()
    assert (everywhere > 0).mean() > 0.6
    gaps = np.stack([losses(played, np.full(TRIALS, arm))["regret_true_context"] for arm in range(K)], 1)
    assert gaps.min() == 0


def test_an_agent_with_the_oracles_belief_pays_for_learning_alone(played: Played) -> None:
    best = regret.oracle_context(known_shrinkage(KNOWN), played.noisy, played.bias)
    own = quadratic(played.actions).design(best)
    found = regret.losses(Sigmoid(), tables(played), played.arms, own, played.theta)
    assert np.array_equal(found["cb"], found["regret"])
    assert not found["ee1"].any()
    assert not found["ee2"].any()


@pytest.mark.slow
def test_realised_regret_has_the_same_mean(played: Played, rng: np.random.Generator) -> None:
    """Contexts drawn again given the noisy one and the bias: the mean over them is the regret."""
    n, varying = 20_000, 0
    found = losses(played)
    for i in range(6):
        belief = oracle_belief(played, i)
        contexts = rng.multivariate_normal(belief.mean, belief.cov, n)
        given = (played.actions[i], played.theta[i], played.bias[i], played.noisy[i], played.own.mean[i])
        actions, theta, bias, noisy, own = (np.broadcast_to(part, (n, *part.shape)) for part in given)
        arms = np.full(n, played.arms[i])
        again = Played(actions, theta, bias, contexts, noisy, Context(own, played.own.cov), arms)
        realised = losses(again)["regret_realised"]
        # Six tests at 4.5 standard errors: right means fail with probability 4e-5.
        error = realised.std() / np.sqrt(n)
        assert abs(realised.mean() - found["regret"][i]) <= 4.5 * error + 1e-6
        varying += error > 1e-4
    assert varying >= 3  # in most rounds the realised one does vary


def test_regret_alone_is_the_same_regret(played: Played) -> None:
    table = tables(played, decompose=False)
    assert table.plug_in is None
    found = regret.losses(Sigmoid(), table, played.arms, None, played.theta)
    assert list(found) == ["regret"]
    assert np.array_equal(found["regret"], losses(played)["regret"])


def test_a_round_at_once_is_tables_and_losses(played: Played) -> None:
    best = regret.oracle_context(known_shrinkage(KNOWN), played.noisy, played.bias)
    given = (
        quadratic(played.actions),
        played.theta,
        best,
        played.context,
        played.noisy,
        played.own,
        played.arms,
    )
    for decompose in (True, False):
        found = regret.round_losses(Sigmoid(), *given, decompose)
        right = losses(played)
        assert tuple(found) == regret.names(decompose)
        assert all(np.array_equal(found[name], right[name]) for name in found)


def test_with_scores_for_rewards_it_is_what_it_was(played: Played) -> None:
    """The Gaussian bandit: gaps between expected scores, and none that is realised."""
    best = regret.oracle_context(known_shrinkage(KNOWN), played.noisy, played.bias)
    given = (
        quadratic(played.actions),
        played.theta,
        best,
        played.context,
        played.noisy,
        played.own,
        played.arms,
    )
    found = regret.round_losses(Identity(), *given, True)
    assert tuple(found) == regret.names(True)
    for i, arm in enumerate(played.arms):
        scores, _ = over(played.actions[i], played.theta[i], oracle_belief(played, i))
        mine, _ = over(played.actions[i], played.theta[i], Context(played.own.mean[i], played.own.cov))
        right = [
            max(scores) - scores[arm],
            max(mine) - mine[arm],
            max(scores) - max(mine),
            mine[arm] - scores[arm],
        ]
        assert [found[name][i] for name in ("regret", "cb", "ee1", "ee2")] == pytest.approx(right, abs=1e-8)
    assert (found["regret"] >= 0).all()


def test_nodes_reach_the_regret(played: Played) -> None:
    best = regret.oracle_context(known_shrinkage(KNOWN), played.noisy, played.bias)
    given = (
        quadratic(played.actions),
        played.theta,
        best,
        played.context,
        played.noisy,
        played.own,
        played.arms,
    )
    few, many = (regret.round_losses(Sigmoid(nodes=n), *given, True) for n in (3, 400))
    assert np.abs(few["regret"] - many["regret"]).max() > 1e-3
    np.testing.assert_allclose(losses(played)["regret"], many["regret"], rtol=0, atol=1e-5)
