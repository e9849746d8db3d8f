"""Logged probabilities are true: frequencies, floors, and estimates that weigh by them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from tests.live.ground import ARMS, opened, problem
from unfog.live import Problem

EPSILON = 0.2
SUBSETS: list[list[str] | None] = [None, ["a", "b"], ["c", "a"], ["b"]]


def surplus(live: Problem, number: int, seed: int) -> tuple[float, int, float]:
    """Chi-square of arms taken against the probabilities logged, its degrees of freedom, and the value of a
    uniformly random policy, estimated, less the truth, in standard errors.

    Decisions are grouped by what might be chosen and how likely the first arm was.
    """
    dice, groups, weighed = np.random.default_rng(seed), dict[Any, Any](), []
    slopes = {"a": 1.0, "b": -0.5, "c": 0.25}
    for i in range(number):
        x = dice.normal(size=2)
        arms = SUBSETS[int(dice.integers(len(SUBSETS)))]
        made = live.decide(x, arms=arms)
        choice = arms or ARMS
        chances = np.array([made.probabilities[arm] for arm in choice])
        assert list(made.probabilities) == choice
        assert made.probability == made.probabilities[made.arm]
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        assert chances.min() >= EPSILON / len(choice) - 1e-15
        paid = slopes[made.arm] * x[0] + 0.3 + dice.normal()
        uniform = np.mean([slopes[arm] * x[0] + 0.3 for arm in choice])
        weighed.append(paid / len(choice) / made.probability - uniform)
        taken = np.array([arm == made.arm for arm in choice])
        key = tuple(choice), int(10 * chances[0])
        groups.setdefault(key, []).append((taken, chances))
        if i % 10 == 0:
            live.reward(made.id, float(paid))
    statistic, freedom = 0.0, 0
    for pairs in groups.values():
        taken, chances = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
        n, k = chances.shape
        if n < 50 or k == 1:
            continue
        gap = (taken - chances).sum(0)[1:]
        cov = np.diag(chances.sum(0)) - chances.T @ chances
        statistic += float(gap @ np.linalg.solve(cov[1:, 1:], gap))
        freedom += k - 1
    errors = np.array(weighed)
    return statistic, freedom, float(errors.mean() / errors.std() * np.sqrt(number))


def check(path: Path, agent: str, number: int) -> None:
    with opened(path) as store:
        live = problem(store, agent=agent, epsilon=EPSILON, reward_window=None, seed=21)
        statistic, freedom, error = surplus(live, number, 22)
    assert freedom >= 4
    assert chi2.sf(statistic, freedom) > 0.001
    assert abs(error) < 3


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "unfog-thompson", "unfog-epsilon"])
def test_arms_are_taken_as_often_as_logged(tmp_path: Path, agent: str) -> None:
    check(tmp_path, agent, 1_500)


def test_probabilities_of_an_old_decision_are_those_of_its_time(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        live = problem(store, epsilon=EPSILON)
        first = live.decide([0, 1], key="k")
        live.retire_arm("a")
        live.pin_arm("b")
        assert live.decide([0, 1]).probabilities == {"b": 1.0, "c": 0.0}
        assert live.decide([0, 1], key="k") == first
