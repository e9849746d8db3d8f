"""A long answer in pieces is the same JSON."""

import json
from typing import Any

import pytest

from unfog.serve.responses import LETTERS, VALUES, written

LONG: dict[str, Any] = {
    "a": [i / 7 for i in range(5 * VALUES + 1)],
    "b": {'ü"': [None, True], "none": {}, "": [[1, 2], []]},
    "c": list(range(VALUES)),
    "d": [],
    "e": [{"x": 1}] * (VALUES + 1),
    "f": [None] * (2 * VALUES),
}


def test_pieces_are_the_same_bytes_and_none_is_long() -> None:
    parts = list(written(LONG))
    assert b"".join(parts) == json.dumps(LONG, separators=(",", ":")).encode()
    assert len(parts) > 3
    assert max(map(len, parts)) < 2 * LETTERS
    assert b"".join(written([])) == b"[]"
    assert b"".join(written("text")) == b'"text"'


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        list(written({"a": [0.0] * VALUES + [float("nan")]}))
