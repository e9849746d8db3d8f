"""Nested values to bytes and back, without pickle: reading a file runs no code of the file's.

    head    length of the tree
    tree    JSON: values as they are, arrays as their kind and shape; classes of tuples by name
    arrays  their bytes, one after the other

There is no checksum and no version: whoever stores the bytes adds both (live/snapshot.py). Besides plain
tuples, NamedTuples that a module defines can be written and read.

Many values of one kind are written as columns, so that ten thousand open decisions take as long as a few
hundred. A column is a list of its kind and the contents of all its values:

    c  the same for all       p  as JSON has them          f  floats, as an array    i  one by one
    t  tuples                 n  tuples of a class         d  mappings with the same keys: a column a field
    l  lists: their lengths, and a column of all their items
    a  arrays of one shape    g  several kinds: the kind of each, and a column for each kind

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
HOUSE = "unfog."  # classes of these modules may be read
ALLOWED = (
    "None, True, False, whole numbers, floats, text, lists, tuples, NamedTuples that a module holds, "
    "mappings with text for keys, NumPy arrays and numbers of kind b, i, u or f and of at most 8 bytes"
)
MANY = 32  # fewer values are written one by one
MOST_KINDS = 16  # in one column

AnyArray: TypeAlias = npt.NDArray[Any]


class DecodeError(ValueError):
    """The bytes name a class that may not be read."""


def encode(value: Any) -> bytes:
    """The bytes of a value; InputError if it cannot be written."""
    return Writer(canonical=False).written(value)


def digest(value: Any) -> str:
    """SHA-256 of a value: the same for equal values, whatever their layout in memory.

    The types of numbers and the bits of floats matter; the order of a mapping's keys does not.
    """
    return sha256(Writer(canonical=True).written(value)).hexdigest()


def decode(data: bytes, allowed: Sequence[str] = ()) -> Any:
    """The value of the bytes; its classes must be from unfog or from the modules in `allowed`."""
    (tree,), start = HEAD.unpack_from(data), HEAD.size
    document = json.loads(data[start : start + tree])
    classes = [read_class(name, tuple(allowed)) for name in document["classes"]]
    return Reader(classes, memoryview(data)[start + tree :]).read(document["value"])


class Writer:
    """Collects the arrays and classes of a value while it builds the tree."""

    def __init__(self, *, canonical: bool) -> None:
        self.canonical = canonical
        self.arrays: list[bytes] = []
        self.classes: dict[type, int] = {}
        self.kinds: dict[type, Callable[[Any], Any]] = {
            type(None): _return_same,
            bool: _return_same,
            str: _return_same,
            int: _return_same,
            float: _write_float,
            list: self._list,
            tuple: lambda value: {"t": self._list(value)},
            dict: self._mapping,
            np.ndarray: self._array,
        }

    def written(self, value: Any) -> bytes:
        """Head, tree and arrays as bytes."""
        tree = self.tree(value)
        document = {"classes": [name_of(kind) for kind in self.classes], "value": tree}
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
        arrays = b"".join(self.arrays)
        return HEAD.pack(len(text)) + text + arrays

    def tree(self, value: Any) -> Any:
        """The tree of a value, as JSON values."""
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
        return self.classes.setdefault(check_writable(kind), len(self.classes))

    def _list(self, value: Sequence[Any]) -> Any:
        if self._is_long(value):
            return {"m": [len(value), column(self, value)]}
        return [self.tree(item) for item in value]

    def _is_long(self, value: Collection[Any]) -> bool:
        return not self.canonical and len(value) >= MANY

    def _mapping(self, value: dict[Any, Any]) -> dict[str, Any]:
        invalid = [key for key in value if type(key) is not str]
        if invalid:
            raise InputError("value", f"a mapping with the key {invalid[0]!r}", ALLOWED)
        if self._is_long(value):
            return {"e": [list(value), column(self, list(value.values()))]}
        items = sorted(value.items()) if self.canonical else value.items()
        return {"d": {key: self.tree(item) for key, item in items}}

    def _array(self, value: AnyArray) -> dict[str, Any]:
        return {"a": self.put([value])}

    def put(self, values: Sequence[AnyArray]) -> list[Any]:
        """Add the bytes of arrays with the same kind and shape; return both."""
        kind = values[0].dtype
        if kind.kind not in "biuf" or kind.itemsize > 8:  # of longer floats some bytes may hold anything
            raise InputError("value", f"an array of {kind}", ALLOWED)
        self.arrays += [value.tobytes() for value in values]
        return [kind.str, values[0].shape]


def _return_same(value: Any) -> Any:
    return value


def _write_float(value: float) -> Any:
    return value if isfinite(value) else {"f": struct.pack("<d", value).hex()}


class Reader:
    """Builds a value from its tree, reading arrays in the order in which they were written."""

    def __init__(self, classes: list[type], arrays: memoryview) -> None:
        self.classes, self.arrays, self.offset = classes, arrays, 0

    def read(self, tree: Any) -> Any:
        """The value of a tree."""
        if isinstance(tree, list):
            return [self.read(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        ((kind, content),) = tree.items()
        return _READERS[kind](self, content)

    def plain(self, items: Any) -> Any:
        """A plain tuple."""
        return tuple(self.read(items))

    def many(self, content: Any) -> Any:
        """A long list, written as a column."""
        number, column = content
        return values(self, column, number)

    def many_by_name(self, content: Any) -> Any:
        """A long mapping, whose values were written as a column."""
        names, column = content
        return dict(zip(names, values(self, column, len(names)), strict=True))

    def mapping(self, items: Any) -> Any:
        """A mapping, its keys in their order."""
        return {key: self.read(item) for key, item in items.items()}

    def named(self, content: Any) -> Any:
        """A NamedTuple; no function of its class is called."""
        number, *fields = content
        return tuple.__new__(self.classes[number], [self.read(item) for item in fields])

    def scalar(self, form: Any) -> Any:
        """A NumPy scalar."""
        return self.array(form)[()]

    def array(self, form: Any) -> AnyArray:
        """A copy of an array."""
        return self.take(form, 1)[0]

    def take(self, form: Any, number: int) -> list[AnyArray]:
        """Copies of so many arrays with this kind and shape."""
        kind, shape = np.dtype(form[0]), tuple(form[1])
        size = prod(shape) * number
        values: AnyArray = np.frombuffer(self.arrays, kind, size, self.offset) if size else np.empty(0, kind)
        self.offset += size * kind.itemsize
        values = values.reshape(number, *shape)
        return [values[i, ...].copy() for i in range(number)]


_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "a": Reader.array,
    "d": Reader.mapping,
    "e": Reader.many_by_name,
    "f": lambda _, text: struct.unpack("<d", bytes.fromhex(text))[0],
    "m": Reader.many,
    "n": Reader.named,
    "s": Reader.scalar,
    "t": Reader.plain,
}


def column(writer: Writer, values: Sequence[Any]) -> list[Any]:
    """Write values as a column."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return _group_by_kind(writer, values, type) if values else ["p", []]
    (kind,) = kinds
    write = _COLUMNS.get(kind)
    if write is not None:
        return write(writer, values)
    if issubclass(kind, tuple) and not issubclass(kind, np.generic):
        return ["n", writer.number_of(kind), _write_fields(writer, values, range(len(values[0])))]
    return ["i", [writer.tree(value) for value in values]]


