"""Nested values to bytes and back, without pickle: reading a file runs no code of the file's.

    head    length of the tree
    tree    JSON: what is not an array as it is, an array as its kind and shape; classes of tuples by name
    arrays  their bytes, one after the other

There is no checksum and no version: those who keep the bytes have both beside them (live/snapshot.py). The
tuples that may be written and read are NamedTuples, by the module that holds them.

Many values of one kind are written as columns, so that ten thousand open decisions take as long as a few
hundred. A column is a list that says what it is, and what there is of all its values together:

    c  the same for all       p  as JSON has them          f  floats, as an array    i  one by one
    t  tuples                 n  tuples of a class         d  mappings with the same keys: a column a field
    l  lists: their lengths, and a column of all their items
    a  arrays of one shape    g  several kinds: of which each is, and a column a kind

Arrays come back C-contiguous, whatever layout they had.
"""

import json
import struct
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from itertools import chain
from math import isfinite, prod
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unfog.validation import InputError

HEAD = struct.Struct("<Q")  # bytes of the tree
HOUSE = "unfog."  # classes of its modules may be read
ALLOWED = (
    "None, True, False, whole numbers, floats, text, lists, tuples, NamedTuples that a module holds, "
    "mappings with text for keys, NumPy arrays and numbers of kind b, i, u or f and of at most 8 bytes"
)
MANY = 32  # so few are written one by one
MOST_KINDS = 16  # in one column

AnyArray: TypeAlias = npt.NDArray[Any]


class DecodeError(ValueError):
    """Bytes with a class that may not be read."""


def encode(value: Any) -> bytes:
    """The bytes of a value; InputError where it holds what cannot be written."""
    return Writer(canonical=False).written(value)


def digest(value: Any) -> str:
    """SHA-256 of what a value holds: the same for equal values, whatever their layout in memory.

    Kinds of numbers matter, and so do the bits of floats; the order of a mapping's keys does not.
    """
    return sha256(Writer(canonical=True).written(value)).hexdigest()


def decode(data: bytes, allowed: Sequence[str] = ()) -> Any:
    """The value of the bytes; classes of tuples from unfog or from the modules that are allowed."""
    (tree,), start = HEAD.unpack_from(data), HEAD.size
    told = json.loads(data[start : start + tree])
    classes = [readable(name, tuple(allowed)) for name in told["classes"]]
    return Reader(classes, memoryview(data)[start + tree :]).read(told["value"])


class Writer:
    """Collects the arrays and the classes of a value while its tree is made."""

    def __init__(self, *, canonical: bool) -> None:
        self.canonical = canonical
        self.arrays: list[bytes] = []
        self.classes: dict[type, int] = {}
        self.kinds: dict[type, Callable[[Any], Any]] = {
            type(None): _same,
            bool: _same,
            str: _same,
            int: _same,
            float: _float,
            list: self._list,
            tuple: lambda value: {"t": self._list(value)},
            dict: self._mapping,
            np.ndarray: self._array,
        }

    def written(self, value: Any) -> bytes:
        """Head, tree and arrays."""
        tree = self.tree(value)
        told = {"classes": [name_of(kind) for kind in self.classes], "value": tree}
        text = json.dumps(told, separators=(",", ":"), allow_nan=False).encode("ascii")
        raw = b"".join(self.arrays)
        return HEAD.pack(len(text)) + text + raw

    def tree(self, value: Any) -> Any:
        """What JSON can hold of a value."""
        kind: Any = type(value)
        write = self.kinds.get(kind)
        if write is not None:
            return write(value)
        if isinstance(value, np.generic):
            return {"s": self._array(np.asarray(value))["a"]}
        if isinstance(value, tuple):
            return {"n": [self.number_of(kind), *map(self.tree, value)]}
        raise InputError("value", f"{value!r} is a {kind.__name__}", ALLOWED)

    def number_of(self, kind: Any) -> int:
        """The number of a class of tuples in this file."""
        return self.classes.setdefault(writable(kind), len(self.classes))

    def _list(self, value: Sequence[Any]) -> Any:
        if self._is_long(value):
            return {"m": [len(value), column(self, value)]}
        return [self.tree(item) for item in value]

    def _is_long(self, value: Collection[Any]) -> bool:
        return not self.canonical and len(value) >= MANY

    def _mapping(self, value: dict[Any, Any]) -> dict[str, Any]:
        strange = [key for key in value if type(key) is not str]
        if strange:
            raise InputError("value", f"a mapping with the key {strange[0]!r}", ALLOWED)
        if self._is_long(value):
            return {"e": [list(value), column(self, list(value.values()))]}
        items = sorted(value.items()) if self.canonical else value.items()
        return {"d": {key: self.tree(item) for key, item in items}}

    def _array(self, value: AnyArray) -> dict[str, Any]:
        return {"a": self.put([value])}

    def put(self, values: Sequence[AnyArray]) -> list[Any]:
        """The kind and shape of arrays that are alike in both; their bytes are kept."""
        kind = values[0].dtype
        if kind.kind not in "biuf" or kind.itemsize > 8:  # of longer floats some bytes may hold anything
            raise InputError("value", f"an array of {kind}", ALLOWED)
        self.arrays += [value.tobytes() for value in values]
        return [kind.str, values[0].shape]


