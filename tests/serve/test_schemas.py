"""JSON is read strictly: what Python would let pass is refused, each in a sentence."""

import json

import pytest

from unfog.serve.errors import InvalidJSONError
from unfog.serve.schemas import DEEPEST, read

WRONG = [
    (b'{"x": NaN}', "NaN is no number of JSON"),
    (b'{"x": -Infinity}', "-Infinity is no number of JSON"),
    (b'{"x": 1e999}', "1e999 is too large for a number"),
    (b'{"x": 1, "y": 2, "x": 3}', "the name 'x' stands twice"),
    (b'{"x": "\xff"}', "it is not UTF-8 at byte 7"),
    (b"[" * 100_000, f"it is nested more than {DEEPEST} deep"),
    (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), f"it is nested more than {DEEPEST} deep"),
    (b'{"x": 1', "it is not JSON"),
    (b"", "it is not JSON"),
]


def test_what_is_refused() -> None:
    for body, said in WRONG:
        with pytest.raises(InvalidJSONError, match=f"^{said}"):
            read(body)


def test_what_is_read() -> None:
    told = {"a": [1, 2.5, None, True, "é"], "b": {"c": [[0.0]]}}
    assert read(json.dumps(told).encode()) == told
    deep = b"[" * DEEPEST + b"]" * DEEPEST
    assert json.dumps(read(deep)).encode() == deep


def test_a_name_that_stands_twice_among_very_many_is_found_in_one_pass() -> None:
    names = [f"n{i}" for i in range(300_000)]  # to compare each with all others would take an hour
    body = "{" + ",".join(f'"{name}":1' for name in [*names, names[-1]]) + "}"
    with pytest.raises(InvalidJSONError, match=r"^the name 'n299999' stands twice$"):
        read(body.encode())
