"""Each check once, with all that it must refuse; who uses it shows with one bad value that it does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.each import each
from unfog import validation
from unfog.validation import InputError

NAN, INF = float("nan"), float("inf")

# What is no array of finite numbers: every check of numbers refuses it, in these words.
NOT_NUMBERS: list[tuple[Any, str]] = [
    (NAN, "has a value that is not finite"),
    ([1.0, INF], "has a value that is not finite"),
    (-INF, "has a value that is not finite"),
    (1e51, r"has a value beyond 1e\+50"),
    (True, "is not made of numbers"),
    ([True, True], "is not made of numbers"),
    ("1", r"'1' \(did you mean 1\?\)"),
    ("one", "'one'"),
    (["1", "2"], "is not made of numbers"),
    (None, "is not made of numbers"),
    (1j, "is not made of numbers"),
    ({}, "is not made of numbers"),
    ([[1, 2], [3]], "is ragged"),
    ([1, [2, 3]], "is ragged"),
]
OF_NUMBERS: dict[str, Callable[[Any], object]] = {
    "numbers": lambda value: validation.numbers("x", value, "such"),
    "vector": lambda value: validation.vector("x", value, 2),
    "covariance": lambda value: validation.covariance("x", value, 2),
    "rows": lambda value: validation.rows("x", value, 2, "such"),
    "positive": lambda value: validation.positive("x", value),
    "not_negative": lambda value: validation.not_negative("x", value),
    "share": lambda value: validation.share("x", value),
    "arm_vector": lambda value: validation.arm_vector("x", value),
}


@pytest.mark.parametrize("check", OF_NUMBERS)
def test_what_is_no_array_of_finite_numbers_is_refused(check: str) -> None:
    for value, why in NOT_NUMBERS:
        with pytest.raises(InputError, match=rf"^x: .*{why}; allowed: \S"):
            OF_NUMBERS[check](value)


def test_numbers_are_an_array_of_floats() -> None:
    for value in (3, [1, 2], np.ones((2, 3), np.float32), np.array([1, 2], np.uint8), [], [True, 2.0]):
        found = validation.numbers("x", value, "such")
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, np.asarray(value, np.float64))


def test_one_number_stands_for_a_vector() -> None:
    assert validation.vector("x", 3, 2).tolist() == [3, 3]
    assert validation.vector("x", [1, 2], 2).tolist() == [1, 2]
    for value in ([1, 2, 3], [[1, 2], [3, 4]], []):
        with pytest.raises(InputError, match=r"^x: .* shape .*; allowed: a number or a list of 2 numbers$"):
            validation.vector("x", value, 2)


def test_a_number_or_a_list_stands_for_a_covariance() -> None:
    assert validation.covariance("x", 3, 2).tolist() == [[3, 0], [0, 3]]
    assert validation.covariance("x", [1, 2], 2).tolist() == [[1, 0], [0, 2]]
    assert validation.covariance("x", [[2, 1], [1, 2]], 2).tolist() == [[2, 1], [1, 2]]
    assert validation.covariance("x", np.diag([1e-9, 1e9]), 2).tolist() == [[1e-9, 0], [0, 1e9]]


@each(
    "value, why",
    [
        (-1.0, "has the variance -1"),
        (0, "has the variance 0"),
        ([1, -2], "has the variance -2"),
        (1e-51, "has a variance below 1e-50"),
        ([[1, 0.5], [0.2, 1]], r"not symmetric, entry \[0\]\[1\] = 0.5 but \[1\]\[0\] = 0.2"),
        ([[1, 1], [1, 1]], "is singular"),
        ([[1, 2], [2, 1]], "is not positive definite"),
        (np.eye(3), r"has shape \(3, 3\)"),
        ([1, 2, 3], r"has shape \(3,\)"),
        (np.ones((2, 2, 2)), r"has shape \(2, 2, 2\)"),
        ([], r"has shape \(0,\)"),
    ],
)
def test_what_is_no_covariance_is_refused(value: Any, why: str) -> None:
    allowed = "a positive number, 2 positive numbers or a symmetric positive definite 2 x 2 matrix"
    with pytest.raises(InputError, match=rf"^x: .*{why}.*; allowed: {allowed}$"):
        validation.covariance("x", value, 2)


def test_a_covariance_singular_to_double_precision_is_refused() -> None:
    gap = 1e-13
    validation.covariance("x", [[1.0, 1.0 - gap], [1.0 - gap, 1.0]], 2)
    gap = 3e-16
    with pytest.raises(InputError, match=r"^x: .* is singular"):
        validation.covariance("x", [[1.0, 1.0 - gap], [1.0 - gap, 1.0]], 2)


def test_rows_have_a_width() -> None:
    assert validation.rows("x", [[1, 2]], 2, "such").shape == (1, 2)
    assert validation.rows("x", np.ones((3, 2, 2)), None, "such").shape == (3, 2, 2)
    bad: list[Any] = [[1, 2], [[1, 2, 3]], np.ones((0, 2)), np.ones((1, 2, 2))]
    for value in bad:
        with pytest.raises(InputError, match=r"^x: .* has shape .*; allowed: such$"):
            validation.rows("x", value, 2, "such")
    flat: list[Any] = [[1.0], np.ones((2, 0)), 3.0]
    for value in flat:
        with pytest.raises(InputError, match=r"^x: .* has shape .*; allowed: such$"):
            validation.rows("x", value, None, "such")


def test_numbers_in_a_range() -> None:
    positive, not_negative, share = validation.positive, validation.not_negative, validation.share
    assert (positive("x", 2), not_negative("x", 0), share("x", 0.5)) == (2.0, 0.0, 0.5)
    for check, allowed, bad in (
        (positive, "a positive number", (0, -1, -1e-60, [2.0])),
        (positive, "a positive number, at least 1e-50", (1e-51,)),
        (not_negative, "zero or a positive number", (-1, -1e-60, [2.0])),
        (not_negative, "zero or a positive number, at least 1e-50", (1e-51,)),
        (share, "a positive number", (0, -1, [0.5])),
        (share, "a number between 0 and 1, such as 0.95", (1, 1.5)),
    ):
        for value in bad:
            with pytest.raises(InputError) as refused:
                check("x", value)
            assert (refused.value.field, refused.value.allowed) == ("x", allowed), (check.__name__, value)


def test_counts() -> None:
    assert [validation.count("x", one, 1, 5) for one in (1, np.int64(5))] == [1, 5]
    for value in (0, 6, -3, True, 2.0, "5", None, NAN, [1]):
        with pytest.raises(InputError, match=r"^x: .*; allowed: a whole number, at least 1 and at most 5$"):
            validation.count("x", value, 1, 5)


def test_flags() -> None:
    assert [validation.flag("x", one) for one in (True, False)] == [True, False]
    for value in (0, 1, "yes", None, np.True_):
        with pytest.raises(InputError, match=r"^x: .*; allowed: True or False$"):
            validation.flag("x", value)


def test_one_of_some_names() -> None:
    assert validation.one_of("x", "ray", ["dask", "ray"]) == "ray"
    for value in ("zeus", "Ray", "", None, 3, ["ray"]):
        with pytest.raises(InputError, match=r"^x: .*; allowed: dask, ray$"):
            validation.one_of("x", value, ["dask", "ray"])


def test_names() -> None:
    assert validation.check_name("x", "a word or two") == "a word or two"
    assert validation.check_names("x", ("a", "b")) == ["a", "b"]
    for value in ("", " ", "two\nlines", "a\0b", "x" * 201, "\ud800", 3, None, b"a"):
        with pytest.raises(InputError, match=r"^x: .*; allowed: text on one line, of 1 to 200 characters$"):
            validation.check_name("x", value)
        with pytest.raises(InputError, match=r"^x\[1\]: .*; allowed: text on one line"):
            validation.check_names("x", ["a", value])
    for listed, words in (
        ("ab", r"x: 'ab'; allowed: a list of names"),
        (3, r"x: 3; allowed: a list of names"),
        (np.array("a"), r"x: .*; allowed: a list of names"),
        ([], r"x: 0 names; allowed: 1 to 2"),
        (["a", "b", "c"], r"x: 3 names; allowed: 1 to 2"),
        (["a", "a"], r"x\[1\]: 'a'; allowed: each name once"),
    ):
        with pytest.raises(InputError, match=rf"^{words}$"):
            validation.check_names("x", listed, 2)


def test_arms_with_and_without_vectors() -> None:
    assert validation.check_arms("arms", None) == {}
    assert validation.check_arms("arms", ["a", "b"]) == {"a": None, "b": None}
    given = {"a": [1, 2], "b": None, "c": [[1], [2]]}
    assert validation.check_arms("arms", given) == given
    odd: list[Any] = [3.0, [], np.ones((2, 2, 2))]
    for vector in odd:
        with pytest.raises(InputError, match=r"^arms\.a: .*; allowed: a list of finite numbers$"):
            validation.check_arms("arms", {"a": vector, "b": None})


class Needs:
    """A contract of one method."""

    def play(self) -> None: ...


def test_what_lacks_a_method_is_refused_and_so_is_a_class() -> None:
    validation.check_contract("x", Needs(), Needs, "a game")
    with pytest.raises(InputError, match=r"^x: 3 has no play; allowed: a game$"):
        validation.check_contract("x", 3, Needs, "a game")
    with pytest.raises(InputError, match=r"^x: the class Needs; allowed: a game; of a class, an instance$"):
        validation.check_contract("x", Needs, Needs, "a game")


def test_what_is_imported_by_its_name() -> None:
    assert validation.import_object("x", "math:pi", "such") == pytest.approx(3.14159, abs=1e-5)
    with pytest.raises(
        InputError, match=r"^x: cannot import nowhere: No module named 'nowhere'; allowed: such$"
    ):
        validation.import_object("x", "nowhere:a", "such")
    with pytest.raises(InputError, match=r"^x: there is no 'pie' in math; allowed: such$"):
        validation.import_object("x", "math:pie", "such")
