"""Buckets of tokens, against a count by hand."""

import pytest

from unfog.serve.auth import Buckets
from unfog.serve.errors import ServiceError


def test_so_many_a_second_and_a_seconds_worth_at_once() -> None:
    now = [0.0]
    buckets = Buckets(4.0, clock=lambda: now[0])
    taken = 0
    for step in range(41):
        now[0] = step / 16  # four times as often as tokens come
        try:
            buckets.take("ann")
            taken += 1
        except ServiceError:
            continue
    assert taken == 4 + 10  # a full bucket, and what came in 2.5 seconds


def test_a_slow_rate_says_when_to_come_again() -> None:
    buckets = Buckets(0.1, clock=lambda: 0.0)
    buckets.take("ann")
    with pytest.raises(ServiceError) as refused:
        buckets.take("ann")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "10"})


def test_callers_that_asked_longest_ago_are_forgotten() -> None:
    buckets = Buckets(1.0, most=2, clock=lambda: 0.0)
    for name in ("ann", "bob"):
        buckets.take(name)
    with pytest.raises(ServiceError):
        buckets.take("ann")
    buckets.take("cy")  # bob has to go
    buckets.take("bob")
    assert len(buckets._left) == 2
