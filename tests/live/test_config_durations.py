"""Spans of time as people write them."""

from datetime import timedelta

import pytest

from unfog.live.config import seconds
from unfog.validation import InputError


def test_spans() -> None:
    written = ["45s", "30m", " 1.5 h", "7d", "2w", 90, 0.5, timedelta(minutes=2), None]
    found = [seconds("reward_window", one) for one in written]
    assert found == [45.0, 1800.0, 5400.0, 604_800.0, 1_209_600.0, 90.0, 0.5, 120.0, None]


def test_what_is_no_span_is_refused() -> None:
    no_spans: list[object] = ["", "7", "m", "-3m", "3 months", 0, -1, True, float("nan"), float("inf"), []]
    for bad in (*no_spans, "1e9w"):
        with pytest.raises(InputError, match=r"^reward_window: "):
            seconds("reward_window", bad)
