"""Diagnostics by name, against the tallies they come from; and the picture of them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import xarray as xr

from unfog.channel import innovations
from unfog.live import inspection, monitoring
from unfog.live.figure import figure
from unfog.live.inspection import AGES, Named
from unfog.live.monitoring import Tallies
from unfog.maths.arrays import Array

NAMED = Named(["steps", "sleep"], ["send", "wait", "call"])
ALARM = "sleep: readings spread 2.5 times as far as the channel says"


def tallied() -> Tallies:
    """Ten decisions: two expired, one was cancelled, the last waits; all rewards but one within 90 %."""
    found = monitoring.none_yet(2, 2)
    for number in range(10):
        found = monitoring.decided(found, number % 2)
    for reward in (0.0, 1.0, -1.0, 0.5, 0.1, 9.0):
        found = monitoring.rewarded(found, 0, reward, (0.0, 1.0))
    for what in ("expired", "expired", "cancelled"):
        found = monitoring.happened(found, what)
    found = monitoring.happened(found, "answered", 6)
    return monitoring.revealed(
        found, np.array([3.0, 0]), np.array([1.0, 0]), np.ones(2), np.array([0.0, np.nan])
    )


def read(z: Array) -> innovations.Innovations:
    found = innovations.start(z.shape[-1])
    for one in z:
        found = innovations.after(found, one, np.zeros_like(one), np.ones_like(one))
    return found


@pytest.fixture
def data(rng: np.random.Generator) -> xr.Dataset:
    readings = read(rng.standard_normal((100, 2)) * [1.0, 3.0])
    half, nothing = np.array([0.5, 0.5]), np.full(2, np.nan)
    bias = inspection.Bias(np.array([0.5, -1.0]), np.array([0.1, 0.2]), nothing, half, "unit ann")
    return inspection.dataset(NAMED, tallied(), readings, bias=bias, ages=[30.0])


def test_every_number_has_a_name(data: xr.Dataset) -> None:
    assert data.bias.sel(coordinate="sleep") == -1.0
    assert data.bias_sd.sel(coordinate="steps") == 0.1
    assert data.readings.sel(coordinate="steps") == 100
    assert 0.5 < data.z_mean_square.sel(coordinate="steps") < 1.5
    assert 6 < data.z_mean_square.sel(coordinate="sleep") < 12
    assert abs(data.z_mean).max() < 1
    assert data.e_value.sel(coordinate="steps") < 1 < 1e6 < data.e_value.sel(coordinate="sleep")
    assert data.rmse_noisy.sel(coordinate="steps") == 3
    assert data.rmse_denoised.sel(coordinate="steps") == 1
    assert data.true_contexts.values.tolist() == [1, 0]
    assert data.context_coverage.sel(coordinate="steps") == 1
    assert data.share.sel(arm="wait") == 0.5
    assert data.chosen.sel(arm="call") == 0  # an arm that came later
    assert data.rewarded.sel(arm="send") == 6
    np.testing.assert_allclose(data.reward_mean.sel(arm="send"), 9.6 / 6)
    np.testing.assert_allclose(data.coverage.sel(level=[0.5, 0.9]), [3 / 6, 5 / 6])
    assert data.waiting.sel(age="minute") == 1


def test_what_holds_for_all_is_said_beside(data: xr.Dataset) -> None:
    assert data.attrs["alarm"] == [ALARM]
    assert 0 < data.attrs["alarmed"] < 30
    assert data.attrs["e_value_of_all"] > data.attrs["alarm_at"]
    said = {name: data.attrs[name] for name in ("decisions", "expired", "cancelled", "pending", "judged")}
    assert said == {"decisions": 10, "expired": 2, "cancelled": 1, "pending": 1, "judged": 6}
    assert data.attrs["join_rate"] == 1 - 2 / 8


def test_nothing_is_said_of_what_there_is_not() -> None:
    data = inspection.dataset(NAMED, monitoring.none_yet(2, 3), None)
    for name in ("bias", "z_mean", "e_value", "reward_mean", "share", "coverage", "predicted", "rmse_noisy"):
        assert np.isnan(data[name]).all(), name
    assert np.isnan(data.attrs["join_rate"])
    assert data.attrs["alarm"] == []


def test_ages_are_sorted() -> None:
    ages = [edge + more for edge in (60.0, 3600.0, 86_400.0, 604_800.0) for more in (-1.0, 0.0)]
    assert inspection.waiting([*ages, -5.0, 1e9]).tolist() == [2, 2, 2, 2, 2]
    assert all(a < b for a, b in pairwise(AGES.values()))


def test_rewards_of_0_or_1_have_bins() -> None:
    found = monitoring.none_yet(2, 3)
    for reward in (0.0, 1.0, 1.0, 1.0):
        found = monitoring.rewarded(monitoring.decided(found, 0), 0, reward, (0.72, 0.2), binary=True)
    data = inspection.dataset(NAMED, found, None).sel(bin=0.75)
    assert (data.in_bin, data.observed) == (4, 0.75)
    np.testing.assert_allclose(data.predicted, 0.72)


def test_the_picture_shows_the_numbers(data: xr.Dataset) -> None:
    chart = figure(data, "walks")
    axes: list[Any] = chart.axes
    bias, spread, covered, shares, rewards, pending = axes
    assert chart.get_suptitle() == "walks"
    assert chart.get_supxlabel() == ALARM
    assert bias.containers[0].lines[0].get_ydata().tolist() == [1.0, -2.0]  # deviations of contexts
    assert bias.get_title("left") == "bias: unit ann"
    assert bias.get_ylabel() == "deviations of true contexts"
    _, good, _, bad, _ = spread.lines
    np.testing.assert_allclose(good.get_ydata(), np.sqrt(data.z_mean_square[:1]))
    np.testing.assert_allclose(bad.get_ydata(), np.sqrt(data.z_mean_square[1:]))
    assert good.get_color() != bad.get_color()
    np.testing.assert_allclose(
        covered.collections[0].get_offsets(), np.stack([data.level, data.coverage], -1)
    )
    assert [bar.get_height() for bar in shares.patches] == [0.5, 0.5, 0.0]
    assert [label.get_text() for label in shares.get_xticklabels()] == ["send", "wait", "call"]
    np.testing.assert_allclose(rewards.containers[0].lines[0].get_ydata(), data.reward_mean)
    assert [bar.get_height() for bar in pending.patches] == [1, 0, 0, 0, 0]
    assert pending.get_title("left") == "rewards: 1 to come; 75 % came in time"


def test_a_picture_of_nothing_says_so() -> None:
    chart = figure(inspection.dataset(NAMED, monitoring.none_yet(2, 3), None))
    words = [[text.get_text() for text in axes.texts] for axes in chart.axes]
    assert words == [
        ["no bias is learnt"],
        ["no reading is expected"],
        ["no reward yet"],
        ["no decision yet"],
        ["no reward yet"],
        [],
    ]
