"""Many values of one kind, written as columns: ten thousand open decisions take as long as a few hundred.

A column is a list that says what it is, and what there is of all its values together:

    c  the same for all       p  as JSON has them          f  floats, as an array    i  one by one
    t  tuples                 n  tuples of a class         d  mappings with the same keys: a column a field
    l  lists: their lengths, and a column of all their items
    a  arrays of one layout   g  several kinds: of which each is, and a column a kind

What is read is what was written, to the layout of every array: see live/codec.py.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from unfog.live.classes import DecodeError
from unfog.live.layout import AnyArray, Layout

MANY = 32  # so few are written one by one
MOST_KINDS = 16  # in one column
SMALL_INT = 2**63


class Writer(Protocol):
    """What a column needs of who writes it."""

    def tree(self, value: Any) -> Any:
        """One value."""

    def number_of(self, kind: type[Any]) -> int:
        """Of a class."""

    def layout_of(self, value: AnyArray) -> Layout:
        """How an array will lie in memory."""

    def put(self, values: Sequence[AnyArray], layout: Layout) -> Layout:
        """The bytes of arrays that lie alike."""


class Reader(Protocol):
    """What a column needs of who reads it."""

    def read(self, tree: Any) -> Any:
        """One value."""

    def expect(self, number: int) -> None:
        """Refuse more values than such a file may hold: a few bytes can say that something comes often."""

    def class_of(self, number: int, fields: int) -> Any:
        """The class of this number, with so many fields."""

    def take(self, told: Any, number: int) -> list[AnyArray]:
        """So many arrays that lie alike."""


def column(writer: Writer, values: Sequence[Any]) -> list[Any]:
    """A column of values."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return _sorted(writer, values, type) if values else ["p", []]
    (kind,) = kinds
    write = _COLUMNS.get(kind)
    if write is not None:
        return write(writer, values)
    if issubclass(kind, tuple) and not issubclass(kind, np.generic):
        return ["n", writer.number_of(kind), _fields(writer, values, range(len(values[0])))]
    return ["i", [writer.tree(value) for value in values]]


def _sorted(writer: Writer, values: Sequence[Any], kind_of: Callable[[Any], Hashable]) -> list[Any]:
    """A column for each kind; or one by one, where there are many kinds."""
    groups: dict[Hashable, list[Any]] = {}
    found = [kind_of(value) for value in values]
    places = {kind: place for place, kind in enumerate(dict.fromkeys(found))}
    if len(places) > MOST_KINDS:
        return ["i", [writer.tree(value) for value in values]]
    for kind, value in zip(found, values, strict=True):
        groups.setdefault(kind, []).append(value)
    which = np.array([places[kind] for kind in found], dtype=np.uint8)
    told = writer.put([which], Layout(which.dtype.str, which.shape, None))
    return ["g", told, [column(writer, group) for group in groups.values()]]


def _fields(writer: Writer, values: Sequence[Any], keys: Iterable[Any]) -> list[Any]:
    """A column for each of these, of tuples by place and of mappings by name."""
    return [column(writer, list(map(itemgetter(key), values))) for key in keys]


def _plain(writer: Writer, values: Sequence[Any]) -> list[Any]:  # noqa: ARG001
    first = values[0]
    return ["c", first] if values.count(first) == len(values) else ["p", list(values)]


def _ints(writer: Writer, values: Sequence[Any]) -> list[Any]:
    if min(values) > -SMALL_INT and max(values) < SMALL_INT:
        return _plain(writer, values)
    return ["i", [writer.tree(value) for value in values]]


def _floats(writer: Writer, values: Sequence[Any]) -> list[Any]:
    found = np.array(values)
    return ["f", writer.put([found], Layout(found.dtype.str, found.shape, None))]


def _tuples(writer: Writer, values: Sequence[Any]) -> list[Any]:
    if len(set(map(len, values))) > 1:
        return _sorted(writer, values, len)
    return ["t", _fields(writer, values, range(len(values[0])))]


