"""The learner that learns its own scales, against brute-force regression and a direct maximisation."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from unfog.agents.base import Term
from unfog.agents.learn.empirical_bayes import NOISE, SIGNAL, WORTH, EmpiricalBayes, State, is_due
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array

ARMS, SIZE = 3, 3


def knowledge(joined: bool = False) -> Knowledge:
    eye = np.eye(2)
    size = ARMS * SIZE
    prior = np.eye(size) if joined else np.tile(np.eye(SIZE), (ARMS, 1, 1))
    groups = None if joined else (0, 1, 2)
    return Knowledge(np.zeros(2), eye, eye, eye, np.zeros(size), prior, groups=groups)


class Rounds(NamedTuple):
    arm: Any
    x: Array  # (n, 3)  with an intercept
    hidden: Array  # (n,)  what the context hides
    reward: Array


def drawn(seed: int, number: int = 60) -> Rounds:
    """Rewards about 300, from contexts with other units and correlated."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(number, 2)) @ np.array([[2000.0, 0.3], [0.0, 1.0]]) + [500.0, -2.0]
    x, arm = np.concatenate([np.ones((number, 1)), context], 1), rng.integers(0, ARMS, number)
    theta = np.array([[280, 0.05, 15], [300, -0.04, 40], [250, 0.08, -30]])
    reward = (x * theta[arm]).sum(-1) + rng.normal(0, 100, number)
    return Rounds(arm, x, rng.gamma(2, 1500, number), reward)


def term(rounds: Rounds, i: int) -> Term:
    row = np.zeros(ARMS * SIZE)
    row[rounds.arm[i] * SIZE : (rounds.arm[i] + 1) * SIZE] = rounds.x[i]
    return Term(row, rounds.hidden[i])


def learnt(rounds: Rounds, refits: tuple[int, ...] = (20, 40), joined: bool = False) -> tuple[Any, State]:
    learner, known = EmpiricalBayes(), knowledge(joined)
    parameters, state = learner.setup(known), learner.start(known, None)
    for i, reward in enumerate(rounds.reward):
        if i in refits:
            state = learner.estimate_scales(parameters, state)
        fitted = learner.fit(parameters, state, None, term(rounds, i), reward)
        state = learner.replace(parameters, state, None, fitted, reward)
    return parameters, state


def weights(rounds: Rounds, state: State, first: int) -> Array:
    """Of rounds since the last estimate, one before."""
    ratio = 1 + rounds.hidden / state.scales.noise
    return np.where(np.arange(len(ratio)) < first, 1.0, 1 / ratio)


def test_the_belief_is_that_of_regression_given_the_scales() -> None:
    """By the covariance of all rewards, not by sums: one estimate at 20 rewards, weights after it."""
    rounds = drawn(0)
    _, state = learnt(rounds, refits=(20,))
    s, n = state.scales, len(rounds.arm)
    standard = rounds.x.copy()
    standard[:, 1:] = (rounds.x[:, 1:] - s.centre[1:]) / s.scale[1:]
    blocks = np.zeros((n, ARMS, SIZE))
    blocks[np.arange(n), rounds.arm] = standard
    design = blocks.reshape(n, -1)
    prior = np.tile(s.spread, ARMS)
    cov = design * prior @ design.T + np.diag(s.noise / weights(rounds, state, 20))
    gain = prior[:, None] * design.T @ np.linalg.inv(cov)
    theta = gain @ (rounds.reward - rounds.reward[0] - s.location)
    theta_cov = np.diag(prior) - gain @ design * prior
    context = np.array([1.0, 900.0, 1.0])
    point = np.r_[1.0, (context[1:] - s.centre[1:]) / s.scale[1:]]
    for arm in range(ARMS):
        block = slice(arm * SIZE, (arm + 1) * SIZE)
        expected = rounds.reward[0] + s.location + point @ theta[block]
        assert context @ state.mean[arm] == pytest.approx(expected, rel=1e-9)
        spread = point @ theta_cov[block, block] @ point
        assert ((context @ state.root[arm]) ** 2).sum() == pytest.approx(spread, rel=1e-6)


