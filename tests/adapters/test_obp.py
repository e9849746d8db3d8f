"""Logs as obp's feedback: the fields it asks for, and the way back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.evaluation.logs import World
from unfog.adapters.obp import to_obp
from unfog.validation import InputError

WORLD = World(d=2, arms=3)
COLUMNS = {"context": ["steps", "sleep"]}


def written(folder: Path) -> Path:
    """A log of 300 rounds as a table, with the probability of the drawn arm alone."""
    log, path = WORLD.log(300, 5), folder / "walks.csv"
    names = ["bac"[arm] for arm in log.arm]
    columns = [*log.noisy.T.tolist(), names, log.reward.tolist(), log.probability.tolist()]
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join(["steps,sleep,arm,reward,probability", *lines]))
    return path


def test_fields_are_those_of_obp(tmp_path: Path) -> None:
    """Its IPS formula, sum_t r_t pi(a_t) / pscore_t / n, gives the value by ips of the same log."""
    path = written(tmp_path)
    found = to_obp(path, columns=COLUMNS, arms=["b", "a", "c"])
    log = WORLD.log(300, 5)
    assert (found["n_rounds"], found["n_actions"], found["position"]) == (300, 3, None)
    for name, values in {"action": log.arm, "reward": log.reward, "context": log.noisy}.items():
        np.testing.assert_array_equal(found[name], values)
    assert found["action_context"].shape == (3, 3)
    action_dist = WORLD.policy(found["context"])[:, :, None]  # obp: (rounds, actions, positions)
    taken = action_dist[np.arange(300), found["action"], 0]
    by_hand = (found["reward"] * taken / found["pscore"]).mean()
    said = unfog.evaluate(
        path, {"mine": WORLD.policy(log.noisy)}, columns=COLUMNS, arms=["b", "a", "c"], estimators="ips"
    )
    assert said["plain_value"].item() == pytest.approx(by_hand, rel=1e-12)


def test_there_and_back(tmp_path: Path) -> None:
    path = written(tmp_path)
    told: dict[str, Any] = {"policies": ["fitted", "uniform"], "estimators": "dr,snips", "seed": 3}
    direct = unfog.evaluate(path, columns=COLUMNS, arms=["b", "a", "c"], **told)
    back = unfog.evaluate(to_obp(path, columns=COLUMNS, arms=["b", "a", "c"]), **told)
    np.testing.assert_array_equal(back["value"].values, direct["value"].values)
    np.testing.assert_array_equal(back["se"].values, direct["se"].values)


def test_a_log_that_was_read_is_taken_as_it_is() -> None:
    log = WORLD.log(50, 6)
    found = to_obp(log)
    assert found["pi_b"].shape == (50, 3, 1)
    np.testing.assert_array_equal(found["pi_b"][:, :, 0], log.probabilities)
    np.testing.assert_array_equal(found["pscore"], log.probability)


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(InputError, match="feedback dictionary of obp"):
        to_obp(3)
