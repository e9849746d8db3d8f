"""Channels as callers tell of them: units, JSON, refusals."""

import json
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.channel.channel import Channel, channel, keep_units, standard
from unfog.channel.dynamics import Dynamics, Moving
from unfog.maths.mixture import Mixture
from unfog.validation import InputError

NAMES = ["steps", "sleep"]
TOLD: dict[str, Any] = {
    "context_mean": [7000.0, 7.0],
    "context_cov": [[4e6, 500.0], [500.0, 2.25]],
    "noise_cov": [1.5e6, 0.5],
    "bias_cov": [[9e5, 150.0], [150.0, 0.2]],
    "bias": [-800.0, 0.4],
}
PRIOR: dict[str, Any] = {"prior_mean": np.zeros(3), "prior_cov": np.eye(3)}


def test_deviations_from_the_mean_and_back() -> None:
    told = channel(TOLD, NAMES)
    units = standard(told)
    np.testing.assert_allclose(units.inside(np.array([9000.0, 5.5])), [1.0, -1.0])
    np.testing.assert_allclose(units.read(np.array([8200.0, 5.9])), [1.0, -1.0])
    np.testing.assert_allclose(units.outside(units.inside(np.array([123.0, 4.5]))), [123.0, 4.5])
    known = told.to_knowledge(units, **PRIOR)
    scale = np.diag([1 / 2000, 1 / 1.5])
    np.testing.assert_allclose(known.context_mean, 0, atol=1e-15)
    for name in ("context_cov", "noise_cov", "bias_cov"):
        whole = told._asdict()[name]
        np.testing.assert_allclose(known._asdict()[name], scale @ whole @ scale)
    np.testing.assert_allclose(units.noise(told.noise_cov), known.noise_cov)


def test_what_is_standard_already_stays_to_the_last_bit() -> None:
    told = channel({"context_mean": 0.0, "context_cov": 1.0, "noise_cov": 0.3, "bias_cov": 0.7}, NAMES)
    x = np.array([0.1, -1 / 3])
    assert standard(told).read(x).tolist() == x.tolist() == keep_units(told).read(x).tolist()
    assert told.to_knowledge(standard(told), **PRIOR).noise_cov.tolist() == told.noise_cov.tolist()


def test_json_and_back() -> None:
    dynamics = Dynamics(
        Moving(np.eye(2), 3.5),
        Moving(np.eye(2), np.inf, 0.1 * np.eye(2)),
        np.eye(2),
        periods=(24.0,),
        cycles=np.ones((1, 2, 2)),
    )
    mixture = Mixture(np.array([0.4, 0.6]), np.arange(4.0).reshape(2, 2), np.stack([np.eye(2)] * 2))
    told = channel(TOLD, NAMES)._replace(
        dynamics=dynamics, mixture=mixture, sample=np.arange(6.0).reshape(3, 2)
    )
    text = json.dumps(told.to_json(sample=True), allow_nan=False)
    again = channel(json.loads(text), NAMES)
    assert json.dumps(again.to_json(sample=True)) == text
    assert told.to_json().keys() == json.loads(text).keys() - {"sample"}
    assert again.dynamics is not None
    assert (again.dynamics.bias.time, again.dynamics.periods) == (np.inf, (24.0,))


def test_what_moves_in_time_is_scaled_like_the_rest() -> None:
    dynamics = Dynamics(Moving(np.diag([4.0, 9.0]), 3.5), Moving(np.eye(2), np.inf, np.eye(2)), np.eye(2))
    told = channel(TOLD, NAMES)._replace(dynamics=dynamics)
    known = told.to_knowledge(standard(told), **PRIOR)
    assert known.dynamics is not None
    assert known.dynamics.bias.walk is not None
    np.testing.assert_allclose(np.diag(known.dynamics.fast.cov), [4 / 4e6, 9 / 2.25])
    np.testing.assert_allclose(np.diag(known.dynamics.bias.walk), [1 / 4e6, 1 / 2.25])


@each(
    "change, field",
    [
        ({"noise_cov": None}, "channel.noise_cov"),
        ({"noise_cov": -1.0}, "channel.noise_cov"),
        ({"context_cov": [[1.0, 2.0], [2.0, 1.0]]}, "channel.context_cov"),
        ({"context_mean": [1.0]}, "channel.context_mean"),
        ({"bias": [1.0, float("nan")]}, "channel.bias"),
        ({"colour": 1}, "channel.colour"),
        ({"sample": [[1.0]]}, "channel.sample"),
        ({"dynamics": {"fast": 1}}, "channel.dynamics.fast"),
    ],
)
def test_bad_channels_are_refused_by_their_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as refused:
        channel(TOLD | change, NAMES)
    assert refused.value.field == field
    with pytest.raises(InputError, match=r"^channel: 3; allowed: the channel of a calibration"):
        channel(3, NAMES)


def test_a_calibration_has_one() -> None:
    rng = np.random.default_rng(1)
    true = rng.normal([5.0, 1.0], [2.0, 0.5], (60, 2))
    found = unfog.calibrate(true + np.array([0.3, -0.2]) + rng.normal(0, [1.0, 0.2], (60, 2)), true)
    assert isinstance(found.channel, Channel)
    np.testing.assert_array_equal(found.channel.bias, found.bias)
    np.testing.assert_array_equal(found.channel.noise_cov, found.noise_cov)
    assert found.channel.sample is not None
    assert "sample" not in found.channel.to_json()
    assert repr(found.channel) == "<Channel of 2 coordinates>"
    printed = str(found.channel).splitlines()
    assert [line[:13].rstrip() for line in printed[:5]] == [
        "context mean",
        "context sd",
        "noise sd",
        "bias",
        "bias sd",
    ]
    assert printed[5:] == [f"with {len(found.channel.sample)} true contexts of the past"]
    assert len(found.channel.sample) == found.pairs