def test_estimates_are_in_the_units_of_rewards_and_features() -> None:
    rounds = drawn(3)
    parameters, state = learnt(rounds, refits=())
    learner = EmpiricalBayes()
    assert [int(learner.wanted(state, arms)) for arms in (3, 40)] == [0, 4]
    assert not learner.is_ready(state, 3)  # nothing was estimated
    told = learner.estimates(parameters, learner.estimate_scales(parameters, state))
    assert told.location == pytest.approx(rounds.reward.mean(), rel=1e-12)
    np.testing.assert_allclose(told.mean, rounds.x.mean(0), rtol=1e-9)
    np.testing.assert_allclose(told.cov, np.cov(rounds.x.T, bias=True), rtol=1e-6, atol=1e-6)
    _, state = learnt(rounds, refits=(20,))
    weight = weights(rounds, state, 20)
    found = learner.estimates(parameters, state)
    np.testing.assert_allclose(found.mean, np.average(rounds.x, axis=0, weights=weight), rtol=1e-9)


def objective(rounds: Rounds, state: State, spread: Array, noise: float) -> float:
    """The log density of the rewards, and of the guesses that count as two observations each."""
    s, n = state.scales, len(rounds.arm)
    standard = np.concatenate([rounds.x[:, :1], (rounds.x[:, 1:] - s.centre[1:]) / s.scale[1:]], 1)
    same = rounds.arm[:, None] == rounds.arm
    cov = same * (standard * spread @ standard.T) + noise * np.eye(n)
    y = rounds.reward - rounds.reward.mean()
    v = y.var()
    guesses = np.r_[SIGNAL * v, SIGNAL * v / 2, SIGNAL * v / 2]
    told = -0.5 * WORTH * (np.log(spread) + guesses / spread).sum()
    told -= 0.5 * WORTH * (np.log(noise) + NOISE * v / noise)
    return float(multivariate_normal(np.zeros(n), cov).logpdf(y) + told)


def test_estimates_climb_to_a_maximum_of_the_likelihood() -> None:
    """All weights one: each estimate raises the objective, and in the end no small step does."""
    rounds = drawn(1)
    learner, known = EmpiricalBayes(), knowledge()
    parameters, state = learnt(rounds, refits=())
    values = []
    for _ in range(40):
        state = learner.estimate_scales(parameters, state)
        values.append(objective(rounds, state, state.scales.spread, float(state.scales.noise)))
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(values))
    best = values[-1]
    for factor in (0.97, 1.03):
        for group in range(3):
            spread = state.scales.spread.copy()
            spread[group] *= factor
            assert objective(rounds, state, spread, float(state.scales.noise)) < best
        assert objective(rounds, state, state.scales.spread, float(state.scales.noise) * factor) < best
    assert known.groups == (0, 1, 2)


def test_scaling_by_powers_of_two_changes_no_bit_and_moving_next_to_nothing() -> None:
    rounds = drawn(2)
    _, plain = learnt(rounds)
    scale = np.array([1.0, 2.0**20, 2.0**-30])
    _, scaled = learnt(Rounds(rounds.arm, rounds.x * scale, rounds.hidden * 2.0**40, rounds.reward * 2.0**20))
    assert np.array_equal(scaled.mean * scale, plain.mean * 2.0**20)
    assert np.array_equal(scaled.root * scale[:, None], plain.root * 2.0**20)
    _, moved = learnt(rounds._replace(reward=rounds.reward + 1e6))
    assert moved.mean - [1e6, 0, 0] == pytest.approx(plain.mean, rel=1e-6, abs=1e-6)
    x = rounds.x + np.array([0.0, 1e4, -50.0])
    _, elsewhere = learnt(rounds._replace(x=x))
    assert (x @ elsewhere.mean.T) == pytest.approx(rounds.x @ plain.mean.T, rel=1e-6)


def test_a_term_that_is_replaced_leaves_nothing_behind() -> None:
    rounds, learner, known = drawn(3), EmpiricalBayes(), knowledge()
    parameters, state = learnt(rounds, refits=(20,))
    old = learner.fit(parameters, state, None, term(rounds, 50), rounds.reward[50])
    new = Term(old.row * np.where(old.row == 1, 1, 1.1), old.variance / 2)
    there = learner.replace(parameters, state, old, new, rounds.reward[50])
    back = learner.replace(parameters, there, new, old, rounds.reward[50])
    assert not np.allclose(there.mean, state.mean, rtol=1e-6)
    assert back.mean == pytest.approx(state.mean, rel=1e-9)
    assert back.rewards == state.rewards
    assert known.groups is not None


def test_features_without_blocks_share_one_spread() -> None:
    rounds = drawn(4)
    _, state = learnt(rounds._replace(reward=rounds.reward - 280), joined=True)
    assert state.scales.spread.shape == (1,)
    assert state.scales.location == 0
    assert np.isfinite(state.mean).all()


def test_scales_are_estimated_at_growing_numbers() -> None:
    assert [number for number in range(80) if is_due(number)] == [8, 12, 16, 21, 28, 37, 49, 64]
