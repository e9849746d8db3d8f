"""Means with intervals against closed forms, and weights against what another agent would have earned."""

import itertools
from math import isnan
from typing import Any

import numpy as np
import pytest

from unfog.live import history
from unfog.live.history import Around

ARMS = ("a", "b", "c")


def around(epsilon: float) -> Around:
    return Around(10, ("x",), epsilon, {arm: i for i, arm in enumerate(ARMS)}, ((0, ("a", "b")), (5, ARMS)))


def with_epsilon(shares: dict[str, float], choice: tuple[str, ...], epsilon: float) -> dict[str, float]:
    return {arm: epsilon / len(choice) + (1 - epsilon) * shares.get(arm, 0.0) for arm in choice}


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("number", [3, 7])
@pytest.mark.parametrize("arms", [None, ["b", "c"], ["a"]])
def test_weights_make_the_mean_what_the_other_would_have_earned(
    epsilon: float, number: int, arms: list[str] | None
) -> None:
    """Summed over every arm that might be taken, with its probability; exactly."""
    chance, rewards = np.random.default_rng(3), {"a": 1.0, "b": -2.0, "c": 0.5}
    choice = tuple(arms) if arms else (ARMS if number >= 5 else ARMS[:2])
    for _ in range(20):
        own, other = (dict(zip(choice, chance.dirichlet([1.0] * len(choice)), strict=True)) for _ in range(2))
        p, q = with_epsilon(own, choice, epsilon), with_epsilon(other, choice, epsilon)
        earned = 0.0
        for arm in choice:
            body = {
                "number": number,
                "arm": arm,
                "probability": p[arm],
                "agent_probabilities": own,
                "arms": arms,
            }
            earned += (
                p[arm] * rewards[arm] * history.weight(around(epsilon), body, {"agent_probabilities": other})
            )
        assert earned == pytest.approx(sum(q[arm] * rewards[arm] for arm in choice), abs=1e-12)


SURE = {"number": 7, "arm": "a", "probability": 1.0, "agent_probabilities": {"a": 1.0}}


@pytest.mark.parametrize(
    ("epsilon", "body", "own", "wanted"),
    [
        (0.0, SURE, {"a": 1.0}, 1.0),
        (0.0, SURE, {"b": 1.0}, None),  # what b would have paid cannot be known
        (0.0, SURE, {"a": 0.5, "b": 0.5}, None),
        (0.2, SURE | {"pinned": True}, {"a": 1.0}, None),
        (0.2, SURE | {"pinned": True, "arms": ["a"]}, {"a": 1.0}, 1.0),
        (0.3, SURE | {"probability": 0.8}, {"b": 1.0}, 0.125),
        (0.3, SURE | {"logged_arm": "a", "probability": None}, {"a": 1.0}, None),
        (0.3, SURE | {"logged_arm": "a", "probability": 0.5}, {"a": 1.0}, 1.6),
        (0.0, SURE | {"logged_arm": "a", "probability": 0.5, "pinned": True}, {"b": 1.0}, 0.0),
        (0.3, SURE | {"logged_arm": "a", "probability": 0.5, "arms": ["b", "c"]}, {"b": 1.0}, 0.0),
    ],
)
def test_decisions_that_say_nothing_have_no_weight(
    epsilon: float, body: dict[str, Any], own: dict[str, float], wanted: float | None
) -> None:
    found = history.weight(around(epsilon), body, {"agent_probabilities": own})
    assert isnan(found) if wanted is None else found == pytest.approx(wanted)


def test_a_mean_of_two() -> None:
    """The standard error of 0 and 1 is a half."""
    found = history.mean(np.array([0.0, 1.0]))
    reach = 1.959963984540054 / 2
    assert found == pytest.approx({"mean": 0.5, "low": 0.5 - reach, "high": 0.5 + reach, "count": 2})


def test_wilson() -> None:
    """The ends are where the share is as far off as the reach of its own deviation: a quadratic equation."""
    for ones, count in itertools.product((0, 1, 7, 20), (20,)):
        found = history.mean(np.array([1.0] * ones + [0.0] * (count - ones)), binary=True)
        z, share = 1.959963984540054, ones / count
        ends = np.roots([1 + z**2 / count, -(2 * share + z**2 / count), share**2])
        assert [found["low"], found["high"]] == pytest.approx(sorted(ends.real), abs=1e-7)


def test_little_is_known_of_few() -> None:
    assert history.mean(np.empty(0)) == {"mean": None, "low": None, "high": None, "count": 0}
    assert history.mean(np.array([2.0])) == {"mean": 2.0, "low": None, "high": None, "count": 1}
    assert history.weighted(np.array([1.0, 1.0]), np.zeros(2))["effective"] == 0.0


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    """Of 4,000 means of 200; 95 % +- 1.4 % is four errors."""
    draws = np.random.default_rng(5).exponential(size=(4000, 200))
    found = [history.mean(row) for row in draws]
    inside = np.mean([one["low"] <= 1.0 <= one["high"] for one in found])
    assert abs(inside - 0.95) < 0.02
