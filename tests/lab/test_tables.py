"""Tables of at most 80 columns."""

import numpy as np

from tests.each import each
from unfog.lab.tables import (
    GLUE,
    align,
    columns,
    counted,
    digits,
    files,
    notes,
    percent,
    plus_minus,
    prose,
    wrap,
)


@each("error, places", [(0.049, 3), (0.51, 2), (9.9, 1), (12.0, 0), (3e4, 0), (1e-12, 6)])
def test_two_digits_of_the_error_are_printed(error: float, places: int) -> None:
    assert digits(np.array([error, np.nan, 0.0])) == places


def test_numbers_with_their_reach() -> None:
    assert plus_minus(-1234.5678, 0.25, 2) == "-1,234.57 ± 0.25"
    assert plus_minus(0.5, 0.1, 1, "+") == "+0.5 ± 0.1"
    assert plus_minus(np.nan, 0.1, 1) == "–"
    assert plus_minus(0.5, np.nan, 1) == "0.5"


@each("letters", [3, 20, 40, 200])
@each("width", [4, 13, 30])
@each("count", [1, 5, 12])
def test_every_cell_is_there_and_no_line_is_too_long(letters: int, width: int, count: int) -> None:
    names = [f"{row}{'n' * (letters - 1)}" for row in range(3)]
    titles = [f"t{i}" for i in range(count)]
    cells = [[f"c{row}-{i}".rjust(width, ".") for i in range(count)] for row in range(3)]
    found = columns("head", names, titles, cells)
    assert max(map(len, found.splitlines())) <= 80
    words = found.split()
    for wanted in (*titles, *(cell for row in cells for cell in row)):
        assert words.count(wanted) == 1
    whole = "".join(found.splitlines())
    assert all(name in whole for name in names)


def test_rows_stay_in_line_below_long_names() -> None:
    found = columns("policy", ["a" * 60, "b"], ["value", "gain"], [["1.0 ± 0.1" * 2, "2"], ["3", "4"]])
    head, name, first, second = found.splitlines()
    assert name == "a" * 60
    assert len(head) == len(first) == len(second)
    assert second.startswith("b ")


def test_notes_are_wrapped() -> None:
    said = notes(["word " * 40 + "end.", "two"])
    assert max(map(len, said.splitlines())) <= 80
    assert said.startswith("- word")
    assert said.splitlines()[-1] == "- two"


def test_paths_stand_alone_where_a_line_would_be_too_long() -> None:
    assert files("figure", ["a.svg", "b.png"]) == "figure: a.svg, b.png"
    assert files("figure", []) == "figure: none"
    long = [f"figures/{'x' * 40}.{kind}" for kind in ("svg", "png")]
    assert files("figure", long).splitlines() == ["figure:", *long]


def test_prose_is_in_80_columns() -> None:
    found = prose("A first sentence, which is" + " long" * 30, "and a second.")
    assert max(map(len, found)) <= 80
    assert " ".join(found).endswith("long and a second.")


def test_lines_break_where_they_may() -> None:
    text = f"{'a' * 70} well-known 95{GLUE}% of it {'b' * 90}"
    assert wrap(text, "  ", long_words=False) == ["a" * 70, "  well-known 95 % of it", f"  {'b' * 90}"]
    assert wrap(text, "  ", hyphens=True)[0] == f"{'a' * 70} well-"
    assert max(map(len, wrap(text, first="- "))) <= 80
    assert (counted(1, "trial"), counted(2, "trial")) == ("1 trial", "2 trials")
    assert (percent(0.59), percent(0.0304, 1)) == ("59 %", "3.0 %")


def test_columns_are_padded_to_one_width() -> None:
    rows = [["a", "bb", "1"], ["aaa", "b", "10"]]
    assert align(rows) == ["a    bb   1", "aaa   b  10"]
    assert align(rows, left=2) == ["a    bb   1", "aaa  b   10"]
