"""Every estimator by its formula, and what it says on average over every way in which arms may be drawn."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from tests.each import each
from tests.evaluation.logs import World
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.estimators import ESTIMATORS, Case, Clipped, Switch, choose_cut
from unfog.evaluation.intervals import value
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.model import Predicted
from unfog.maths.arrays import Array

WORLD = World(d=2, arms=3)


def case(log: DecisionLog, policy: Array, predicted: Predicted) -> Case:
    return Case(policy, log.arm, log.reward, log.probability, lambda: predicted)


def ways(log: DecisionLog, paid: Array) -> Iterator[tuple[float, DecisionLog]]:
    """Every sequence of arms with its probability, and the log that it would have made."""
    assert log.probabilities is not None
    every = np.arange(log.rounds)
    for arms in product(range(len(log.arms)), repeat=log.rounds):
        arm = np.array(arms)
        chance = log.probabilities[every, arm]
        yield float(chance.prod()), log._replace(arm=arm, reward=paid[every, arm], probability=chance)


@pytest.mark.parametrize("shown", [0.0, 0.5])
@pytest.mark.parametrize("which", ["across", "forward"])
@pytest.mark.parametrize("name", ["ips", "dr"])
def test_on_average_over_all_ways_to_draw_arms_it_is_the_value(name: str, which: str, shown: float) -> None:
    """Three rounds, 27 ways. With models of later rounds, too, since this logger does not learn; with true
    contexts in the model, since arms were not drawn by them.
    """
    log = WORLD.log(3, 11, shown=shown)
    paid, policy = np.random.default_rng(1).normal(5.0, 2.0, (3, 3)), WORLD.policy(log.noisy)
    counts = np.ones(3)
    mean = 0.0
    for chance, one in ways(log, paid):
        evaluation = EvaluationContext(one, WORLD.channel)
        found = ESTIMATORS[name].scores(case(one, policy, getattr(evaluation, which)))
        counts = np.ones(3) if found.denominator is None else found.denominator
        mean += chance * value(found).mean
    np.testing.assert_allclose(mean, np.average(np.vecdot(policy, paid), weights=counts), rtol=1e-10)


def test_a_self_normalised_estimate_stays_within_rewards() -> None:
    log = WORLD.log(3, 12)
    policy = WORLD.policy(log.noisy)
    for _, one in ways(log, np.random.default_rng(2).normal(5.0, 2.0, (3, 3))):
        found = value(ESTIMATORS["snips"].scores(case(one, policy, EvaluationContext(one).across))).mean
        assert one.reward.min() - 1e-12 <= found <= one.reward.max() + 1e-12


def test_formulas_by_hand() -> None:
    log = WORLD.log(40, 13)
    policy, model = WORLD.policy(log.noisy), EvaluationContext(log, WORLD.channel).across
    one, q = case(log, policy, model), model.rewards
    w, own = np.empty(40), np.empty(40)
    for t in range(40):
        assert log.probabilities is not None
        w[t] = policy[t, log.arm[t]] / log.probabilities[t, log.arm[t]]
        own[t] = sum(policy[t, k] * q[t, k] for k in range(3))
    left = log.reward - q[np.arange(40), log.arm]
    tau = float(np.sort(w)[20])
    expected = {
        "ips": (w * log.reward).sum() / 40,
        "snips": (w * log.reward).sum() / w.sum(),
        "dr": (own + w * left).sum() / 40,
        "dm": own.sum() / 40,
        "clipped": (np.where(w < tau, w, tau) * log.reward).sum() / 40,
        "switch": (own + (w <= tau) * w * left).sum() / 40,
    }
    estimators = ESTIMATORS | {"clipped": Clipped(at=tau), "switch": Switch(at=tau)}
    assert estimators.keys() == expected.keys()
    for name, mean in expected.items():
        np.testing.assert_allclose(value(estimators[name].scores(one)).mean, mean, rtol=1e-12)


@each("shift", [100.0, -1e4])
@each("which", ["across", "forward"])
def test_a_constant_added_to_rewards_moves_doubly_robust_by_that(which: str, shift: float) -> None:
    """Rounds before the first model would else weigh it by w, and decide."""
    log = WORLD.log(300, 14)
    policy, found = WORLD.policy(log.noisy), []
    for one in (log, log._replace(reward=log.reward + shift)):
        model = getattr(EvaluationContext(one, WORLD.channel), which)
        found.append(value(ESTIMATORS["dr"].scores(case(one, policy, model))))
    np.testing.assert_allclose(found[1].mean - shift, found[0].mean, atol=1e-7)
    np.testing.assert_allclose(found[1].se, found[0].se, rtol=1e-6)


def test_a_threshold_cuts_where_it_pays() -> None:
    """One weight of a thousand with nothing behind it: cut. Large weights that carry the value: kept."""
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.5, 1.5, 1000)
    weight[7] = 400.0
    noise = rng.normal(size=1000)
    assert choose_cut(weight, lambda at: np.minimum(weight, at) * noise) < 2
    heavy = np.where(np.arange(1000) % 10 == 0, 8.0, 0.2)
    assert choose_cut(heavy, lambda at: np.minimum(heavy, at) * 1.0) == 8.0


@each("seed", range(20))
def test_thresholds_are_those_of_least_error_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight, reward = rng.exponential(1.0, 200) ** 2, rng.normal(0.3, 1.0, 200)
    shares = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
    found = {}
    for at in (float(np.quantile(weight, share)) for share in shares):
        cut = np.minimum(weight, at) * reward
        off = weight * reward - cut
        bias = max(0.0, np.mean(off) ** 2 - np.mean((off - np.mean(off)) ** 2) / 200)
        found[at] = np.mean((cut - np.mean(cut)) ** 2) / 200 + bias
    best = min(found, key=lambda at: found[at])
    assert choose_cut(weight, lambda at: np.minimum(weight, at) * reward) == best
