"""One log, simulated, and as each format would hold it."""

import csv
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array

COORDINATES = ("steps", "sleep", "heart rate")
ARMS = ("wait", "send", "10", "call")
MEAN, SKEW = np.array([4.0, -1.5, 60.0]), np.array([[1.0, 0.4, 3.0], [0.0, 0.7, -2.0], [0.0, 0.0, 9.0]])


def simulated(rounds: int = 120, seed: int = 4) -> DecisionLog:
    """Correlated contexts of different sizes, a bias for each unit, gaps, truths in part, an uneven law."""
    dice = np.random.default_rng(seed)
    true = MEAN + dice.normal(size=(rounds, 3)) @ SKEW
    unit = np.array([0, 1, 2, *dice.integers(0, 3, rounds - 3)])
    noisy = true + np.array([[0.5, 0.2, 3.0], [-0.3, 0.1, -4.0], [0.0, 0.9, 1.0]])[unit]
    noisy = noisy + dice.normal(size=noisy.shape) * [0.5, 0.3, 4.0]
    law = dice.dirichlet([1.0, 2.0, 0.7, 1.5], rounds) * 0.8 + 0.05
    arm = drawn(law, dice)
    reward = 0.3 * true[:, 0] - 0.5 * arm + dice.normal(size=rounds)
    noisy[dice.random(noisy.shape) < 0.1] = np.nan
    true[dice.random(true.shape) < 0.4] = np.nan
    time = 1.7e9 + np.cumsum(dice.integers(0, 900, rounds)).astype(float)
    own = law[np.arange(rounds), arm]
    return DecisionLog(
        COORDINATES, ARMS, noisy, arm, reward, own, law, true, time, unit, ("ann", "bob", "cy")
    )


def drawn(law: Array, dice: np.random.Generator) -> Any:
    """An arm from each row."""
    return (law.cumsum(axis=1)[:, :-1] < dice.random((len(law), 1))).sum(axis=1)


def same(one: DecisionLog, other: DecisionLog, *without: str) -> None:
    """To the last bit, but for where they come from, and these fields."""
    if "channel" not in without:
        told = [log.channel and log.channel.to_json(sample=True) for log in (one, other)]
        assert told[0] == told[1]
    for name in one._fields:
        if name not in ("source", "notes", "channel", *without):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def table(log: DecisionLog) -> dict[str, list[Any]]:
    """As columns under the usual names; None where there is nothing."""
    assert log.time is not None
    assert log.true is not None
    assert log.unit is not None
    assert log.probabilities is not None
    found: dict[str, list[Any]] = {"arm": [log.arms[k] for k in log.arm]}
    for part, values in (("context", log.noisy), ("true", log.true)):
        columns = zip(log.coordinates, values.T.tolist(), strict=True)
        found |= {f"{part}.{name}": [None if x != x else x for x in column] for name, column in columns}
    found |= {"reward": log.reward.tolist(), "probability": log.probability.tolist()}
    found |= {"time": log.time.tolist(), "unit": [log.units[i] for i in log.unit]}
    return found | {f"probability.{arm}": log.probabilities[:, k].tolist() for k, arm in enumerate(log.arms)}


def written(path: Path, columns: dict[str, list[Any]], **how: Any) -> Path:
    """As CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, **how)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return path


def dsjson(log: DecisionLog, seed: int = 1) -> list[dict[str, Any]]:
    """As Vowpal Wabbit's service would log it: the chosen action first in `a`, in any order after it."""
    assert log.time is not None
    assert log.probabilities is not None
    dice, found = np.random.default_rng(seed), []
    for t in range(log.rounds):
        others = [k for k in dice.permutation(len(log.arms)).tolist() if k != log.arm[t]]
        order = [int(log.arm[t]), *others]
        read = zip(log.coordinates, log.noisy[t].tolist(), strict=True)
        noisy = {name: x for name, x in read if x == x}
        body = {"Body": {"heart rate": noisy.pop("heart rate")}} if "heart rate" in noisy else {}
        actions = [{"_tag": arm, "F": {"size": k}} for k, arm in enumerate(log.arms)]
        context: dict[str, Any] = {"Sensor": {**noisy, "maker": "acme"}, **body, "_multi": actions}
        found.append(
            {
                "_label_cost": -log.reward[t],
                "_label_probability": log.probability[t],
                "_label_Action": order[0] + 1,
                "_labelIndex": order[0],
                "o": [{"EventId": str(t), "v": log.reward[t]}],
                "Timestamp": datetime.fromtimestamp(log.time[t], UTC).isoformat().replace("+00:00", "Z"),
                "EventId": str(t),
                "a": [k + 1 for k in order],
                "c": {
                    **context,
                    "_multi": [{"_tag": arm, "F": {"size": k}} for k, arm in enumerate(log.arms)],
                },
                "p": [log.probabilities[t, k] for k in order],
            }
        )
    return found


def lines(path: Path, objects: Iterable[Any]) -> Path:
    """An object a line."""
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), "utf-8")
    return path
