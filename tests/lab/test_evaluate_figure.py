"""Pictures of values and of sensors: what is drawn is what the datasets say."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.container import BarContainer, ErrorbarContainer

import unfog
from tests.lab.charts import inside
from tests.walks import CHANNEL, COLUMNS, walks
from unfog.lab import evaluate
from unfog.lab.labels import LOOKS


def made(names: list[str]) -> xr.Dataset:
    """Values that lie unevenly in their intervals, so that ends cannot be mixed up."""
    rng, shape = np.random.default_rng(3), (len(names), 2)
    value = rng.normal(1600, 300, shape)
    numbers = {
        "value": value,
        "low": value - rng.uniform(5, 50, shape),
        "high": value + rng.uniform(60, 90, shape),
    }
    return xr.Dataset(
        {
            **{name: (["policy", "estimator"], one) for name, one in numbers.items()},
            "effective": ("policy", rng.uniform(10, 5000, len(names))),
        },
        {"policy": names, "estimator": ["ips", "dr"]},
        {"source": "$a_b.csv", "rounds": 5000, "level": 0.9, "intervals": "plain", "earned": 1500.0},
    )


def bars(axes: Any) -> Any:
    [found] = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    return found


@pytest.mark.parametrize("count", [1, 20])
def test_values_intervals_and_rounds_are_drawn(count: int) -> None:
    names = [f"a policy with a long name of ${i}_x, one that needs two lines" for i in range(count)]
    data = made(names)
    chart = evaluate.figure(data)
    value, rounds = chart.axes
    dots, _, (reach,) = bars(value)
    np.testing.assert_allclose(dots.get_xdata(), data["value"].sel(estimator="ips"))
    ends = np.array([segment[:, 0] for segment in reach.get_segments()])
    first = data.sel(estimator="ips")
    np.testing.assert_allclose(ends, np.stack([first["low"], first["high"]], axis=1))
    [bar] = [one for one in rounds.containers if isinstance(one, BarContainer)]
    np.testing.assert_allclose([one.get_width() for one in bar], data["effective"])
    assert [label.get_text().replace("\n", " ") for label in value.get_yticklabels()] == names
    [earned] = [line for line in value.lines if line.get_label() == "earned"]
    assert np.asarray(earned.get_xdata()).tolist() == [1500.0, 1500.0]
    assert inside(chart)


def test_the_first_policy_is_above() -> None:
    value = evaluate.figure(made(["a", "b"])).axes[0]
    bottom, top = value.get_ylim()
    assert bottom > top


@pytest.mark.slow
def test_levels_curve_and_ladder_are_drawn() -> None:
    worth = unfog.sensor_worth(walks(500).table(), alone=["sleep"], columns=COLUMNS, channel=CHANNEL)
    worth["used"][1] = "cubic"
    chart = evaluate.sensor(worth)
    assert [axes.get_title("left") for axes in chart.axes] == ["all sensors", "sleep alone"]
    for axes, name, curve in zip(chart.axes, ("all", "sleep"), ("model", "cubic"), strict=True):
        one = worth.sel(sensor=name)
        dots, _, (reach,) = bars(axes)
        np.testing.assert_allclose(dots.get_xdata(), [1, 1.5, 2, 2.5, 3])
        np.testing.assert_allclose(dots.get_ydata(), one["value"])
        ends = np.array([segment[:, 1] for segment in reach.get_segments()])
        np.testing.assert_allclose(ends, np.stack([one["value_low"], one["value_high"]], axis=1))
        lines = {str(line.get_label()): np.asarray(line.get_ydata(), float) for line in axes.lines}
        expected = [*one["expected"].sel(curve=curve).values, one["value"].values[0]]
        np.testing.assert_allclose(lines["extrapolated"], expected)
        assert evaluate.RUNGS["naive"] == (LOOKS["naive"].colour, LOOKS["naive"].dash)
        assert axes.get_xlabel() == "noise, as a multiple of today's"
        for rung in worth["rung"].values:
            assert lines[str(rung)][0] == worth["ladder"].sel(rung=rung).item()
