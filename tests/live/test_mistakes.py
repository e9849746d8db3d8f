"""Mistakes that are easily made get an answer that says what was probably meant, word for word."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tests.live.conformance.places import PLACES, Live, Place
from unfog.live import ConflictError, NotFoundError
from unfog.serve.client import RemoteProblem
from unfog.validation import InputError

CHANNEL = {"context_mean": [1.0, -2.0], "context_cov": [2.0, 4e6], "noise_cov": 0.5, "bias_cov": 0.3}
COVARIANCE = "a variance (0: without error), 2 variances or a symmetric positive definite 2 x 2 matrix"
ARGUMENTS = "context, unit, arms, key, measured_at, noise_sd, noise_cov, logged_arm, probability"
ZONE = "a number, or a date with its time and zone, such as 2026-03-01T12:00:00Z"
LOST = "a finite number, or None where it was lost"


@pytest.fixture(scope="module", params=["memory", "service"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("mistakes")
    kind: Callable[[Path], AbstractContextManager[Place]] = PLACES[request.param]
    with kind(folder) as opened:
        yield opened


@pytest.fixture
def live(place: Place) -> Live:
    return place.made(channel=CHANNEL)


def refused(call: Callable[[], object], message: str, kind: type[InputError] = InputError) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_a_misspelt_coordinate(place: Place, live: Live) -> None:
    refused(
        lambda: live.decide({"x": 1.0, "yy": 0.0}),
        "context.yy: no such coordinate (did you mean 'y'?); allowed: x, y",
    )
    refused(
        lambda: live.decide([1.0, 0.0], noise_sd={"xx": 1.0}),
        "noise_sd.xx: no such coordinate (did you mean 'x'?); allowed: x, y",
    )
    by_coordinate = place.made(context={"steps": 3.0, "mood": 1.0}, channel=None)
    refused(
        lambda: by_coordinate.decide({"step": 1.0, "mood": 0.0}),
        "context.step: no such coordinate (did you mean 'steps'?); allowed: steps, mood",
    )


def test_a_misspelt_keyword(place: Place, live: Live) -> None:
    misspelt: Any = {"unti": "ann"}
    refused(
        lambda: live.decide([1.0, 0.0], **misspelt),
        f"unti: no such argument of decide() (did you mean 'unit'?); allowed: {ARGUMENTS}",
    )
    with pytest.raises(
        InputError, match=r"^reward_sdd: no such field \(did you mean 'reward_sd'\?\); allowed: "
    ):
        place.made(reward_sdd=3.0)


def test_a_negative_variance(place: Place, live: Live) -> None:
    refused(
        lambda: place.made(channel={**CHANNEL, "noise_cov": [-0.5, 1.0]}),
        f"channel.noise_cov: [-0.5, 1.0] has the variance -0.5; allowed: {COVARIANCE}",
    )
    refused(
        lambda: live.decide([1.0, 0.0], noise_cov=-1.0),
        f"noise_cov: -1.0 has the variance -1; allowed: {COVARIANCE}",
    )


def test_a_wrong_shape(place: Place, live: Live) -> None:
    refused(
        lambda: live.decide([1.0, 2.0, 3.0]),
        "context: [1.0, 2.0, 3.0]; allowed: a mapping by name, or 2 values: x, y",
    )
    refused(
        lambda: place.made(channel={**CHANNEL, "context_mean": [1, 2, 3]}),
        "channel.context_mean: [1, 2, 3] has shape (3,); allowed: a number or a list of 2 numbers",
    )
    refused(
        lambda: place.made(channel={"context_mean": 0.0}),
        "channel.context_cov: missing; allowed: the channel of a calibration (unfog.calibrate), or a mapping"
        " with context_mean, context_cov, noise_cov, bias_cov and, if there is one, the known bias",
    )


def test_nan_where_it_cannot_be(place: Place, live: Live) -> None:
    one, remote = live.decide([1.0, 0.0]).id, isinstance(live, RemoteProblem)
    rewards = "value: nan; allowed: a number; while there is no reward, report none"
    refused(lambda: live.reward(one, nan), rewards)
    refused(
        lambda: live.decide([inf, 0.0]),
        f"context{'[0]' if remote else '.x'}: inf; allowed: "
        + ("a finite number" if remote else f"{LOST}, at most 1e+50 in size"),
    )
    refused(
        lambda: live.decide([1.0, 0.0], noise_sd=nan),
        "noise_sd: nan; allowed: a finite number"
        if remote
        else "noise_sd: nan has a value that is not finite; allowed: zero or a positive number",
    )
    refused(
        lambda: place.made(channel={**CHANNEL, "context_mean": [nan, 1]}),
        "channel.context_mean[0]: nan; allowed: a finite number"
        if remote
        else "channel.context_mean: [nan, 1] has a value that is not finite; allowed: a number or a list of 2"
        " numbers",
    )


def test_a_second_reward_of_another_value(live: Live) -> None:
    one = live.decide([1.0, 0.0]).id
    live.reward(one, 1.0)
    refused(
        lambda: live.reward(one, 2.0),
        "value: 2.0; allowed: the reward it has, 1; several are combined where update is 'at_close'",
        ConflictError,
    )
    live.reveal(one, {"x": 1.0})
    refused(
        lambda: live.reveal(one, {"x": 2.0}),
        "context.x: 2.0; allowed: the value revealed before, 1",
        ConflictError,
    )


def test_a_reveal_before_its_decision(live: Live) -> None:
    one = live.decide([1.0, 0.0]).id
    later = one.replace("0-", "3-")
    refused(
        lambda: live.reveal(later, {"x": 1.0}),
        f"decision: {later!r}; allowed: the id of a decision that was made: this problem has 1 so far,"
        " numbered from 0",
        NotFoundError,
    )


def test_an_unknown_id(live: Live) -> None:
    one = live.decide([1.0, 0.0]).id
    allowed = "allowed: the id of a decision of this problem"
    refused(lambda: live.reward("nobody", 1.0), f"decision: 'nobody'; {allowed}", NotFoundError)
    for value in ("0", one[:-1]):
        message = f"decision: {value!r} (did you mean {one!r}?); {allowed}"
        refused(lambda value=value: live.reward(value, 1.0), message, NotFoundError)  # type: ignore[misc]
    number: Any = 0
    refused(
        lambda: live.reward(number, 1.0),
        "decision: 0 (did you mean 'd.id'?); allowed: the id of a decision",
    )


def test_a_datetime_without_a_zone(live: Live) -> None:
    meant = "2026-03-01T12:00:00 has no time zone (did you mean '2026-03-01T12:00:00Z'?)"
    for time in (datetime(2026, 3, 1, 12), "2026-03-01T12:00"):
        refused(
            lambda time=time: live.decide([1.0, 0.0], measured_at=time),  # type: ignore[misc]
            f"measured_at: {meant}; allowed: {ZONE}",
        )


def test_a_word_for_a_number(place: Place, live: Live) -> None:
    one, word = live.decide([1.0, 0.0]).id, "good"
    refused(lambda: live.decide(["one", 0.0]), f"context.x: 'one'; allowed: {LOST}")
    refused(lambda: live.decide(["1.5", 0.0]), f"context.x: '1.5' (did you mean 1.5?); allowed: {LOST}")
    call: Any = live.reward
    refused(lambda: call(one, word), "value: 'good'; allowed: a number")
    number = "a number" if isinstance(live, RemoteProblem) else "a positive number"
    refused(lambda: place.made(reward_sd="large"), f"reward_sd: 'large'; allowed: {number}")
    refused(
        lambda: place.made(channel={**CHANNEL, "noise_cov": "small"}),
        f"channel.noise_cov: 'small'; allowed: {COVARIANCE}",
    )


def test_integers_for_arms(live: Live) -> None:
    refused(lambda: live.decide([1.0, 0.0], arms=[1]), "arms: '1' (did you mean 'b'?); allowed: a, b, c")
    refused(lambda: live.pin_arm(0), "arm: '0' (did you mean 'a'?); allowed: a, b, c")


def test_a_decision_in_place_of_its_id(place: Place) -> None:
    live: Live = place.made()
    decision: Any = live.decide({"x": 1.0, "y": 0.0})
    message = "decision: Decision (did you mean 'd.id'?); allowed: the id of a decision"
    for call in (
        lambda: live.reward(decision, 1.0),
        lambda: live.reveal(decision, {"x": 1.0}),
        lambda: live.cancel(decision),
    ):
        refused(call, message)


def test_a_standard_deviation_in_place_of_a_variance(place: Place) -> None:
    refused(
        lambda: place.made(channel={**CHANNEL, "context_sd": [2.0, 1.0]}),
        "channel.context_sd: a standard deviation; allowed: context_cov, of variances: its square",
    )


def test_a_standard_deviation_given_as_a_variance_is_noted(place: Place) -> None:
    live = place.made(channel={**CHANNEL, "noise_cov": [0.5, 1000.0]})
    assert live.describe()["note"] == live.note
    assert live.note == (
        "channel.noise_cov of 'y': 1000, 0.025 % of context_cov, 4e+06. Both are variances: if 1000 is"
        " a standard deviation, noise_cov is its square, 1e+06."
    )
    for right in ([0.5, 1e6], [0.5, 0.0], [0.01, 0.5]):
        assert not place.made(channel={**CHANNEL, "noise_cov": right}).note
