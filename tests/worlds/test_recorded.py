"""A record of one's own: columns in, contexts, gaps, times and groups out; what is wrong is said by name."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from tests.each import each
from unfog import testing
from unfog._table import columns
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.record import RecordedProblem, times

ROWS = 90
NAMES: dict[str, Any] = {
    "time": "t",
    "noisy": ["a", "b"],
    "true": ["x", "y"],
    "calibration": 40,
    "actions": 3,
}


def made(rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    true = np.cumsum(rng.standard_normal((rows, 2)), 0)
    noisy = 3 * true + 1 + rng.standard_normal((rows, 2))
    return {
        "t": np.cumsum(rng.integers(1, 3, rows)).tolist(),
        "x": true[:, 0],
        "y": true[:, 1].tolist(),
        "a": noisy[:, 0].tolist(),
        "b": noisy[:, 1],
        "who": [f"device {i % 4}" for i in range(rows)],
    }


def test_columns_are_paired_and_timed() -> None:
    data = made()
    found = RecordedProblem(data=data, **NAMES).record()
    assert np.array_equal(found.true, np.stack([data["x"], data["y"]], 1))
    assert np.array_equal(found.raw, np.stack([data["a"], data["b"]], 1))
    assert np.array_equal(found.times, data["t"])
    assert found.groups.tolist() == [row // 4 for row in range(ROWS)]  # ten stretches of the calibration
    grouped = RecordedProblem(data=data, **NAMES, groups="who").record()
    assert grouped.groups.tolist() == [row % 4 for row in range(ROWS)]


def test_what_lacks_a_true_value_is_left_out_and_said() -> None:
    data = made()
    data["x"][[3, 50]], data["y"][70] = np.nan, None
    world = RecordedProblem(data=data, **NAMES)
    assert world.note == ""
    found = world.record()
    kept = np.delete(np.arange(ROWS), [3, 50, 70])
    assert np.array_equal(found.times, np.array(data["t"])[kept])
    assert np.isfinite(found.true).all()
    assert world.note == "3 of 90 rows lack a true value and are left out"


def test_what_lacks_a_reading_is_a_coordinate_that_was_lost() -> None:
    data = made()
    data["a"][45], data["a"][60], data["b"][60] = "", "NA", np.nan
    world, whole = RecordedProblem(data=data, **NAMES), RecordedProblem(data=made(), **NAMES)
    truth = world.truth(truth_draws(0, range(1), world.truth_draws()))._replace(first=np.zeros(1))
    normals = np.zeros((1, world.round_normals()))
    for row in range(40, ROWS):
        one, other = (each.emit(truth, normals, np.asarray(row - 40)) for each in (world, whole))
        lost = {45: [0], 60: [0, 1]}.get(row, [])
        mask = np.ones((1, 2))
        mask[0, lost] = 0
        assert np.array_equal(np.asarray(one.mask), mask)
        right = np.where(mask > 0, other.noisy, world.knowledge().context_mean)
        np.testing.assert_allclose(one.noisy, right, rtol=1e-12)
        assert np.array_equal(one.context, other.context)
    assert other.mask is None
    both = RecordedProblem(data=data, **NAMES, missing=0.9).emit(truth, np.full((1, 7), -3.0), np.asarray(0))
    assert np.array_equal(np.asarray(both.mask), np.zeros((1, 2)))


def timed(given: Any) -> Array:
    return times(columns({"t": given}, ["t"])["t"])


def test_dates_are_hours() -> None:
    start = datetime(2024, 2, 28, 22, 30)
    dates = [start + timedelta(minutes=30 * i) for i in (0, 1, 1, 5, 100)]
    right = [0.0, 0.5, 0.5, 2.5, 50.0]
    for given in (
        [one.isoformat() for one in dates],
        [one.isoformat(" ") for one in dates],
        [one.isoformat() + "+02:00" for one in dates],
        np.array(dates, "datetime64[ns]"),
    ):
        np.testing.assert_allclose(timed(given), right, rtol=1e-12)
    assert timed(["10", "11.5"]).tolist() == [10.0, 11.5]


def test_dates_of_several_zones_are_of_one_clock() -> None:
    """As where the clocks are put back in autumn: the hour that comes twice is two hours."""
    dates = ["2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "2024-10-27T03:30+01:00"]
    assert timed(dates).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "odd", [{}, {"revealed": 0.5, "reveal_share": 0.5}, {"contexts": "gaussian"}], ids=str
)
def test_it_keeps_the_contract(odd: dict[str, Any]) -> None:
    data = made()
    data["b"][60] = np.nan
    testing.check_world(RecordedProblem(data=data, **NAMES, **odd))


def test_both_engines_play_the_same() -> None:
    data = made()
    data["a"][50] = None
    world = RecordedProblem(data=data, **NAMES, revealed=0.4)
    run: dict[str, Any] = {"rounds": 70, "trials": 4, "seed": 2, "decompose": False}
    right = play(world, ["late"], **run).values["regret"]
    found = play(world, ["late"], engine="jax", draws="numpy", precision="float64", **run)
    np.testing.assert_allclose(found.values["regret"], right, rtol=1e-8)


def changed(**columns: Any) -> dict[str, Any]:
    return made() | columns


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no table": ({"data": None}, "data: None has no keys; allowed: a data frame"),
    "no column": ({"true": ["x", "z"]}, "true: no column 'z' in data; allowed: one of: t, x, y"),
    "no time": ({"time": "when"}, "time: no column 'when' in data"),
    "no groups": ({"groups": "week"}, "groups: no column 'week' in data"),
    "text": (
        {"data": changed(b=[*range(50), "much", *range(39)])},
        "data, row 51, b: 'much'; allowed: a number, or nothing where",
    ),
    "infinite": ({"data": changed(x=[np.inf] * 90)}, "data, row 1, x: inf; allowed: a finite number"),
    "back": (
        {"data": changed(t=[*range(60), 3, *range(70, 99)])},
        "data, row 61, t: 3 after 59; allowed: times that never go back",
    ),
    "no clock": ({"data": changed(t=["noon"] * 90)}, "data, row 1, t: 'noon'; allowed: a number, or a date"),
    "a gap": (
        {"data": changed(t=[*range(89), None])},
        "data, row 90, t: nothing; allowed: a number",
    ),
    "lengths": ({"data": changed(a=[1.0])}, "a: 1 rows; allowed: 90, as many as the other columns have"),
    "two truths": (
        {"data": changed(t=[*range(60), 59, *range(61, 90)])},
        "data, row 61, t: two true contexts at the time 59; allowed: one a moment, or a column",
    ),
    "two kinds": (
        {"data": changed(t=[*range(89), "2024-01-01T00:00"])},
        "data, row 90, t: '2024-01-01T00:00'; allowed: .*; numbers in all rows, or dates in all$",
    ),
    "few": ({"calibration": 90}, "calibration: 90; allowed: fewer than the record's 90 rows"),
    "unpaired": ({"noisy": ["a"]}, "noisy: .*'a'.*; allowed: as many columns as true, 2"),
    "twice": ({"true": ["x", "x"]}, "true: .*; allowed: a list of names of columns, all different"),
    "none": ({"noisy": []}, "noisy: .*; allowed: a list of names of columns"),
    "number": ({"time": 3}, "time: 3; allowed: the name of a column"),
}


@each("case", BAD)
def test_what_is_wrong_is_refused_by_name(case: str) -> None:
    fields, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        RecordedProblem(**{"data": made()} | NAMES | fields).knowledge()


def test_a_calibration_that_says_nothing_of_time_is_said_to() -> None:
    """Two devices read at the same moments: agents are told of no time, and the world's note says so."""
    data = made() | {"t": [row // 2 for row in range(ROWS)]}
    world = RecordedProblem(data=data, **NAMES, groups="who")
    assert world.knowledge().dynamics is None
    assert world.note.startswith(
        "agents are told of no time, which the calibration does not show (true: has two"
    )
