"""Lines of decisions, one for each reading."""

import numpy as np
import pytest

import unfog
from unfog.adapters.wrap import Waiting

HERE, THERE = np.array([1.0, np.nan, 0.0]), np.array([1.0, 2.0, 0.0])


def filled(most: int = 10) -> Waiting[str]:
    waiting: Waiting[str] = Waiting(most)
    for reading, item in ((HERE, "a"), (THERE, "b"), (HERE, "c"), (HERE, "d"), (THERE, "e")):
        waiting.add(reading, item)
    return waiting


def test_first_in_first_out_for_each_reading() -> None:
    waiting = filled()
    assert list(waiting.line(HERE)) == ["a", "c", "d"]
    assert [waiting.take(HERE), waiting.take(THERE), waiting.take(HERE)] == ["a", "b", "c"]
    assert len(waiting) == 2
    assert [waiting.take(HERE), waiting.take(HERE), waiting.take(THERE)] == ["d", None, "e"]
    assert len(waiting) == 0
    assert waiting._queues == {}


def test_one_that_does_not_fit_keeps_its_place() -> None:
    waiting = filled()
    assert waiting.take(HERE, lambda item: item > "b") == "c"
    assert waiting.take(HERE, lambda item: item > "x") is None
    assert list(waiting.line(HERE)) == ["a", "d"]


def test_the_oldest_of_all_is_forgotten() -> None:
    """Whatever its line: also where an earlier one of a younger line was taken."""
    waiting = filled(most=4)
    assert [list(waiting.line(reading)) for reading in (HERE, THERE)] == [["c", "d"], ["b", "e"]]
    waiting.take(HERE)
    waiting.add(HERE, "f")
    waiting.add(HERE, "g")
    assert [list(waiting.line(reading)) for reading in (HERE, THERE)] == [["d", "f", "g"], ["e"]]


def test_equal_numbers_are_one_reading() -> None:
    other = np.frombuffer(np.array([0x7FF8000000000001], np.uint64).tobytes(), float)
    waiting = filled()
    assert waiting.take(np.array([1.0, other[0], -0.0])) == "a"


def test_at_least_one_is_kept() -> None:
    with pytest.raises(unfog.InputError, match=r"^remember: 0"):
        Waiting(0)
