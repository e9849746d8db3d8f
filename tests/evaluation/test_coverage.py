"""Bias and coverage over many logs, of a logger that does not learn and of one that does."""

import numpy as np
import pytest

from tests.evaluation.logs import World, drawn
from unfog.evaluation.evaluate import evaluated
from unfog.evaluation.log import Log
from unfog.evaluation.scene import Scene
from unfog.maths.arrays import Array

WORLD = World(d=2, arms=3)
LOGS, ROUNDS, BLOCKS = 120, 400, 10
NAMES = ["dr", "snips", "ips"]


def learning(seed: int) -> Log:
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
    return Log(("x", "y"), ("a", "b", "c"), noisy, arm, score[every, arm], chance[every, arm], chance)


def found(learns: bool) -> tuple[Array, Array, Array]:
    """Values and ends of intervals, (logs, estimators) each."""
    rows = []
    for seed in range(LOGS):
        log = learning(seed) if learns else WORLD.log(ROUNDS, 1000 + seed)
        said = evaluated(Scene(log, WORLD.channel), {"mine": WORLD.policy}, estimators=NAMES)
        rows.append([said[name].values[0] for name in ("value", "low", "high")])
    value, low, high = np.moveaxis(np.array(rows), 1, 0)
    return value, low, high


@pytest.mark.slow
@pytest.mark.parametrize("learns", [False, True])
def test_values_are_right_on_average_and_intervals_hold(learns: bool) -> None:
    """Bias within four standard errors: wrong once in 15,000 for each estimator. Of 120 intervals of 95 %,
    fewer than 104 hold once in 10,000, if they hold as often as they say.
    """
    value, low, high = found(learns)
    worth = WORLD.worth()
    error = value.std(axis=0) / np.sqrt(LOGS)
    assert (np.abs(value.mean(axis=0) - worth) < 4 * error).all()
    held = ((low <= worth) & (worth <= high)).sum(axis=0)
    assert (held >= 104).all()
    wide = value.std(axis=0)
    assert wide[0] < wide[2]
