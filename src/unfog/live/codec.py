"""Nested values to bytes and back, without pickle: reading a file runs no code of the file's.

    head    magic, version, lengths of tree and arrays
    tree    JSON: what is not an array as it is, an array as its kind and layout; classes of tuples by name
    arrays  their bytes, one after the other
    tail    SHA-256 of all that

Many values of one kind are written as columns: live/stacked.py. Arrays come back with the layout they had in
memory, transposed or broadcast as they were, and not with their values alone: sums of products in another
order differ in their last bits, and a state that was written and read must go on to the same bits as one that
was not. Views with large gaps come back without them.
"""

import json
import struct
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from math import isfinite
from typing import Any

import numpy as np

from unfog.inputs import InputError
from unfog.live import stacked
from unfog.live.classes import ALLOWED, fields_of, name_of, readable, writable
from unfog.live.classes import DecodeError as DecodeError
from unfog.live.decoding import Reader
from unfog.live.layout import AnyArray, Layout, without_padding

MAGIC, VERSION = b"unfogval", 2
HEAD = struct.Struct("<8sHQQ")  # magic, version, bytes of the tree, bytes of the arrays
TAIL = 32  # bytes of a SHA-256
LARGEST_INT = 2**63  # beyond, text in decimals takes long, and Python refuses to read it
BROKEN = (  # what a tree that is not one of ours may lead to
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


def encode(value: Any) -> bytes:
    """The bytes of a value."""
    writer = _Writer(canonical=False)
    body = writer.written(value)
    return body + sha256(body).digest()


def digest(value: Any) -> str:
    """SHA-256 of what a value holds: the same for equal values, whatever their layout in memory.

    Kinds of numbers matter, and so do the bits of floats; the order of a mapping's keys does not.
    """
    return sha256(_Writer(canonical=True).written(value)).hexdigest()


def decode(data: bytes, allowed: Sequence[str] = ()) -> Any:
    """The value of the bytes; classes of tuples from unfog or from the modules that are allowed."""
    tree, arrays = _checked(data)
    try:
        told = json.loads(tree)
        classes = [readable(name, tuple(fields), tuple(allowed)) for name, fields in told["classes"]]
        reader = Reader(classes, memoryview(arrays), len(data))
        value = reader.read(told["value"])
    except DecodeError:
        raise
    except BROKEN as error:
        raise DecodeError(f"the bytes are whole and make no sense: {error!r}") from error
    if reader.place != len(arrays):
        raise DecodeError(f"{len(arrays) - reader.place} bytes of arrays belong to none")
    return value


def _checked(data: bytes) -> tuple[bytes, bytes]:
    """Tree and arrays, of bytes that are whole."""
    if len(data) < HEAD.size + TAIL:
        raise DecodeError(f"{len(data)} bytes are too few: they were cut, or never a value")
    magic, version, tree, arrays = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise DecodeError("these bytes do not begin as a value's do")
    if len(data) != HEAD.size + tree + arrays + TAIL:
        raise DecodeError(f"{len(data)} bytes are not as many as their head says")
    if sha256(memoryview(data)[:-TAIL]).digest() != data[-TAIL:]:
        raise DecodeError("the bytes are damaged: their SHA-256 is another")
    if version != VERSION:
        raise DecodeError(f"they were written in version {version}, and this one reads version {VERSION}")
    middle = HEAD.size + tree
    return data[HEAD.size : middle], data[middle:-TAIL]


class _Writer:
    """Collects the arrays and the classes of a value while its tree is made."""

    def __init__(self, *, canonical: bool) -> None:
        self.canonical = canonical
        self.arrays: list[bytes] = []
        self.classes: dict[type, int] = {}
        self.kinds: dict[type, Callable[[Any], Any]] = {
            type(None): _same,
            bool: _same,
            str: _same,
            int: _int,
            float: _float,
            list: self._list,
            tuple: lambda value: {"t": self._list(value)},
            dict: self._mapping,
            np.ndarray: self._array,
        }

    def written(self, value: Any) -> bytes:
        """Head, tree and arrays."""
        try:
            tree = self.tree(value)
            told = {"classes": [[name_of(kind), fields_of(kind)] for kind in self.classes], "value": tree}
            text = json.dumps(told, separators=(",", ":"), allow_nan=False).encode("ascii")
        except RecursionError:
            raise InputError("value", "nested too deep, or holds itself", ALLOWED) from None
        raw = b"".join(self.arrays)
        return HEAD.pack(MAGIC, VERSION, len(text), len(raw)) + text + raw

    def tree(self, value: Any) -> Any:
        """What JSON can hold of it."""
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
        """Of a class of tuples."""
        return self.classes.setdefault(writable(kind), len(self.classes))

    def _list(self, value: Sequence[Any]) -> Any:
        if self._is_long(value):
            return {"m": [len(value), stacked.column(self, value)]}
        return [self.tree(item) for item in value]

    def _is_long(self, value: Collection[Any]) -> bool:
        return not self.canonical and len(value) >= stacked.MANY

    def _mapping(self, value: dict[Any, Any]) -> dict[str, Any]:
        strange = [key for key in value if type(key) is not str]
        if strange:
            raise InputError("value", f"a mapping with the key {strange[0]!r}", ALLOWED)
        if self._is_long(value):
            return {"e": [list(value), stacked.column(self, list(value.values()))]}
        items = sorted(value.items()) if self.canonical else value.items()
        return {"d": {key: self.tree(item) for key, item in items}}

    def _array(self, value: AnyArray) -> dict[str, Any]:
        return {"a": self.put([value], self.layout_of(value))}

    def layout_of(self, value: AnyArray) -> Layout:
        """How it will lie in memory again."""
        kind = value.dtype
        if kind.kind not in "biuf":
            raise InputError("value", f"an array of {kind}", ALLOWED)
        layout = Layout(kind.str, value.shape, None)
        if not self.canonical and not value.flags.c_contiguous:
            strided = layout._replace(strides=value.strides)
            layout = strided if strided.fits else layout
        return layout

    def put(self, values: Sequence[AnyArray], layout: Layout) -> Layout:
        """The bytes of arrays that lie alike."""
        if layout.strides is not None:
            part = tuple(slice(n) for n in layout.distinct)
            values = [value[part] for value in values]
        raw = b"".join([value.tobytes() for value in values])
        self.arrays.append(without_padding(raw, np.dtype(layout.dtype)))
        return layout


def _same(value: Any) -> Any:
    return value


def _int(value: int) -> Any:
    return value if -LARGEST_INT < value < LARGEST_INT else {"i": hex(value)}


def _float(value: float) -> Any:
    return value if isfinite(value) else {"f": struct.pack("<d", value).hex()}