def _same(value: Any) -> Any:
    return value


def _float(value: float) -> Any:
    return value if isfinite(value) else {"f": struct.pack("<d", value).hex()}


class Reader:
    """Makes a value of its tree, and takes its arrays in the order in which they were written."""

    def __init__(self, classes: list[type], arrays: memoryview) -> None:
        self.classes, self.arrays, self.place = classes, arrays, 0

    def read(self, tree: Any) -> Any:
        """The value of a tree."""
        if isinstance(tree, list):
            return [self.read(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        ((kind, told),) = tree.items()
        return _READERS[kind](self, told)

    def plain(self, told: Any) -> Any:
        """A plain one."""
        return tuple(self.read(told))

    def many(self, told: Any) -> Any:
        """A long list."""
        number, column = told
        return values(self, column, number)

    def many_by_name(self, told: Any) -> Any:
        """A mapping of many."""
        names, column = told
        return dict(zip(names, values(self, column, len(names)), strict=True))

    def mapping(self, told: Any) -> Any:
        """With its keys in the order they had."""
        return {key: self.read(item) for key, item in told.items()}

    def named(self, told: Any) -> Any:
        """One with names, of its class; no function of the class is called."""
        number, *fields = told
        return tuple.__new__(self.classes[number], [self.read(item) for item in fields])

    def scalar(self, told: Any) -> Any:
        """A number of NumPy's."""
        return self.array(told)[()]

    def array(self, told: Any) -> AnyArray:
        """A copy."""
        return self.take(told, 1)[0]

    def take(self, told: Any, number: int) -> list[AnyArray]:
        """Copies of so many, of this kind and shape."""
        kind, shape = np.dtype(told[0]), tuple(told[1])
        size = prod(shape) * number
        values: AnyArray = np.frombuffer(self.arrays, kind, size, self.place) if size else np.empty(0, kind)
        self.place += size * kind.itemsize
        values = values.reshape(number, *shape)
        return [values[i, ...].copy() for i in range(number)]


_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "a": Reader.array,
    "d": Reader.mapping,
    "e": Reader.many_by_name,
    "f": lambda _, told: struct.unpack("<d", bytes.fromhex(told))[0],
    "m": Reader.many,
    "n": Reader.named,
    "s": Reader.scalar,
    "t": Reader.plain,
}


def column(writer: Writer, values: Sequence[Any]) -> list[Any]:
    """Write values as a column."""
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
    return ["g", writer.put([which]), [column(writer, group) for group in groups.values()]]


def _fields(writer: Writer, values: Sequence[Any], keys: Iterable[Any]) -> list[Any]:
    """A column for each of these, of tuples by place and of mappings by name."""
    return [column(writer, list(map(itemgetter(key), values))) for key in keys]


def _plain(writer: Writer, values: Sequence[Any]) -> list[Any]:  # noqa: ARG001
    first = values[0]
    return ["c", first] if values.count(first) == len(values) else ["p", list(values)]


def _floats(writer: Writer, values: Sequence[Any]) -> list[Any]:
    return ["f", writer.put([np.array(values)])]


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
    if len(set(map(_form, values))) > 1:
        return _sorted(writer, values, _form)
    return ["a", writer.put(values)]


def _form(value: AnyArray) -> Hashable:
    return value.dtype, value.shape


_COLUMNS: Mapping[type[Any], Callable[[Writer, Sequence[Any]], list[Any]]] = {
    type(None): _plain,
    bool: _plain,
    str: _plain,
    int: _plain,
    float: _floats,
    tuple: _tuples,
    list: _lists,
    dict: _mappings,
    np.ndarray: _arrays,
}


def values(reader: Reader, told: Any, number: int) -> list[Any]:
    """Read so many values of a column."""
    kind, *rest = told
    found: list[Any] = _VALUES[kind](reader, number, *rest)
    return found


def _rows(reader: Reader, number: int, told: Any) -> list[tuple[Any, ...]]:
    """The fields of every value."""
    if not told:
        return [()] * number
    return list(zip(*(values(reader, one, number) for one in told), strict=True))


def _named(reader: Reader, number: int, which: int, told: Any) -> list[Any]:
    kind: Any = reader.classes[which]
    return [tuple.__new__(kind, row) for row in _rows(reader, number, told)]


def _listed(reader: Reader, number: int, lengths: Any, told: Any) -> list[Any]:
    sizes = values(reader, lengths, number)
    items = values(reader, told, sum(sizes))
    ends = np.cumsum(sizes, dtype=np.intp).tolist()
    return [items[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _mapped(reader: Reader, number: int, keys: Any, told: Any) -> list[Any]:
    return [dict(zip(keys, row, strict=True)) for row in _rows(reader, number, told)]


def _floated(reader: Reader, number: int, told: Any) -> list[Any]:  # noqa: ARG001
    found: list[Any] = reader.take(told, 1)[0].tolist()
    return found


def _mixed(reader: Reader, number: int, told: Any, groups: Any) -> list[Any]:  # noqa: ARG001
    which = reader.take(told, 1)[0].tolist()
    columns = [iter(values(reader, one, which.count(place))) for place, one in enumerate(groups)]
    return [next(columns[place]) for place in which]


def _one_by_one(reader: Reader, number: int, told: Any) -> list[Any]:  # noqa: ARG001
    return [reader.read(one) for one in told]


_VALUES: Mapping[str, Callable[..., list[Any]]] = {
    "a": lambda reader, number, told: reader.take(told, number),
    "c": lambda _, number, told: [told] * number,
    "d": _mapped,
    "f": _floated,
    "g": _mixed,
    "i": _one_by_one,
    "l": _listed,
    "n": _named,
    "p": lambda *given: given[2],
    "t": lambda reader, number, told: _rows(reader, number, told),
}


def name_of(kind: type[Any]) -> str:
    """A class as it is written: `module:name`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def fields_of(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a NamedTuple; none for any other class."""
    found = getattr(kind, "_fields", ())
    return found if issubclass(kind, tuple) and isinstance(found, tuple) else ()


@lru_cache(maxsize=1024)
def writable(kind: type[Any]) -> type[Any]:
    """A class of tuples that will be found again by its name."""
    if not (fields_of(kind) and _found(kind.__module__, kind.__qualname__) is kind):
        raise InputError("value", f"a tuple of the class {name_of(kind)}", ALLOWED)
    return kind


@lru_cache(maxsize=1024)
def readable(name: str, allowed: tuple[str, ...]) -> type[Any]:
    """The class of that name, if it may be read."""
    module, _, path = name.partition(":")
    if not module.startswith(HOUSE) and module not in allowed:
        raise DecodeError(f"{name}: classes of the module {module!r} are not allowed")
    import_module(module)
    found = _found(module, path)
    if not (isinstance(found, type) and fields_of(found)):
        raise DecodeError(f"{name}: there is no NamedTuple of that name")
    return found


def _found(module: str, path: str) -> Any:
    """What a module that is loaded holds under a dotted name, or None."""
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = vars(found).get(name) if isinstance(found, type(sys) | type) else None
    return found
