"""Mistakes that are easily made get an answer that says what was probably meant, word for word."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.live.conformance.places import PLACES, Live, Place
from unfog.validation import InputError

CHANNEL = {"context_mean": [1.0, -2.0], "noise_cov": 0.5, "bias_cov": 0.3}


@pytest.fixture(scope="module", params=["file", "service"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("mistakes")
    kind: Callable[[Path], AbstractContextManager[Place]] = PLACES[request.param]
    with kind(folder) as opened:
        yield opened


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


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
