"""Values written and read: the same to the bit, and no class but those that may be read."""

import json
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from tests.agents.world import KNOWN
from tests.each import each
from unfog import _codec
from unfog._codec import DecodeError, decode, digest, encode
from unfog.agents import round as rounds
from unfog.agents.catalogue import AGENTS
from unfog.agents.learn import scaled
from unfog.maths.gaussian import Gaussian
from unfog.validation import InputError

RNG = np.random.default_rng(71)


class Pair(NamedTuple):
    first: Any
    second: Any


class Outer:
    class Inner(NamedTuple):
        only: Any


class Broken(tuple[int, ...]):
    """A tuple of a class of its own that has no fields."""


def same(one: Any, other: Any) -> bool:
    """Equal in kind and to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def read(value: Any) -> Any:
    return decode(encode(value), allowed=[__name__])


def with_class(name: str) -> bytes:
    """Bytes that name a class."""
    text = json.dumps({"classes": [name], "value": {"n": [0, 1]}}).encode()
    return _codec.HEAD.pack(len(text)) + text


ODD_NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
PLAIN = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    -(10**30),
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    float("inf"),
    -float("inf"),
    float("nan"),
    ODD_NAN,
    "",
    "a \u00e9 \U0001f600 \ud800 \x00 \"'",
    [],
    (),
    {},
    [[], ((),), {"a": [1, (2.0,)], "": None}],
    {"z": 1, "a": 2},
    {"a": {"d": 1}, "t": [1], "n": (0,)},
    Pair(1, (Outer.Inner(np.float32(2)), [Pair(None, "x")])),
    scaled.State(Gaussian(np.ones(3), np.eye(3)), np.array(2.0), np.ones(3), np.zeros(3)),
]
SCALARS = [
    np.float64(0.1),
    np.float32(-0.0),
    np.float16(np.nan),
    np.bool_(True),
    np.int8(-128),
    np.uint64(2**64 - 1),
    np.intp(7),
]


@each("value", PLAIN + SCALARS)
def test_plain_values_come_back(value: Any) -> None:
    assert same(read(value), value)
    assert same(read({"in": [value, (value,)]}), {"in": [value, (value,)]})


ARRAYS: dict[str, Any] = {
    "zero-dim": np.array(3.5),
    "empty": np.empty((0,)),
    "empty in one axis": np.empty((3, 0, 2), dtype=np.float32),
    "big endian": np.arange(5, dtype=">f8") / 3,
    "half": np.linspace(-1, 1, 7).astype(np.float16),
    "bools": np.array([[True, False], [False, False]]),
    "uint8": np.arange(256, dtype=np.uint8),
    "nans": np.array([np.nan, ODD_NAN, np.inf, -np.inf, -0.0]),
    "transposed": RNG.normal(size=(3, 4)).T,
    "moved": np.moveaxis(RNG.normal(size=(2, 3, 4)), 0, 1),
    "every other": RNG.normal(size=(6, 6))[::2, 1::3],
    "backwards": RNG.normal(size=(4, 5))[::-1, ::-2],
    "broadcast": np.broadcast_to(RNG.normal(size=(1, 4, 1)), (50, 4, 30)),
    "broadcast scalar": np.broadcast_to(np.float64(2.5), (50, 50)),
    "broadcast transposed": np.broadcast_to(RNG.normal(size=(5, 3)).T, (7, 3, 5)),
    "broadcast to nothing": np.broadcast_to(np.ones((1, 3)), (0, 3)),
    "windows": np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 3),
    "column of many": RNG.normal(size=(50, 4000))[:, 0],
}


@each("name", ARRAYS)
def test_arrays_come_back_to_the_bit(name: str) -> None:
    array = ARRAYS[name]
    found = read(array)
    assert same(found, array)
    assert same(read((array, {"a": array}))[1]["a"], array)


@each("name", ARRAYS)
def test_arrays_are_contiguous_when_they_are_read(name: str) -> None:
    array = ARRAYS[name]
    for found in (read(array), *read([array] * 40)):
        assert found.flags.c_contiguous
        assert same(found, array)
        assert not np.shares_memory(found, array)


def test_arrays_that_are_read_can_be_written_to() -> None:
    found = read([np.ones(3), ARRAYS["transposed"]])
    for array in found:
        array += 1


VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | nps.arrays(
        st.sampled_from(["f8", "f4", ">i2", "u1", "?"]), nps.array_shapes(min_dims=0, max_dims=3, min_side=0)
    ),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.tuples(inner, inner).map(lambda two: Pair(*two))
    ),
    max_leaves=8,
)


@given(VALUES)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_value_comes_back(value: Any) -> None:
    assert same(read(value), value)
    assert digest(read(value)) == digest(value)


@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=32, max_size=40))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_many_values_come_back(values: list[Any], which: list[int]) -> None:
    """Of a few kinds, in any order: as a list, a tuple, by name, and as fields of many."""
    many = [values[i % len(values)] for i in which]
    for value in (many, tuple(many), {str(i): one for i, one in enumerate(many)}):
        assert same(read(value), value)
        assert digest(read(value)) == digest(value)
    rows: list[Any] = [
        (i, one, {"a": one, "b": [one] * (i % 3)}, Pair(one, None)) for i, one in enumerate(many)
    ]
    assert same(read(rows), rows)


@each("kinds", [1, 2, 40])
def test_many_arrays_are_each_in_memory_of_its_own(kinds: int) -> None:
    """Transposed or broadcast, whatever its neighbours are."""
    rng, many = np.random.default_rng(8), list[Any]()
    for i in range(64):
        kind, one = i % kinds, rng.normal(size=(3, 3 + (i % kinds) // 4))
        many.append([one, one.T, np.broadcast_to(one[0], (3, *one[0].shape)), one[:, ::2]][kind % 4])
    found = read(many)
    assert all(map(same, found, many))
    assert not any(np.shares_memory(found[0], other) for other in found[1:])
    found[0][...] = 0.0
    assert all(map(same, found[1:], many[1:]))


def test_many_are_small() -> None:
    """A row of many takes little more than its numbers."""
    rows: list[Any] = [(i, f"{i}", None, {"a": np.full(4, i)}, [], (False, True)) for i in range(1000)]
    assert len(encode(rows)) < 1000 * (32 + 16)


def test_the_memory_of_an_agent_comes_back() -> None:
    setup, memory = rounds.start(AGENTS["unfog"], KNOWN)
    assert same(read(memory), memory)
    assert digest(read(setup)) == digest(setup)


FORBIDDEN = {
    "os:stat_result": "'os' are not allowed",
    "unfogged:X": "'unfogged' are not allowed",
    "unfog._codec:X": "there is no NamedTuple",
    "unfog._codec:decode": "there is no NamedTuple",
    "unfog.validation:InputError": "there is no NamedTuple",
}


@each("name", FORBIDDEN)
def test_other_classes_are_refused(name: str) -> None:
    with pytest.raises(DecodeError, match=FORBIDDEN[name]):
        decode(with_class(name))


def test_classes_of_other_modules_must_be_allowed() -> None:
    data = encode(Pair(1, 2))
    with pytest.raises(DecodeError, match="are not allowed"):
        decode(data)
    assert decode(data, allowed=(__name__,)) == Pair(1, 2)


def local_class() -> Any:
    class Local(NamedTuple):
        x: int

    return Local(1)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a set": (lambda: {1}, "is a set"),
    "a complex number": (lambda: 1j, "is a complex"),
    "an array of text": (lambda: np.array(["a"]), "an array of <U1"),
    "an array of objects": (lambda: np.array([None]), "an array of object"),
    "an array of long doubles": (lambda: np.ones(2, np.longdouble), "an array of float"),
    "a long double": (lambda: np.longdouble("0.1"), "an array of float"),
    "a masked array": (lambda: np.ma.masked_array([1.0], [True]), "is a MaskedArray"),
    "a key that is no text": (lambda: {1: 2}, "the key 1"),
    "a class in a function": (local_class, "local_class.<locals>.Local"),
    "a tuple of its own class": (lambda: Broken((1, 2)), "Broken"),
}


@each("name", REFUSED)
def test_other_values_are_refused_by_name(name: str) -> None:
    make, told = REFUSED[name]
    with pytest.raises(InputError, match=told):
        encode([make()])


def test_digests_are_of_values_and_not_of_layouts() -> None:
    matrix = RNG.normal(size=(4, 6))
    wide = np.zeros((4, 12))
    wide[:, ::2] = matrix
    for other in (np.asfortranarray(matrix), wide[:, ::2], matrix[::-1][::-1].copy()):
        assert digest({"a": other}) == digest({"a": matrix})
    row = np.broadcast_to(matrix[0], (3, 6))
    assert digest(row) == digest(row.copy())
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_digests_tell_values_apart() -> None:
    values: list[Any] = [
        [1, 2], (1, 2), [1.0, 2], [[1], 2], [1, [2]], ["1", 2], [True, 2], Pair(1, 2), {"a": 1}, {"a": 1.0},
        0.0, -0.0, np.float64(0), np.array(0.0), np.zeros(1), np.zeros((1, 1)), np.zeros(2, np.float32),
        np.zeros(1, np.int64), float("nan"), ODD_NAN, None, "", [], (), {},
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)
