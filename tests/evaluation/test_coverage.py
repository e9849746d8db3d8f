"""Bias and coverage over many logs, of a logger that does not learn and of one that does."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tests.evaluation.logs import World, drawn
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.evaluate import evaluate_policies
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array

WORLD = World(d=2, arms=3)
LOGS, ROUNDS, BLOCKS = 120, 400, 10
NAMES = ["dr", "snips", "ips"]


def learning(seed: int) -> DecisionLog:
    """After every block the logger is greedy for the arms' mean rewards so far; the floor is 0.3."""
    rng = np.random.default_rng([3, seed])
    true, noisy = WORLD.contexts(ROUNDS, rng)
    score = WORLD.scores(true) + 0.3 * rng.standard_normal((ROUNDS, 3))
    chance, arm = np.full((ROUNDS, 3), 1 / 3), np.zeros(ROUNDS, np.intp)
    for rows in np.array_split(np.arange(ROUNDS), BLOCKS):
        if rows[0]:
            before = np.arange(rows[0])
            sums = [score[before, k][arm[before] == k].mean() for k in range(3)]
            chance[rows] = 0.1 + 0.7 * np.eye(3)[np.argmax(sums)]
        arm[rows] = drawn(chance[rows], rng)
    every = np.arange(ROUNDS)
    return DecisionLog(("x", "y"), ("a", "b", "c"), noisy, arm, score[every, arm], chance[every, arm], chance)


def found(world: World, policies: Any, logs: Iterable[DecisionLog]) -> tuple[Array, Array, Array]:
    """Values and ends of intervals, (logs, estimators) each."""
    rows = []
    for log in logs:
        said = evaluate_policies(EvaluationContext(log, world.channel), policies, estimators=NAMES)
        rows.append([said[name].values[0] for name in ("value", "low", "high")])
    value, low, high = np.moveaxis(np.array(rows), 1, 0)
    return value, low, high


def alone(log: DecisionLog) -> DecisionLog:
    """With the probability of the drawn arm alone."""
    return log._replace(probabilities=None)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["all probabilities", "the drawn arm's alone"])
@pytest.mark.parametrize("learns", [False, True], ids=["fixed", "learning"])
def test_values_are_right_on_average_and_intervals_hold(learns: bool, whole: bool) -> None:
    """Bias within four standard errors: wrong once in 15,000 for each estimator. Of 120 intervals of 95 %,
    fewer than 104 hold once in 10,000, if they hold as often as they say.
    """
    logs = (learning(seed) if learns else WORLD.log(ROUNDS, 1000 + seed) for seed in range(LOGS))
    value, low, high = found(WORLD, {"mine": WORLD.policy}, logs if whole else (alone(log) for log in logs))
    worth = WORLD.worth()
    error = value.std(axis=0) / np.sqrt(LOGS)
    assert (np.abs(value.mean(axis=0) - worth) < 4 * error).all()
    held = ((low <= worth) & (worth <= high)).sum(axis=0)
    assert (held >= 104).all()
    wide = value.std(axis=0)
    assert wide[0] < wide[2]


@pytest.mark.slow
def test_an_arm_that_is_seldom_drawn_is_valued_as_well_by_its_own_probability() -> None:
    """One of seven arms, drawn in one of sixteen rounds: many stretches of time have none of it, and weights
    of time that are made from the drawn arms go astray (the error of dr was nine times as large). Of 60
    intervals of 95 % fewer than 48 hold once in 100,000. This logger never changes, so that its other
    probabilities are of no help either.
    """
    world = World(d=2, arms=7)
    worth = world.theta[3, 0] + world.theta[3, 1:] @ world.channel.context_mean
    logs = [world.log(600, 3000 + seed) for seed in range(60)]
    value, low, high = found(world, ["always:d"], map(alone, logs))
    assert (np.abs(value.mean(axis=0) - worth) < 4 * value.std(axis=0) / np.sqrt(60)).all()
    assert (((low <= worth) & (worth <= high)).sum(axis=0) >= 48).all()
    whole, _, _ = found(world, ["always:d"], logs)
    assert (value.std(axis=0) < 1.2 * whole.std(axis=0)).all()