def _group_by_kind(writer: Writer, values: Sequence[Any], kind_of: Callable[[Any], Hashable]) -> list[Any]:
    """A column for each kind; or one by one if there are many kinds."""
    groups: dict[Hashable, list[Any]] = {}
    kinds = [kind_of(value) for value in values]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    if len(numbers) > MOST_KINDS:
        return ["i", [writer.tree(value) for value in values]]
    for kind, value in zip(kinds, values, strict=True):
        groups.setdefault(kind, []).append(value)
    which = np.array([numbers[kind] for kind in kinds], dtype=np.uint8)
    return ["g", writer.put([which]), [column(writer, group) for group in groups.values()]]


def _write_fields(writer: Writer, values: Sequence[Any], keys: Iterable[Any]) -> list[Any]:
    """A column for each key: an index of tuples, or a name in mappings."""
    return [column(writer, list(map(itemgetter(key), values))) for key in keys]


def _write_plain(writer: Writer, values: Sequence[Any]) -> list[Any]:  # noqa: ARG001
    first = values[0]
    return ["c", first] if values.count(first) == len(values) else ["p", list(values)]


def _write_floats(writer: Writer, values: Sequence[Any]) -> list[Any]:
    return ["f", writer.put([np.array(values)])]


def _write_tuples(writer: Writer, values: Sequence[Any]) -> list[Any]:
    if len(set(map(len, values))) > 1:
        return _group_by_kind(writer, values, len)
    return ["t", _write_fields(writer, values, range(len(values[0])))]


def _write_lists(writer: Writer, values: Sequence[Any]) -> list[Any]:
    return ["l", column(writer, list(map(len, values))), column(writer, list(chain.from_iterable(values)))]


def _write_mappings(writer: Writer, values: Sequence[Any]) -> list[Any]:
    kinds = set(map(tuple, values))
    if len(kinds) > 1:
        return _group_by_kind(writer, values, tuple)
    (keys,) = kinds
    if set(map(type, keys)) - {str}:
        return ["i", [writer.tree(value) for value in values]]  # which refuses it
    return ["d", keys, _write_fields(writer, values, keys)]


