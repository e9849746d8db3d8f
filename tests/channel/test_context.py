"""What callers say of a context, and rows of values as columns of numbers."""

import json
from collections import namedtuple
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.each import each
from unfog.channel.channel import channel
from unfog.channel.context import Category, ContextSpec, Cycle, Reading, read_context
from unfog.channel.knowledge import masked_shrinkage
from unfog.validation import InputError

DAYS = ["mon", "tue", "wed"]
WALKS: dict[str, Any] = {
    "steps": 1200,
    "mood": Reading(0.6, bias_sd=0.2, mean=3, sd=1.1, between_sd=0.5),
    "hour": Cycle(24),
    "day": Category(DAYS),
    "age": 0,
    "site": {"levels": [1, "b"], "other": True},
}
Row = namedtuple("Row", ["Index", "steps", "mood"])


def walks() -> ContextSpec:
    return read_context("context", WALKS)


def test_each_coordinate_has_its_columns_and_groups() -> None:
    spec = walks()
    assert spec.columns == (
        *("steps", "mood", "hour.cos", "hour.sin", "day=mon", "day=tue", "day=wed", "age"),
        *("site=1", "site=b", "site=other"),
    )
    assert spec.groups.tolist() == [0, 1, 2, 2, 3, 3, 3, 4, 5, 5, 5]
    assert spec.exact == ("hour", "day", "age", "site")
    assert read_context("context", ["steps", "mood"]).exact == ("steps", "mood")


def test_json_is_read_back_as_the_same() -> None:
    spec = walks()
    text = json.dumps(spec.to_json())
    assert read_context("context", json.loads(text)) == spec
    assert spec.to_json()["day"] == DAYS
    assert spec.to_json()["steps"] == 1200.0
    assert list(spec.to_json()["mood"]) == ["noise_sd", "bias_sd", "mean", "sd", "between_sd"]


