"""One log goes out in each format, and the same log comes in."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.evaluation.readers import logs
from tests.live.ground import Hand, opened
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.readers import Columns, read, to_obp
from unfog.evaluation.readers import table as tables
from unfog.live import Store, decision_table
from unfog.live import open as live_open
from unfog.validation import InputError


@pytest.fixture
def log() -> DecisionLog:
    return logs.simulated()


def test_a_log_is_itself(log: DecisionLog) -> None:
    assert read(log) is log


def test_a_mapping_and_a_frame(log: DecisionLog) -> None:
    table = logs.table(log)
    logs.same(read(table), log)
    frame = pd.DataFrame(table)
    logs.same(read(frame), log)
    frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
    frame["unit"] = frame["unit"].astype("category")
    frame["context.sleep"] = frame["context.sleep"].astype("Float64")
    logs.same(read(frame), log)
    frame["time"] = frame["time"].dt.tz_localize(None)
    logs.same(read(frame), log)


def test_frames_of_polars_and_pyarrow_and_parquet(tmp_path: Path, log: DecisionLog) -> None:
    table = {name: [None if x != x else x for x in cells] for name, cells in logs.table(log).items()}
    frame = pl.DataFrame(table)
    frame = frame.with_columns(pl.from_epoch(pl.col("time") * 1e6, "us").dt.replace_time_zone("UTC"))
    frame.write_parquet(tmp_path / "log.parquet")
    arrow = frame.to_arrow()
    units = arrow["unit"].dictionary_encode()
    coded = arrow.set_column(arrow.column_names.index("unit"), "unit", units)
    for one in (frame, frame.with_columns(pl.col("arm").cast(pl.Categorical)), arrow, coded):
        logs.same(read(one), log)
    logs.same(read(tmp_path / "log.parquet"), log)
    lost = pa.array([None, *table["unit"][1:]]).dictionary_encode()
    bad = arrow.set_column(arrow.column_names.index("unit"), "unit", lost)
    with pytest.raises(InputError, match="row 1, unit: nothing"):
        read(bad)
    for arms in ([True] * len(log.arm), [0.5] * len(log.arm)):
        with pytest.raises(InputError, match="row 1, arm: "):
            read(frame.with_columns(pl.Series("arm", arms)))


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("how", [{}, {"delimiter": ";"}, {"quoting": 1}, {"lineterminator": "\n"}])
def test_csv(
    tmp_path: Path, log: DecisionLog, how: dict[str, Any], quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(tables, "find_spec", lambda _: None)
        monkeypatch.setattr(tables, "PIECE", 50)
    path = logs.written(tmp_path / "log.csv", logs.table(log), **how)
    logs.same(read(path), log)
    path.write_text("\ufeff" + path.read_text("utf-8") + "\n\n", "utf-8")
    logs.same(read(str(path)), log)


def test_dates_are_seconds(tmp_path: Path, log: DecisionLog) -> None:
    table = logs.table(log)
    table["time"] = [one["Timestamp"] for one in logs.dsjson(log)]
    table["context.steps"] = ["NA" if x is None else x for x in table["context.steps"]]
    logs.same(read(logs.written(tmp_path / "log.csv", table)), log)


def test_dates_without_a_zone_are_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they are read."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        table = {"context.x": [1, 2, 3], "arm": [0, 1, 0], "reward": [1, 2, 3], "probability": [0.5] * 3}
        dates = ["1970-01-01 00:00:01", "1970-01-01T02:00:01+02:00", "1970-01-01T00:00:02.5Z"]
        assert np.asarray(read({**table, "time": dates}).time).tolist() == [1.0, 1.0, 2.5]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_columns_of_other_names(tmp_path: Path, log: DecisionLog) -> None:
    table = logs.table(log)
    other = {name: f"my {name}" for name in table} | {"context.steps": "steps"}
    path = logs.written(tmp_path / "log.csv", {other[name]: column for name, column in table.items()})
    toml = tmp_path / "columns.toml"
    toml.write_text(
        """
        context = ["steps", "my context.sleep", "my context.heart rate"]
        arm = "my arm"
        reward = "my reward"
        probability = "my probability"
        true = ["my true.steps", "my true.sleep", "my true.heart rate"]
        time = "my time"
        unit = "my unit"
        [probabilities]
        wait = "my probability.wait"
        send = "my probability.send"
        10 = "my probability.10"
        call = "my probability.call"
        """
    )
    logs.same(read(path, columns=toml, coordinates=logs.COORDINATES), log)
    same = tables.from_toml(toml)
    assert read(path, columns=same).coordinates == ("steps", "my context.sleep", "my context.heart rate")
    part = Columns(**{**vars(same), "true": {"my context.sleep": "my true.sleep"}})
    found = read(path, columns=part, coordinates=logs.COORDINATES)
    assert found.true is not None
    assert log.true is not None
    np.testing.assert_array_equal(found.true[:, 1], log.true[:, 1])
    assert np.isnan(found.true[:, [0, 2]]).all()


def test_without_probabilities_of_all_arms(log: DecisionLog) -> None:
    table = {name: x for name, x in logs.table(log).items() if not name.startswith("probability.")}
    found = read(table)
    assert found.arms == ("10", "call", "send", "wait")
    assert found.probabilities is None
    logs.same(read(table, arms=logs.ARMS), log, "probabilities")
    more = read(table, arms=[*logs.ARMS, "never"])
    assert (more.arms[-1], set(more.arm.tolist())) == ("never", {0, 1, 2, 3})
    del table["unit"], table["time"], table["probability"]
    even = read(table, arms=logs.ARMS, probability=0.25)
    np.testing.assert_array_equal(even.probabilities, np.full((log.rounds, 4), 0.25))
    np.testing.assert_array_equal(even.probability, 0.25)
    assert even.unit is None
    assert even.time is None


def test_numbered_arms_are_in_the_order_of_numbers() -> None:
    table = {"x": [1.0, 2.0, 4.0], "arm": [10, 9, 10], "reward": [0, 1, 0], "probability": [0.5, 0.2, 0.4]}
    found = read(table, columns={"context": ["x"]})
    assert (found.arms, found.arm.tolist()) == (("9", "10"), [1, 0, 1])


def test_obp(log: DecisionLog) -> None:
    given = to_obp(log)
    assert given["pi_b"].shape == (log.rounds, 4, 1)
    found = read(given, arms=logs.ARMS, coordinates=logs.COORDINATES)
    logs.same(found, log, "true", "time", "unit", "units")
    plain = read({**given, "position": np.zeros(log.rounds, int), "pi_b": None})
    assert (plain.coordinates, plain.arms) == (("x0", "x1", "x2"), ("0", "1", "2", "3"))
    assert plain.probabilities is None
    np.testing.assert_array_equal(plain.noisy, log.noisy)


def test_dsjson(tmp_path: Path, log: DecisionLog) -> None:
    objects = logs.dsjson(log)
    found = read(logs.lines(tmp_path / "log.json", objects), arms=None)
    gone = "true", "unit", "units"
    logs.same(found, log, *gone)
    lost = int(np.isnan(log.noisy).sum())
    assert found.notes == (
        f"{lost} numbers are not in their line: lost (Vowpal Wabbit takes them for 0)",
        "no numbers, and so no coordinates: Sensor.maker",
    )
    for one in objects:
        for action in one["c"]["_multi"]:
            del action["_tag"]
    path = logs.lines(tmp_path / "log.jsonl", objects)
    logs.same(read(path, arms=logs.ARMS), log, *gone)
    assert read(path).arms == ("1", "2", "3", "4")
    two = read(path, arms=logs.ARMS, coordinates=["Body.heart rate", "sleep"])
    np.testing.assert_array_equal(two.noisy, log.noisy[:, [2, 1]])


def test_dsjson_passes_over_what_was_not_learnt(tmp_path: Path, log: DecisionLog) -> None:
    objects = logs.dsjson(log)
    objects[3]["_skipLearn"] = True
    objects[5]["DeferredAction"] = True
    objects[6] |= {"DeferredAction": True, "o": [{"ActionTaken": True}]}
    dangling = [{"RewardValue": 1.0, "EnqueuedTimeUtc": "2026-01-01T00:00:00Z", "EventId": "gone"}]
    found = read(logs.lines(tmp_path / "log.json", [*dangling, *objects]))
    keep = np.array([t not in (3, 5) for t in range(log.rounds)])
    logs.same(found, log.rows(np.flatnonzero(keep)), "true", "unit", "units")
    assert found.notes[:3] == (
        "1 rewards without their decision: left out",
        "1 events that were not to be learnt from (_skipLearn): left out",
        "1 events whose action was never taken (deferred, not activated): left out",
    )


def test_actions_of_dsjson_follow_their_names(tmp_path: Path, log: DecisionLog) -> None:
    """Each line may list its actions in an order of its own."""
    objects, dice = logs.dsjson(log), np.random.default_rng(3)
    for one in objects[1:]:
        order = dice.permutation(4).tolist()
        place = {k + 1: order.index(k) + 1 for k in range(4)}
        one["c"]["_multi"] = [one["c"]["_multi"][k] for k in order]
        one["a"] = [place[k] for k in one["a"]]
        one["_label_Action"] = one["a"][0]
        del one["_labelIndex"], one["_label_probability"]
    logs.same(read(logs.lines(tmp_path / "log.json", objects)), log, "true", "unit", "units")


def entered(store: Store, log: DecisionLog, clock: Hand) -> None:
    """A log as the decisions of somebody else, in a live store."""
    terms: dict[str, Any] = {"context": log.coordinates, "arms": log.arms, "channel": CHANNEL, "seed": 3}
    live = store.problem("walks", **terms)
    assert log.time is not None
    assert log.true is not None
    assert log.unit is not None
    for t in range(log.rounds):
        clock.time = float(log.time[t])
        noisy = [None if x != x else x for x in log.noisy[t].tolist()]
        arm, chance = log.arms[log.arm[t]], float(log.probability[t])
        made = live.decide(noisy, unit=log.units[log.unit[t]], logged_arm=arm, probability=chance)
        live.reward(made.id, float(log.reward[t]))
        told = zip(log.coordinates, log.true[t].tolist(), strict=True)
        for name, x in told:
            if x == x:
                live.reveal(made.id, {name: x})


CHANNEL = {"context_mean": logs.MEAN.tolist(), "context_cov": [1, 1, 90], "noise_cov": [0.3, 0.1, 16]}
CHANNEL |= {"bias_cov": [1, 1, 9]}


def test_a_live_store_and_all_it_writes(tmp_path: Path, log: DecisionLog) -> None:
    log, clock = log.rows(slice(0, 40)), Hand()
    with opened(tmp_path, clock) as store:
        entered(store, log, clock)
        found = read(store)
        logs.same(found, log, "probabilities", "channel")
        assert found.probabilities is None
        assert (found.source, found.notes) == ("live problem 'walks'", ())
        logs.same(read(store.problem("walks")), found)
        (tmp_path / "log.ndjson").write_text("".join(store.export("walks")), "utf-8")
        rows = list(decision_table.as_table(store.events("walks"), log.coordinates))
        table = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
        logs.written(tmp_path / "log.csv", {name: list(column) for name, column in table.items()})
    logs.same(read(tmp_path / "log.ndjson"), found)
    logs.same(read(tmp_path / "log.csv", arms=log.arms), found, "channel")
    logs.same(read(tmp_path / "test.unfog", opener=live_open), found)


@pytest.mark.parametrize("how", ["mapping", "quick", "rows"])
def test_outcome_may_be_the_name_of_any_column(
    how: str, tmp_path: Path, log: DecisionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what became of live decisions only where nothing else is called so."""
    if how == "rows":
        monkeypatch.setattr(tables, "find_spec", lambda _: None)
    for part, column in (("reward", "reward"), ("context", "context.sleep"), ("unit", "unit")):
        table = {"outcome" if name == column else name: cells for name, cells in logs.table(log).items()}
        context = [name if name in table else "outcome" for name in map("context.{}".format, log.coordinates)]
        told = Columns(context=context) if part == "context" else tables.from_mapping({part: "outcome"})
        source = table if how == "mapping" else logs.written(tmp_path / "log.csv", table)
        found = read(source, columns=told, arms=log.arms, coordinates=log.coordinates)
        logs.same(found, log)
