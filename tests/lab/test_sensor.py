"""What a better sensor is worth on a log: the dataset, which curve is believed, and what is refused."""

from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from tests.walks import CHANNEL, COLUMNS, walks, worth_of_truth
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.sensor import Sensor, ladder, sensor
from unfog.lab.evaluate import read_log
from unfog.lab.sensor import curve_of, named
from unfog.maths.statistics import Estimate
from unfog.validation import InputError

TOLD: Any = {"columns": COLUMNS, "channel": CHANNEL}


@pytest.mark.slow
def test_all_that_was_found_is_there() -> None:
    days = walks(600)
    columns = {**COLUMNS, "true": ["true_steps", "true_sleep"]}
    found = unfog.sensor_worth(
        days.table(known=250), alone="sleep", columns=columns, channel=CHANNEL, level=0.9
    )
    np.testing.assert_allclose(found["own_share"], [1.0, 1 - 0.1**2 / (0.8 * 0.5)])  # of correlated noise
    scene = EvaluationContext(read_log(days.table(known=250), columns=columns), CHANNEL)
    for name, which in (("all", ""), ("sleep", "sleep")):
        one, own = sensor(scene, which), found.sel(sensor=name)
        np.testing.assert_allclose(own["value"], [value.mean for value in one.values])
        np.testing.assert_allclose(own["value_se"], [value.se for value in one.values])
        for curve in ("model", "cubic"):
            np.testing.assert_allclose(own["worth"].sel(curve=curve), [w.mean for w in one.worth[curve]])
            np.testing.assert_allclose(own["expected_se"].sel(curve=curve), [w.se for w in one.read[curve]])
        np.testing.assert_allclose([own["slope"], own["slope_se"]], one.slope)
    rungs = ladder(scene)
    assert found["rung"].values.tolist() == ["naive", "denoised", "perfect", "denoised, known", "true"]
    np.testing.assert_allclose(found["ladder"].values[[0, 1, 3, 4]], [rung.value.mean for rung in rungs])
    assert found["ladder_rounds"].values.tolist() == [600, 600, 600, 250, 250]
    reach = (found["value_high"] - found["value"]) / found["value_se"]
    np.testing.assert_allclose(reach, 1.676551, rtol=1e-6)  # Student's t, 49 degrees of freedom


@pytest.mark.slow
def test_it_is_right_where_the_channel_is() -> None:
    """One log: by chance it fails once in 15,000."""
    found = unfog.sensor_worth(walks(8000, seed=5).table(), **TOLD)
    assert found["used"].item() == "model"
    answer = found.sel(sensor="all", less=-1.0, curve="model")
    assert abs(answer["worth"].item() - worth_of_truth()) < 4 * answer["worth_se"].item()
    assert answer["worth_se"].item() < 0.03


@pytest.mark.slow
def test_a_channel_that_is_wrong_is_told() -> None:
    """The noise is told to be twelve times what it is: what is added does more harm than that explains."""
    loud = {**CHANNEL, "noise_cov": (np.array(CHANNEL["noise_cov"]) * 12).tolist()}
    found = unfog.sensor_worth(walks(8000, seed=5).table(), columns=COLUMNS, channel=loud)
    assert found["used"].item() == "quadratic"
    assert found.attrs["notes"][0].startswith("Careful, all: with more noise, values change ")
    perfect = found["expected"].sel(sensor="all", curve="quadratic", less=-1.0)
    assert found["ladder"].sel(rung="perfect").item() == perfect.item()


@each("slope, curve", [(1.29, "model"), (1.31, "quadratic"), (0.69, "quadratic")])
def test_the_curve_of_the_model_is_believed_up_to_three_errors(slope: float, curve: str) -> None:
    assert curve_of(Sensor("", [], {}, {}, Estimate(slope, 0.1))) == curve


def test_names_of_sensors() -> None:
    assert named("each", ["a", "b"]) == ["a", "b"]
    assert named("b, a, b", ["a", "b"]) == ["b", "a"]
    assert named((), ["a", "b"]) == []
    with pytest.raises(InputError, match=r"^alone: 'c'; allowed: each, a, b$"):
        named(["c"], ["a", "b"])


def test_without_a_channel_it_says_what_is_missing() -> None:
    told = r"^channel: none, and 30 true contexts; allowed: .*true contexts in the log, 100 at least$"
    columns = {**COLUMNS, "true": ["true_steps", "true_sleep"]}
    with pytest.raises(InputError, match=told):
        unfog.sensor_worth(walks(120).table(known=30), columns=columns)
    with pytest.raises(InputError, match=r"^level: 1\.5; allowed: a number between 0 and 1"):
        unfog.sensor_worth(walks(120).table(), level=1.5, **TOLD)