@each(
    "context, words",
    [
        ({"steps": Reading}, ["context.steps", "a Reading"]),
        ({"steps": -1}, ["context.steps", "-1"]),
        ({"steps": True}, ["context.steps", "True"]),
        ({"steps": float("nan")}, ["context.steps", "nan"]),
        ({"steps": "1200"}, ["context.steps", "'1200'"]),
        ({"steps": {"noise_sd": 1, "sd": 2, "between_sd": 3}}, ["context.steps.sd", "2", "between_sd, 3"]),
        ({"steps": {"noise_sd": 1, "sd": 0}}, ["context.steps.sd", "positive"]),
        ({"steps": {"noise_sd": 1, "bias_sd": True}}, ["context.steps.bias_sd", "True"]),
        ({"steps": {"noise_sd": 1, "mean": float("nan")}}, ["context.steps.mean", "nan"]),
        ({"steps": {"sd": 2}}, ["context.steps.noise_sd", "missing"]),
        ({"steps": {"noise_sd": 1, "context_sd": 2}}, ["context.steps.context_sd", "did you mean 'sd'"]),
        ({"steps": {"nois_sd": 1}}, ["did you mean 'noise_sd'"]),
        ({"day": ["mon"]}, ["context.day.levels", "two"]),
        ({"day": [1, "1"]}, ["context.day.levels[1]", "'1'"]),
        ({"day": [True, False]}, ["context.day.levels[0]", "True"]),
        ({"hour": {"period": 0}}, ["context.hour.period", "0"]),
        ({"hour": {"period": 24, "phase": 1}}, ["context.hour.phase", "no such field"]),
        ({"day": DAYS, "day=mon": 0}, ["context", "two columns 'day=mon'"]),
        ([], ["context", "0 names"]),
        ("steps", ["context", "'steps'"]),
        (None, ["context", "missing"]),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(context: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        read_context("context", context)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_misspelt_keywords_are_refused_as_in_a_table() -> None:
    with pytest.raises(InputError, match="did you mean 'noise_sd'"):
        Reading(nois_sd=2)  # type: ignore[call-arg]


@each(
    "row",
    [
        {"steps": 1648, "mood": None},
        {"steps": Decimal(1648), "mood": Decimal("NaN")},
        {"steps": np.int64(1648), "mood": np.float32("nan")},
        {"steps": np.array(1648), "mood": np.ma.masked},
        {"steps": pa.scalar(1648), "mood": pa.scalar(None, pa.float64())},
        {"steps": pl.Series([1648])[0], "mood": pl.Series([None], dtype=pl.Float64)[0]},
        [1648, float("nan")],
        (1648.0, pd.NaT),
        np.array([[1648, np.nan]]),
        pd.Series([1648, pd.NA]),
        pd.Series([1648, None, "ann"], index=["steps", "mood", "person"]),
        pd.DataFrame({"person": ["ann"], "mood": pd.array([None], "Int64"), "steps": [1648]}).iloc[0],
        pd.DataFrame({"mood": [None], "steps": [1648]}),
        pl.DataFrame({"mood": [None], "steps": [1648]}),
        pa.table({"mood": [None], "steps": [1648]}),
        Row(0, 1648, None),
        np.array([(1648, np.nan)], [("steps", int), ("mood", float)])[0],
    ],
)
def test_rows_of_all_kinds_are_the_same_numbers(row: Any) -> None:
    encoded = read_context("context", {"steps": 1200, "mood": 0.6}).encode(row)
    np.testing.assert_array_equal(encoded.values, [1648.0, np.nan])
    assert encoded.mask.tolist() == [1.0, 0.0]


@each(
    "row, words",
    [
        ({"steps": 1}, ["context.mood", "missing"]),
        ({"steps": 1, "moood": 2}, ["context.moood", "did you mean 'mood'"]),
        ({"steps": True, "mood": 2}, ["context.steps", "True"]),
        ({"steps": np.bool_(True), "mood": 2}, ["context.steps", "True"]),
        ({"steps": "1648", "mood": 2}, ["context.steps", "'1648'"]),
        ({"steps": 10**400, "mood": 2}, ["context.steps"]),
        ([1], ["context", "2 values"]),
        (pd.Series([1, 2, 3], index=["steps", "mood", "mood"]), ["context.mood", "two values"]),
        (pl.DataFrame({"steps": [1, 2], "mood": [1, 2]}), ["a frame of 2 rows", "decide_many"]),
    ],
)
def test_rows_that_cannot_be_read(row: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        read_context("context", {"steps": 1200, "mood": 0.6}).encode(row)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_levels_and_cycles_are_encoded_and_shown_again() -> None:
    spec = read_context(
        "context", {"hour": Cycle(24), "day": Category(DAYS), "site": Category([1], other=True)}
    )
    encoded = spec.encode({"hour": 33, "day": "tue", "site": 1.0})
    angle = 2 * np.pi * 9 / 24
    np.testing.assert_allclose(encoded.values, [np.cos(angle), np.sin(angle), 0, 1, 0, 1, 0], atol=1e-15)
    denoised, sd = spec.decode(encoded.values, np.zeros((7, 7)))
    assert denoised["hour"] == pytest.approx(9)
    assert sd["hour"] == 0
    assert denoised["day"] == {"mon": 0, "tue": 1, "wed": 0}
    assert sd["day"]["tue"] == 0
    assert spec.encode({"hour": None, "day": None, "site": "new"}).values[-2:].tolist() == [0, 1]
    with pytest.raises(InputError, match=r"context.day: 'tues' \(did you mean 'tue'\?\).*other=True"):
        spec.encode({"hour": 1, "day": "tues", "site": 1})


def test_the_law_of_what_is_missing_is_that_of_what_was_seen() -> None:
    """Against NumPy's moments of all that was seen, and of the one observation that is assumed."""
    spec = read_context(
        "context", {"hour": Cycle(24), "steps": Reading(1, mean=5, sd=2), "day": Category(DAYS)}
    )
    tally, rng = spec.start(), np.random.default_rng(0)
    rows = []
    for i in range(300):
        row = {"hour": rng.uniform(0, 9), "steps": None, "day": DAYS[int(rng.integers(2))]}
        rows.append(spec.encode(row | ({"hour": None} if i % 3 == 0 else {})))
        tally = spec.count(tally, rows[-1])
    values = np.stack([one.values for one in rows])
    mean, cov = spec.law(tally)
    ring = 2 * np.pi * np.arange(4) / 4
    assumed = np.stack([np.cos(ring), np.sin(ring)], 1)
    hours = np.concatenate([values[~np.isnan(values[:, 0]), :2], assumed])
    weights = np.r_[np.ones(200), np.full(4, 0.25)]
    np.testing.assert_allclose(mean[:2], np.average(hours, axis=0, weights=weights))
    np.testing.assert_allclose(cov[:2, :2], np.cov(hours.T, aweights=weights, ddof=0))
    days = np.concatenate([values[:, 3:], np.eye(3)])
    weights = np.r_[np.ones(300), np.full(3, 1 / 3)]
    np.testing.assert_allclose(mean[3:], np.average(days, axis=0, weights=weights))
    np.testing.assert_allclose(cov[3:, 3:], np.cov(days.T, aweights=weights, ddof=0), atol=1e-15)
    assert (mean[2], cov[2, 2]) == (5, 4)
    assert not cov[2, [0, 1, 3, 4, 5]].any()
    denoised, sd = spec.decode(mean, cov)
    assert sum(denoised["day"].values()) == pytest.approx(1)
    assert denoised["day"]["wed"] < 0.01
    assert 3 < denoised["hour"] < 6
    assert 2 < sd["hour"] < 24 / np.sqrt(12)


def test_an_unseen_cycle_may_be_anywhere() -> None:
    spec = read_context("context", {"hour": Cycle(24)})
    assert spec.decode(*spec.law())[1]["hour"] == pytest.approx(24 / np.sqrt(12))


def test_a_channel_of_all_that_is_known_denoises_readings_and_fills_gaps() -> None:
    context = {"steps": Reading(1200, bias_sd=500, mean=7000, sd=2000), "day": Category(DAYS)}
    spec = read_context("context", {**context, "age": Reading(0, mean=50, sd=10)})
    known = spec.to_channel()
    again = channel(json.loads(json.dumps(known.to_json())), spec.columns)
    np.testing.assert_array_equal(again.context_cov, known.context_cov)

    def denoise(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        values, mask = spec.encode(row)
        law = masked_shrinkage(known.context_mean, known.context_cov, known.noise_cov + known.bias_cov, mask)
        step = np.where(mask == 1, values - known.context_mean, 0.0)
        return spec.decode(known.context_mean + law.gain @ step, law.cov)

    denoised, sd = denoise({"steps": 9000, "day": "tue", "age": 33})
    share = 2000**2 / (2000**2 + 1200**2 + 500**2)
    assert denoised["steps"] == pytest.approx(7000 + share * 2000)
    assert sd["steps"] == pytest.approx(2000 * np.sqrt(1 - share))
    assert denoised["day"]["tue"] == pytest.approx(1, abs=1e-6)
    assert denoised["age"] == pytest.approx(33, abs=1e-6)
    assert sd["age"] < 1e-4
    denoised, sd = denoise({"steps": None, "day": None, "age": None})
    assert (denoised["steps"], sd["age"]) == pytest.approx((7000, 10))
    assert denoised["day"]["mon"] == pytest.approx(1 / 3)
    assert sd["day"]["mon"] == pytest.approx(np.sqrt(2) / 3)


def test_the_columns_of_a_category_have_one_scale() -> None:
    spec = read_context("context", {"day": Category(DAYS), "age": Reading(0, mean=50, sd=10)})
    tally = spec.start()
    for day in ["mon"] * 9 + ["tue"]:
        tally = spec.count(tally, spec.encode({"day": day, "age": 50}))
    units = spec.to_units(spec.to_channel(tally))
    assert units.scale[0] == units.scale[1] == units.scale[2]
    assert units.scale[3] == 10
    assert units.scale[0] ** 2 == pytest.approx(np.trace(spec.law(tally).cov[:3, :3]) / 3, rel=1e-7)


def test_a_channel_says_what_it_lacks() -> None:
    with pytest.raises(InputError, match=r"context.mood.bias_sd: not given"):
        read_context("context", {"mood": Reading(0.6, mean=3, sd=1)}).to_channel()
