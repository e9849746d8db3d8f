"""A loop that is one test: every value is tried, and what fails says which it was."""

import pytest

from tests.each import each


@pytest.fixture
def other() -> int:
    return 5


@each("first", [1, 2])
def test_fixtures_are_given(first: int, other: int) -> None:
    assert other - first in (3, 4)


def test_every_value_meets_every_other() -> None:
    tried = []

    @each("one", [1, 2])
    @each("two, three", [("a", 3), ("b", 4)])
    def test(one: int, two: str, three: int) -> None:
        tried.append((one, two, three))

    test()
    assert tried == [(1, "a", 3), (1, "b", 4), (2, "a", 3), (2, "b", 4)]


def test_what_fails_says_with_which_value() -> None:
    @each("seed", [1, 2])
    def fails(seed: int) -> None:
        assert seed == 1

    @each("word", ["fine"])
    def refuses_nothing(word: str) -> None:
        with pytest.raises(ValueError, match=word):
            pass

    with pytest.raises(AssertionError) as failed:
        fails()
    assert failed.value.__notes__ == ["with seed = 2"]
    with pytest.raises(pytest.fail.Exception) as missed:
        refuses_nothing()
    assert missed.value.__notes__ == ["with word = 'fine'"]


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values of seed"):
        each("seed", [])