def _write_arrays(writer: Writer, values: Sequence[Any]) -> list[Any]:
    if len(set(map(_get_form, values))) > 1:
        return _group_by_kind(writer, values, _get_form)
    return ["a", writer.put(values)]


def _get_form(value: AnyArray) -> Hashable:
    return value.dtype, value.shape


_COLUMNS: Mapping[type[Any], Callable[[Writer, Sequence[Any]], list[Any]]] = {
    type(None): _write_plain,
    bool: _write_plain,
    str: _write_plain,
    int: _write_plain,
    float: _write_floats,
    tuple: _write_tuples,
    list: _write_lists,
    dict: _write_mappings,
    np.ndarray: _write_arrays,
}


def values(reader: Reader, content: Any, number: int) -> list[Any]:
    """Read the values of a column; `number` is how many."""
    kind, *rest = content
    items: list[Any] = _VALUES[kind](reader, number, *rest)
    return items


def _read_rows(reader: Reader, number: int, columns: Any) -> list[tuple[Any, ...]]:
    """The fields of each value."""
    if not columns:
        return [()] * number
    return list(zip(*(values(reader, one, number) for one in columns), strict=True))


def _read_named(reader: Reader, number: int, class_number: int, columns: Any) -> list[Any]:
    kind: Any = reader.classes[class_number]
    return [tuple.__new__(kind, row) for row in _read_rows(reader, number, columns)]


def _read_lists(reader: Reader, number: int, sizes_column: Any, items_tree: Any) -> list[Any]:
    sizes = values(reader, sizes_column, number)
    items = values(reader, items_tree, sum(sizes))
    ends = np.cumsum(sizes, dtype=np.intp).tolist()
    return [items[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _read_mappings(reader: Reader, number: int, keys: Any, columns: Any) -> list[Any]:
    return [dict(zip(keys, row, strict=True)) for row in _read_rows(reader, number, columns)]


def _read_floats(reader: Reader, number: int, form: Any) -> list[Any]:  # noqa: ARG001
    items: list[Any] = reader.take(form, 1)[0].tolist()
    return items


def _read_groups(reader: Reader, number: int, form: Any, groups: Any) -> list[Any]:  # noqa: ARG001
    which = reader.take(form, 1)[0].tolist()
    columns = [iter(values(reader, one, which.count(i))) for i, one in enumerate(groups)]
    return [next(columns[i]) for i in which]


def _read_each(reader: Reader, number: int, trees: Any) -> list[Any]:  # noqa: ARG001
    return [reader.read(one) for one in trees]


_VALUES: Mapping[str, Callable[..., list[Any]]] = {
    "a": lambda reader, number, form: reader.take(form, number),
    "c": lambda _, number, value: [value] * number,
    "d": _read_mappings,
    "f": _read_floats,
    "g": _read_groups,
    "i": _read_each,
    "l": _read_lists,
    "n": _read_named,
    "p": lambda *args: args[2],
    "t": lambda reader, number, columns: _read_rows(reader, number, columns),
}


def name_of(kind: type[Any]) -> str:
    """A class as it is written: `module:name`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def fields_of(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a NamedTuple; none for any other class."""
    fields = getattr(kind, "_fields", ())
    return fields if issubclass(kind, tuple) and isinstance(fields, tuple) else ()


@lru_cache(maxsize=1024)
def check_writable(kind: type[Any]) -> type[Any]:
    """Return a class of tuples; raise unless it is the NamedTuple that its module has by this name."""
    if not (fields_of(kind) and _look_up(kind.__module__, kind.__qualname__) is kind):
        raise InputError("value", f"a tuple of the class {name_of(kind)}", ALLOWED)
    return kind


@lru_cache(maxsize=1024)
def read_class(name: str, allowed: tuple[str, ...]) -> type[Any]:
    """The class of this name; raise if it may not be read."""
    module, _, path = name.partition(":")
    if not module.startswith(HOUSE) and module not in allowed:
        raise DecodeError(f"{name}: classes of the module {module!r} are not allowed")
    import_module(module)
    kind = _look_up(module, path)
    if not (isinstance(kind, type) and fields_of(kind)):
        raise DecodeError(f"{name}: there is no NamedTuple of that name")
    return kind


def _look_up(module: str, path: str) -> Any:
    """The value of a dotted name in a loaded module, or None."""
    value: Any = sys.modules.get(module)
    for name in path.split("."):
        value = vars(value).get(name) if isinstance(value, type(sys) | type) else None
    return value
