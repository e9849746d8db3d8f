"""A value made of its tree and the bytes of its arrays: what live/codec.py has written, read again."""

import struct
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from unfog.live import stacked
from unfog.live.classes import DecodeError, name_of
from unfog.live.layout import AnyArray, Layout, laid_out

LEAST_VALUES, MOST_A_BYTE = 10**6, 64  # how many values a file may stand for: in any case, and for each byte


class Reader:
    """Makes a value of its tree, and takes its arrays in the order in which they were written."""

    def __init__(self, classes: list[type], arrays: memoryview, size: int) -> None:
        self.classes, self.arrays, self.place = classes, arrays, 0
        self.left = LEAST_VALUES + MOST_A_BYTE * size

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
        return stacked.values(self, column, number)

    def many_by_name(self, told: Any) -> Any:
        """A mapping of many."""
        names, column = told
        return dict(zip(names, stacked.values(self, column, len(names)), strict=True))

    def mapping(self, told: Any) -> Any:
        """With its keys in the order they had."""
        return {key: self.read(item) for key, item in told.items()}

    def named(self, told: Any) -> Any:
        """One with names, of its class; no function of the class is called."""
        number, *fields = told
        return tuple.__new__(self.class_of(number, len(fields)), [self.read(item) for item in fields])

    def expect(self, number: int) -> None:
        """So many values are to come in one go."""
        self.left -= number
        if number < 0 or self.left < 0:
            raise DecodeError(f"{number} values, in a place for fewer")

    def class_of(self, number: int, fields: int) -> Any:
        """The class of this number, which must have so many fields."""
        kind: Any = self.classes[number]
        if fields != len(kind._fields):
            raise DecodeError(f"{name_of(kind)} has {len(kind._fields)} fields, not {fields}")
        return kind

    def scalar(self, told: Any) -> Any:
        """A number of NumPy's."""
        return self.array(told)[()]

    def array(self, told: Any) -> AnyArray:
        """A copy, laid out as it was."""
        return self.take(told, 1)[0]

    def take(self, told: Any, number: int) -> list[AnyArray]:
        """Copies of so many, laid out as they were."""
        layout = Layout(told[0], tuple(told[1]), None if told[2] is None else tuple(told[2]))
        kind = np.dtype(layout.dtype)
        if kind.kind not in "biuf":
            raise DecodeError(f"an array of {kind}")
        size = prod(layout.distinct) * number
        if min(layout.shape, default=0) < 0 or size * kind.itemsize > len(self.arrays) - self.place:
            raise DecodeError(f"the shape {layout.shape} is not that of the bytes that are there")
        if layout.strides is not None and not layout.fits:
            raise DecodeError(f"the strides {layout.strides} leave gaps that are too large")
        values: AnyArray = np.frombuffer(self.arrays, kind, size, self.place) if size else np.empty(0, kind)
        self.place += size * kind.itemsize
        values = values.reshape(number, *layout.distinct)
        each = [values[i, ...] for i in range(number)]
        return [one.copy() if layout.strides is None else laid_out(one, layout) for one in each]


_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "a": Reader.array,
    "d": Reader.mapping,
    "e": Reader.many_by_name,
    "f": lambda _, told: struct.unpack("<d", bytes.fromhex(told))[0],
    "i": lambda _, told: int(told, 16),
    "m": Reader.many,
    "n": Reader.named,
    "s": Reader.scalar,
    "t": Reader.plain,
}
