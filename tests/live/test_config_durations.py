"""Spans of time as people write them."""

from datetime import timedelta

import pytest

from unfog.live.config import seconds
from unfog.validation import InputError


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("45s", 45.0),
        ("30m", 1800.0),
        (" 1.5 h", 5400.0),
        ("7d", 604_800.0),
        ("2w", 1_209_600.0),
        (90, 90.0),
        (0.5, 0.5),
        (timedelta(minutes=2), 120.0),
        (None, None),
    ],
)
def test_spans(written: object, found: float | None) -> None:
    assert seconds("wait", written) == found


@pytest.mark.parametrize(
    "bad", ["", "7", "m", "-3m", "3 months", 0, -1, True, float("nan"), float("inf"), [], "1e9w"]
)
def test_what_is_no_span_is_refused(bad: object) -> None:
    with pytest.raises(InputError, match=r"^wait: "):
        seconds("wait", bad)