def _lists(writer: Writer, values: Sequence[Any]) -> list[Any]:
    return ["l", column(writer, list(map(len, values))), column(writer, list(chain.from_iterable(values)))]


def _mappings(writer: Writer, values: Sequence[Any]) -> list[Any]:
    kinds = set(map(tuple, values))
    if len(kinds) > 1:
        return _sorted(writer, values, tuple)
    (keys,) = kinds
    if set(map(type, keys)) - {str}:
        return ["i", [writer.tree(value) for value in values]]  # who refuses it
    return ["d", keys, _fields(writer, values, keys)]


def _arrays(writer: Writer, values: Sequence[Any]) -> list[Any]:
    if len(set(map(_lies, values))) > 1:
        return _sorted(writer, values, _lies)
    return ["a", writer.put(values, writer.layout_of(values[0]))]


def _lies(value: AnyArray) -> Hashable:
    return value.dtype, value.shape, value.strides


_COLUMNS: Mapping[type[Any], Callable[[Writer, Sequence[Any]], list[Any]]] = {
    type(None): _plain,
    bool: _plain,
    str: _plain,
    int: _ints,
    float: _floats,
    tuple: _tuples,
    list: _lists,
    dict: _mappings,
    np.ndarray: _arrays,
}


def values(reader: Reader, told: Any, number: int) -> list[Any]:
    """So many values of a column."""
    reader.expect(number)
    kind, *rest = told
    found: list[Any] = _VALUES[kind](reader, number, *rest)
    if len(found) != number:
        raise DecodeError(f"a column has {len(found)} values, not {number}")
    return found


def _rows(reader: Reader, number: int, told: Any) -> list[tuple[Any, ...]]:
    """The fields of every value."""
    if not told:
        return [()] * number
    return list(zip(*(values(reader, one, number) for one in told), strict=True))


def _named(reader: Reader, number: int, which: int, told: Any) -> list[Any]:
    kind = reader.class_of(which, len(told))
    return [tuple.__new__(kind, row) for row in _rows(reader, number, told)]


def _listed(reader: Reader, number: int, lengths: Any, told: Any) -> list[Any]:
    sizes = values(reader, lengths, number)
    if min(sizes, default=0) < 0:
        raise DecodeError(f"a list of {min(sizes)} items")
    items = values(reader, told, sum(sizes))
    ends = np.cumsum(sizes, dtype=np.intp).tolist()
    return [items[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _mapped(reader: Reader, number: int, keys: Any, told: Any) -> list[Any]:
    return [dict(zip(keys, row, strict=True)) for row in _rows(reader, number, told)]


def _floated(reader: Reader, number: int, told: Any) -> list[Any]:  # noqa: ARG001
    found: list[Any] = reader.take(told, 1)[0].tolist()
    return found


def _mixed(reader: Reader, number: int, told: Any, groups: Any) -> list[Any]:
    which = reader.take(told, 1)[0].tolist()
    if len(which) != number:
        raise DecodeError(f"of {number} values, {len(which)} have a kind")
    columns = [iter(values(reader, one, which.count(place))) for place, one in enumerate(groups)]
    return [next(columns[place]) for place in which]


def _same(reader: Reader, number: int, told: Any) -> list[Any]:  # noqa: ARG001
    if isinstance(told, list | dict):
        raise DecodeError("a value that may change stands for many")
    return [told] * number


def _one_by_one(reader: Reader, number: int, told: Any) -> list[Any]:  # noqa: ARG001
    return [reader.read(one) for one in told]


_VALUES: Mapping[str, Callable[..., list[Any]]] = {
    "a": lambda reader, number, told: reader.take(told, number),
    "c": _same,
    "d": _mapped,
    "f": _floated,
    "g": _mixed,
    "i": _one_by_one,
    "l": _listed,
    "n": _named,
    "p": lambda *given: given[2],
    "t": lambda reader, number, told: _rows(reader, number, told),
}
