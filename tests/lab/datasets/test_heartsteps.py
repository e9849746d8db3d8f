"""HeartSteps: its file read, people told apart, and the synthetic channel as it is stated."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.each import each
from unfog.lab.datasets.files import DATASETS
from unfog.lab.datasets.heartsteps import BETWEEN, COLUMNS, DECISIONS, NOTE, HeartSteps, read
from unfog.lab.prepare import prepare
from unfog.lab.spec import catalog
from unfog.maths.arrays import Array
from unfog.validation import InputError

FILE = DATASETS["heartsteps"].file
HEAD = "user," + ",".join(COLUMNS)


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data set's file on this machine; without one a test is skipped, with a wrong one it fails."""
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[4] / "shared/data")
    if not (folder / FILE).exists():
        pytest.skip("no HeartSteps on this machine: neither in UNFOG_DATA nor in ../shared/data")
    monkeypatch.setenv("UNFOG_DATA", str(folder))
    return folder / FILE


def written(folder: Path, *rows: str) -> Path:
    path = folder / "made.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n", "utf-8")
    return path


def test_people_follow_each_other_and_time_goes_on(tmp_path: Path) -> None:
    rows = ["4,8.0,1.5,0,3", "4,8.1,NA,1,3", "4,8.2,1.7,1,3.5", "2,9.0,0,0,1", "2,9.1,0,1,NA", "7,5,5,1,5"]
    contexts, people, times = read(written(tmp_path, *rows))
    assert contexts.tolist() == [[8, 1.5, 0, 3], [8.2, 1.7, 1, 3.5], [9, 0, 0, 1], [5, 5, 1, 5]]
    assert people.tolist() == [0, 0, 1, 2]
    assert times.tolist() == [0, 2, 3 + BETWEEN, 5 + 2 * BETWEEN]


@each("rows, why", [(["1,2"], "cannot be read"), (["1,a,1,1,1"], "cannot be"), (["1,NA,1,1,1"], "has no")])
def test_files_of_another_form_are_refused(rows: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^data: made\.csv {why}"):
        read(written(tmp_path, *rows))


def errors(**fields: Any) -> tuple[Array, Array, Array]:
    """Of the channel, in standard deviations of a column; with the people and the times."""
    record = HeartSteps(**fields).record()
    return (record.raw - record.true) / record.true.std(0), record.groups.astype(float), record.times


def test_the_channel_is_as_stated(data: Path) -> None:
    found, people, times = errors()
    assert found.shape == (DECISIONS, len(COLUMNS))
    lost = np.isnan(found)
    assert not lost[:, [0, 1, 3]].any()
    # 5 standard errors each.
    assert abs(lost[:, 2].mean() - 0.2) < 5 * np.sqrt(0.16 / DECISIONS)
    assert abs(found[:, 3].std() - 0.1) < 5 * 0.1 / np.sqrt(2 * DECISIONS)
    assert abs(found[:, :2].mean() + 0.5) < 5 * 0.7 / np.sqrt(74) + 0.05
    quiet, _, _ = errors(white=1e-9, bias=0.0, under=0.0)
    near = np.diff(times) == 1
    moved = quiet[1:][near, :2] - np.exp(-1 / 3) * quiet[:-1][near, :2]
    assert abs(quiet[:, :2].std() - 0.5) < 0.03  # an AR(1) of 7,158 decisions: 5 standard errors
    assert abs(moved.std() - 0.5 * np.sqrt(1 - np.exp(-2 / 3))) < 5 * 0.35 / np.sqrt(2 * moved.size)
    steady, _, _ = errors(white=1e-9, error=0.0)
    for person in range(37):
        assert np.ptp(steady[people == person, :2], axis=0).max() < 1e-6


def test_it_says_that_its_channel_is_made(data: Path) -> None:
    plan = prepare(catalog()["heartsteps"])
    assert plan.note == NOTE
    found = HeartSteps().record()
    assert (found.groups[-1], len(found.true)) == (36, DECISIONS)
    assert (np.diff(found.times) >= 1).all()


@each(
    "name, value",
    [("bias", -1.0), ("white", 0.0), ("lost", 1.0), ("error_time", 0), ("calibration", 7158)],
)
def test_bad_fields_are_refused_without_the_data(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name}: "):
        HeartSteps(**{name: value})
