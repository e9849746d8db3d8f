"""A CSV file as an experiment: found beside its spec, known by its hash, refused by name."""

import json
from pathlib import Path

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.lab.datasets.recorded import RecordedFile
from unfog.lab.prepare import prepare
from unfog.lab.run_folder import manifest
from unfog.lab.spec import load
from unfog.validation import InputError

SPEC = """
[problem]
kind = "recorded"
file = "log.csv"
time = "when"
noisy = ["sensor"]
true = ["lab"]
calibration = 30
actions = 3
[run]
rounds = 20
trials = 3
agents = ["alg1", "alg2"]
"""


def written(folder: Path, rows: int = 60) -> Path:
    rng = np.random.default_rng(1)
    true = np.cumsum(rng.standard_normal(rows))
    noisy = 2 * true + rng.standard_normal(rows)
    lines = [f"2024-03-{1 + i // 24:02}T{i % 24:02}:00,{noisy[i]:.6f},{true[i]:.6f}" for i in range(rows)]
    (folder / "log.csv").write_text("\ufeffwhen, sensor,lab\n" + "\n".join(lines) + "\n", "utf-8")
    (folder / "mine.toml").write_text(SPEC, "utf-8")
    return folder / "mine.toml"


def test_a_file_beside_its_spec_is_an_experiment(tmp_path: Path) -> None:
    spec = written(tmp_path)
    kept = unfog.run(spec, out=tmp_path / "run")
    again = unfog.run(tmp_path / "run" / "spec.toml")
    assert np.array_equal(kept["regret"].values, again["regret"].values)
    assert np.isfinite(kept["regret"].values).all()


def test_the_bytes_of_the_file_identify_a_run(tmp_path: Path) -> None:
    spec = load(written(tmp_path))
    before = manifest(prepare(spec))
    assert before == manifest(prepare(spec))
    path = tmp_path / "log.csv"
    path.write_text(path.read_text("utf-8") + "2024-04-01T00:00,1.0,1.0\n", "utf-8")
    after = manifest(prepare(spec))
    assert before["data"] != after["data"]
    assert {**before, "data": 0} == {**after, "data": 0}
    json.dumps(after)


def world(path: Path) -> RecordedFile:
    return RecordedFile(file=str(path), time="t", noisy=["a"], true=["x"], calibration=3)


@each(
    "content, why",
    [
        (b"", "file: no rows in log.csv; allowed: a header, and rows"),
        (b"t,a,x,a\n1,2,3,4\n", "a: two columns of this name in log.csv; allowed: each column once"),
        (b"t,a,b\n1,2,3\n", "true: no column 'x' in log.csv; allowed: one of: t, a, b"),
        (b"t,a,x\n1,2,3\n\n2,3\n", "log.csv, row 4: 2 values; allowed: 3 values, one for each column"),
        (b"t,a,x\n1,2,3\n2,?,3\n", r"log.csv, row 3, a: '\?'; allowed: a number, or nothing"),
        (b"t,a,x\n2,2,3\n1,2,3\n", "log.csv, row 3, t: 1 after 2; allowed: times that never go back"),
        (b"t,a,x\n\xff\xfe,2,3\n", "file: log.csv cannot be read .*; allowed: CSV in UTF-8"),
        (b"t,a,x\n1,2,3\n2,2,4\n", "calibration: 3; allowed: fewer than the record's 2 rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_by_name(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(InputError, match=f"^{why}"):
        world(tmp_path / "log.csv").knowledge()


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^file: there is no file '.*none\.csv'; allowed: the path of a CSV file"
    ):
        world(tmp_path / "none.csv").knowledge()
    with pytest.raises(InputError, match=r"^file: ; allowed: the path of a CSV file"):
        RecordedFile(time="t", noisy=["a"], true=["x"])
