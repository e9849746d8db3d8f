"""Cells of tables as numbers, times and names, whatever holds them; each refusal names its place."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.each import each
from unfog import _table
from unfog._table import Column, columns, csv_rows, labels, matrix, number_rows
from unfog.validation import InputError

FIRST, SECOND = date(2024, 1, 1), date(2024, 1, 2)
GAPS = [None, "", " ", "NA", "nan", "<NA>"]


def column(cells: Any, **more: Any) -> Column:
    return columns({"x": cells}, ["x"], **more)["x"]


@each(
    "cells",
    [
        [1, 2.5, None],
        ["1", " 2.5 ", "NA"],
        np.array([1, 2.5, np.nan]),
        np.array(["1", "2.5", ""]),
        pd.Series([1, 2.5, None]),
        pd.Series([1, 2.5, pd.NA], dtype="Float64"),
        pd.Series(["1", "2.5", pd.NA], dtype="string"),
    ],
)
def test_numbers_whatever_holds_them(cells: Any) -> None:
    np.testing.assert_array_equal(column(cells).numbers(), [1.0, 2.5, np.nan])


def test_what_is_empty_is_for_the_column_to_say() -> None:
    assert np.isnan(column(GAPS).numbers()).all()
    assert column(GAPS).names()[0].tolist() == [-1] * len(GAPS)
    for cells in (["1", "", None, "NA"], ["1", " ", None, "NA"]):
        with pytest.raises(InputError, match=r"^row 4, x: 'NA'; allowed: a number, or nothing"):
            column(cells, empty=frozenset({""})).numbers()


TIMES: dict[str, Any] = {
    "text": ["2024-03-01T12:00:00.5Z", "2024-03-01T14:30+02:00", None],
    "datetimes": [datetime(2024, 3, 1, 12, 0, 0, 500_000), datetime(2024, 3, 1, 12, 30, tzinfo=UTC), None],
    "datetime64": np.array(["2024-03-01T12:00:00.5", "2024-03-01T12:30", "NaT"], "datetime64[ns]"),
    "numbers": ["1709294400.5", 1709296200, ""],
}


@each("kind", TIMES)
def test_times_are_seconds_since_1970(kind: str) -> None:
    found = column(TIMES[kind])
    np.testing.assert_array_equal(found.times(), [1709294400.5, 1709296200.0, np.nan])
    assert found.dated is (kind != "numbers")


@each(
    "cells, words",
    [
        (
            [1.0, True],
            "row 2, x: True; allowed: a number, or nothing where it is not known; 1 for true and 0",
        ),
        (["1", "false"], "row 2, x: 'false'; allowed: a number, .*; 1 for true and 0 for false"),
        ([1.0, np.True_], "row 2, x: .*True.*; allowed: a number"),
        (["1", "one"], "row 2, x: 'one'; allowed: a number, or nothing where it is not known$"),
        ([1.0, [2.0]], r"row 2, x: \[2.0\]; allowed: a number"),
        ([[1.0, 2.0], 3.0], r"row 1, x: \[1.0, 2.0\]; allowed: a number"),
        (np.ones((2, 2)), r"x: .*, of shape \(2, 2\); allowed: a list with a value for each row"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(cells: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"^{words}"):
        column(cells).numbers()


@each("cells", [[0, "2024-01-01"], ["2024-01-01", 0], ["noon"], [None, "2024-13-01", 1]])
def test_times_are_all_of_one_kind(cells: list[Any]) -> None:
    with pytest.raises(InputError, match=r"^row \d, x: .*; allowed: .*; numbers in all rows, or dates"):
        column(cells).times()


def test_times_never_go_back() -> None:
    for cells, words in (
        ([1, 3, 2], "row 3, x: 2 after 3; allowed: times that never go back"),
        (["2024-01-02", "2024-01-01"], "row 2, x: 2024-01-01 after 2024-01-02"),
        ([1, None, 2], "row 2, x: nothing; allowed: a number, or a date"),
    ):
        found = column(cells)
        with pytest.raises(InputError, match=f"^{words}"):
            _table.check_times(found.times(), found.where, found.name, found.cells)


@each(
    "cells",
    [
        [7, 8, 7],
        [7.0, 8.0, 7.0],
        ["7", "8 ", " 7"],
        np.array([7, 8, 7]),
        pd.Series([7.0, 8.0, 7.0], dtype=object),
    ],
)
def test_a_whole_number_is_one_name_however_it_is_written(cells: Any) -> None:
    places, names = column(cells).names()
    assert (places.tolist(), names) == ([0, 1, 0], ["7", "8"])


def test_rows_that_are_left_keep_their_place() -> None:
    found = Column("x", np.array(["1", "?", "3", "!"], object), number_rows(4, 2))
    assert found.kept(np.array([True, False, True, False])).numbers().tolist() == [1.0, 3.0]
    with pytest.raises(InputError, match=r"^row 5, x: '!'"):
        found.kept(np.array([True, False, False, True])).numbers()


def test_columns_are_of_one_length() -> None:
    with pytest.raises(InputError, match=r"^b: 1 rows; allowed: 2, as many as the other columns have"):
        columns({"a": [1, 2], "b": [1], "c": [3, 4]}, ["a", "b", "c"])


def test_rows_of_a_file_are_counted_as_one_sees_them() -> None:
    names, rows = csv_rows(["a; b\n", "1;2\n", "\n", '"3\n', 'x";4\n'], ";")
    assert (names, list(rows)) == (["a", "b"], [(2, ["1", "2"]), (4, ["3\nx", "4"])])
    assert csv_rows([])[0] == []
    for lines, words in (
        (["a,b\n", "\n", "1\n"], "log.csv, row 3: 1 values; allowed: 2 values, one for each column"),
        (["a\n", f"{'x' * 200_000}\n"], "log.csv, line 2: field larger"),
    ):
        with pytest.raises(InputError, match=f"^{words}"):
            list(csv_rows(lines, source="log.csv")[1])


def test_a_matrix_has_gaps_and_nothing_but_numbers() -> None:
    gaps = [[1.0, np.nan], [np.nan, 4.0]]
    masked = np.ma.MaskedArray([[1, 9], [9, 4]], [[False, True], [True, False]])
    frame = pd.DataFrame([[1, None], [None, 4]], dtype="Int64")
    for given in (gaps, masked, frame):
        np.testing.assert_array_equal(matrix("m", given, "numbers"), gaps)
    np.testing.assert_array_equal(matrix("m", [[1, None], [None, "4"]], "numbers", coerce=True), gaps)
    for bad, words in (
        ([["1"]], "is made of <U1, not of numbers"),
        ([[None, 1]], "is made of object"),
        ([[True]], "is made of bool"),
        ([[1], [1, 2]], "is ragged"),
        ([1.0], r"has shape \(1,\)"),
        ([[1.0, np.inf]], "row 0, column 1 is inf"),
    ):
        with pytest.raises(InputError, match=f"^m: {words}"):
            matrix("m", bad, "numbers")


@each(
    "given, names",
    [
        ([3, 1, 3, 2], [1, 3]),
        (["b", "a", "b", "c"], ["a", "b"]),
        (np.array(["b", 1, "b", 2], object), ["b", 1]),
        (np.array([2.5, 1.5, 2.5, np.nan]), [1.5, 2.5]),
        (np.array(["2024-01-02", "2024-01-01", "2024-01-02", "NaT"], "datetime64[D]"), [FIRST, SECOND]),
    ],
)
def test_labels_of_the_rows_that_are_kept(given: Any, names: list[Any]) -> None:
    found, places = labels("groups", given, np.array([True, True, True, False]), "a label for each")
    assert found == names
    assert [found[i] for i in places] == np.asarray(given)[:3].tolist()


@each(
    "given", [[1.0, np.nan], np.array(["a", None], object), np.array(["2024-01-01", "NaT"], "datetime64[ns]")]
)
def test_a_label_that_is_missing_is_refused_with_its_row(given: Any) -> None:
    with pytest.raises(InputError, match=r"^groups: row 1 has (nan|None); allowed: a label"):
        labels("groups", given, np.ones(2, bool), "a label")
    labels("groups", given, np.array([True, False]), "a label")
