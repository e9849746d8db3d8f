"""The same seed and calls give the same arms in memory, in a file, in a database and over HTTP."""

from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from tests.live.conformance.contexts import CONTEXT, DAYS, ROW
from tests.live.conformance.places import PLACES, Place, in_memory, new_name
from tests.live.ground import ARMS
from unfog.maths.random import generator


def played(place: Place, rounds: int) -> tuple[list[Any], xr.Dataset, dict[str, Any]]:
    """Three units with gaps, late rewards, truths whole and in part, and arms that come and go."""
    live, rng, waiting = place.made(agent="late", reward_window=40, epsilon=0.1), generator(3, 0, "calls"), []
    decisions = []
    for i in range(rounds):
        x, y, lost, late, true = rng.normal(size=5).tolist()
        d = live.decide({"x": x, "y": None if lost > 1 else y}, unit=f"unit {i % 3}")
        decisions.append(d._replace(id=""))
        waiting.append(d.id)
        place.clock.time += 1
        if late < 1:
            live.reward(waiting.pop(int(len(waiting) * 0.7)), x + (d.arm == "a"))
        if true > 0.5:
            live.reveal(d.id, {"x": x + 0.1} if true < 1 else {"x": x + 0.1, "y": y})
        if i % 97 == 50:
            live.add_arm(f"arm {i}")
        if i % 97 == 70:
            live.retire_arm(f"arm {i - 20}")
        if i % 97 == 90 and i > 97:
            live.restore_arm(f"arm {i - 137}")
        waiting = waiting[-30:]
    return decisions, live.belief("unit 1"), live.history()["worth"]


def decided(place: Place, rounds: int) -> list[Any]:
    """Contexts by coordinate, with gaps in each of them, rewards in their own units and truths in part."""
    live, rng = place.problem(new_name(), context=CONTEXT, arms=ARMS, seed=5), generator(4, 0, "calls")
    decisions = []
    for i in range(rounds):
        x, y, lost = rng.normal(size=3).tolist()
        row = ROW | {"steps": 5000 + 2000 * x, "mood": 5 + y, "hour": i % 24, "weekday": DAYS[i % 3]}
        d = live.decide(row | {[*ROW][i % 5]: None} if lost > 0 else row, unit=i % 4)
        decisions.append(d._replace(id=""))
        if i % 7:
            live.reward(d.id, 300 + 100 * x * (d.arm == "a"))
        if i % 5 == 0:
            live.reveal(d.id, {"steps": 5000 + 1900 * x, "weekday": DAYS[i % 3]})
    return decisions


@pytest.mark.parametrize("other", ["file", "database", "service"])
def test_the_same_arms_by_coordinate(tmp_path: Path, other: str) -> None:
    with in_memory(tmp_path) as here, PLACES[other](tmp_path) as there:
        expected, actual = decided(here, 300), decided(there, 300)
    assert actual == expected
    assert {d.arm for d in expected} == {*ARMS}


@pytest.mark.parametrize(
    ("other", "rounds"),
    [
        ("file", 300),
        pytest.param("file", 2000, marks=pytest.mark.slow),
        pytest.param("database", 2000, marks=pytest.mark.slow),
        pytest.param("service", 2000, marks=pytest.mark.slow),
    ],
)
def test_the_same_arms_as_in_memory(tmp_path: Path, other: str, rounds: int) -> None:
    with in_memory(tmp_path) as here, PLACES[other](tmp_path) as there:
        expected, actual = played(here, rounds), played(there, rounds)
    assert actual[0] == expected[0]
    xr.testing.assert_identical(actual[1], expected[1])
    assert actual[2] == expected[2]
    assert len({d.arm for d in expected[0]}) > 3
