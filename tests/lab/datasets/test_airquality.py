"""The air quality world: its file read and checked, and what the page of results says of it."""

import dataclasses
import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.lab import spec
from unfog.lab.datasets.airquality import ANALYSERS, HOURS, SENSORS, AirQuality, read
from unfog.lab.datasets.files import DATASETS
from unfog.lab.prepare import _agents, prepare
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.record import Record, calibrated

FILE = DATASETS["airquality"].file
HEAD = ",".join(["Date", "Time", *(name for pair in zip(ANALYSERS, SENSORS, strict=True) for name in pair)])
ROW = "1.5,1000,2.5,900,100,800,50,1500"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data set's file on this machine; without one a test is skipped, with a wrong one it fails."""
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[4] / "shared/data")
    if not (folder / FILE).exists() and not (folder / Path(FILE).name).exists():
        pytest.skip("no Air Quality on this machine: neither in UNFOG_DATA nor in ../shared/data")
    monkeypatch.setenv("UNFOG_DATA", str(folder))
    return folder / FILE if (folder / FILE).exists() else folder / Path(FILE).name


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind, whether or not it has a row already."""
    fields = {one.name: one.default for one in dataclasses.fields(AirQuality) if one.init}
    monkeypatch.setitem(cast(dict[str, Any], spec.KINDS), "airquality", AirQuality)
    monkeypatch.setitem(cast(dict[str, Any], spec.DEFAULTS), "airquality", fields)


def written(folder: Path, *rows: str) -> Path:
    path = folder / "made.csv"
    path.write_text("\ufeff" + "\n".join([HEAD, *rows]) + "\n", "utf-8")
    return path


def test_columns_are_paired_and_weeks_counted(tmp_path: Path) -> None:
    rows = [f"2004-03-{day:02},0:00:00,{ROW}" for day in (10, 16, 17, 24)]
    found = read(written(tmp_path, *rows))
    assert found.true.tolist() == [[1.5, 2.5, 100.0, 50.0]] * 4
    assert found.raw.tolist() == [[1000.0, 900.0, 800.0, 1500.0]] * 4
    assert found.groups.tolist() == [0, 0, 1, 2]
    assert found.times.tolist() == [0.0, 144.0, 168.0, 336.0]


def test_an_hour_that_lacks_a_value_is_left_out(tmp_path: Path) -> None:
    values = ROW.split(",")
    rows = [",".join(["2004-03-10", f"{hour}:00:00", *values]) for hour in range(2)]
    for column in range(8):
        holes = [*values[:column], "-200", *values[column + 1 :]]
        rows.append(",".join(["2004-03-10", f"{column + 2}:00:00", *holes]))
    assert len(read(written(tmp_path, *rows)).true) == 2


def test_hours_left_out_are_gaps_in_time(tmp_path: Path) -> None:
    whole, lacking = ROW, f"-200{ROW[3:]}"
    times = [("10", "23:00:00", lacking), ("11", "0:00:00", whole), ("11", "1:30:00", whole)]
    times += [("11", "2:00:00", lacking), ("12", "00:00:00", whole)]
    rows = [f"2004-03-{day},{clock},{values}" for day, clock, values in times]
    assert read(written(tmp_path, *rows)).times.tolist() == [1.0, 2.5, 25.0]


@each(
    "rows, why",
    [
        (["2004-03-10,0:00:00,1.5"], "cannot be read"),
        ([f"10/03/2004,0:00:00,{ROW}"], "cannot be read"),
        (["2004-03-10,0:00:00,a,1,1,1,1,1,1,1"], "cannot be read"),
        ([f"2004-03-10,0:00:00,-200{ROW[3:]}"], "has 0 complete hours"),
        (["2004-03-10,0:00:00,0,1,1,1,1,1,1,1"], "has 1 complete hours; allowed: some, none below"),
    ],
)
def test_files_of_another_form_are_refused(rows: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^data: made\.csv {why}"):
        read(written(tmp_path, *rows))


def test_other_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOG_DATA", str(tmp_path))
    (tmp_path / "airquality").mkdir()
    written(tmp_path, f"2004-03-10,0:00:00,{ROW}").rename(tmp_path / FILE)
    problem = AirQuality()  # which needs no file yet
    with pytest.raises(InputError, match=r"^data: airquality/AirQualityUCI\.csv differs"):
        problem.knowledge()


@each("name, value", [("scale", "root"), ("calibration", HOURS), ("calibration", 4)])
def test_bad_fields_are_refused_without_the_data(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{name}: "):
        AirQuality(**{name: value})


def test_a_spec_says_it_all(kind: None) -> None:
    experiment = spec.load(Path(spec.__file__).parent / "catalog/airquality.toml")
    problem = spec.build_problem(experiment.problem)
    assert spec.describe(problem) == {"kind": "airquality", **spec.DEFAULTS["airquality"]}
    assert experiment.run.agents == ["alg1", "alg1-exact", "alg2", "alg2-exact", "naive", "kk"]


def test_the_complete_hours(data: Path) -> None:
    true, raw, weeks, times = read(data)
    assert true.shape == raw.shape == (HOURS, 4)
    assert true.min() > 0
    assert true[0].tolist() == [2.6, 11.9, 166.0, 113.0]
    assert raw[0].tolist() == [1360.0, 1046.0, 1056.0, 1692.0]
    assert (weeks[0], weeks[-1]) == (0, 55)
    assert (np.diff(weeks) >= 0).all()
    # From 10 March 2004, 18:00, to 4 April 2005, 14:00; a week and five hours are the longest gap.
    steps = np.diff(times)
    assert (times[0], times[-1], steps.min(), steps.max()) == (0.0, 390 * 24 - 4, 1.0, 174.0)
    assert (times % 1 == 0).all()


def test_scales(data: Path) -> None:
    log, linear = AirQuality().record(), AirQuality(scale="linear").record()
    np.testing.assert_allclose(np.exp(log.true), linear.true, rtol=1e-12)
    np.testing.assert_allclose(np.exp(log.raw), linear.raw, rtol=1e-12)


def test_sensors_drift_out_of_their_prior(data: Path) -> None:
    """What the page says of the channel: nitrogen dioxide reads low by far more than the prior allows."""
    record: Record = AirQuality().record()
    found, contexts, noisy = calibrated(record, 1000)
    later = (noisy - contexts)[1000:].mean(0)
    assert later[3] < -2.5 * np.sqrt(found.bias_cov[3, 3])
    assert np.abs(later[1]) < 0.05


def test_delayed_contexts_pay(data: Path) -> None:
    curves = play(AirQuality(), ["alg1", "alg2"], rounds=1000, trials=60, seed=4, points=1)
    gap = curves.values["regret"][0, :, 0] - curves.values["regret"][1, :, 0]
    # With 200 trials the gap was 10 to 14 standard errors, so about 5 to 7 with 60; asked for are 2 (3e-3).
    assert gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(60)


@pytest.mark.slow
def test_a_few_hours_revealed_late_help(data: Path) -> None:
    run: dict[str, Any] = {"rounds": 500, "trials": 40, "seed": 4, "points": 1}
    never, some = (
        play(AirQuality(revealed=share, reveal_delay=3), ["late"], **run).values["regret"][0, :, 0]
        for share in (0.0, 0.2)
    )
    gap = never - some
    # Equal worlds would pass with probability 2e-3, by the normal law.
    assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(40)


def test_a_run_from_the_catalogue(data: Path, kind: None, tmp_path: Path) -> None:
    file = Path(spec.__file__).parent / "catalog/airquality.toml"
    kept = unfog.run(file, rounds=60, trials=5, agents=["alg1", "alg2"], out=tmp_path / "run")
    again = unfog.run(AirQuality(), rounds=60, trials=5, agents=["alg1", "alg2"])
    assert np.array_equal(kept["regret"].values, again["regret"].values)
    with pytest.raises(InputError, match="told the bias"):
        unfog.run(AirQuality(), agents=["oracle"], rounds=5, trials=2)


def test_what_is_wrong_with_the_data_is_not_blamed_on_an_agent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("UNFOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"^data: no file airquality/AirQualityUCI\.csv"):
        play(AirQuality(), ["alg1"], rounds=3, trials=2)
    unsaid = spec.parse({"problem": {"kind": "airquality"}})
    assert _agents(unsaid, AirQuality()) == ["unfog", "alg1", "alg2", "naive", "kk"]
    with pytest.raises(
        InputError, match=r"^problem\.calibration: 4; allowed: .* at least 5 and at most 6940"
    ):
        prepare(spec.parse({"problem": {"kind": "airquality", "calibration": 4}}))
