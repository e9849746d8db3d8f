"""How an array lies in memory: written down, and laid out again.

Sums of products in another order differ in their last bits, so that the layout of a state is part of it.
"""

from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

WIDEST_GAP, LEAST_SPAN = 64, 4096  # how much memory a layout may take: times its values, or bytes

AnyArray: TypeAlias = npt.NDArray[Any]


class Layout(NamedTuple):
    """An array as it lies in memory, or None for strides where its values follow each other."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None

    @property
    def distinct(self) -> tuple[int, ...]:
        """The shape without what is broadcast."""
        if self.strides is None:
            return self.shape
        return tuple(min(n, 1) if s == 0 else n for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def span(self) -> int:
        """Bytes from the first to the last."""
        steps = zip(self.shape, self.strides or (), strict=True)
        return int(sum((n - 1) * abs(s) for n, s in steps)) + np.dtype(self.dtype).itemsize

    @property
    def fits(self) -> bool:
        """Whether the gaps are small enough to be kept."""
        values = prod(self.distinct) * np.dtype(self.dtype).itemsize
        return 0 not in self.shape and self.span <= max(WIDEST_GAP * values, LEAST_SPAN)


def laid_out(values: AnyArray, layout: Layout) -> AnyArray:
    """The values at the strides they had; what is broadcast cannot be written to, as NumPy has it."""
    strides, memory = layout.strides or (), np.zeros(layout.span, np.uint8)
    first = sum((n - 1) * -s for n, s in zip(layout.shape, strides, strict=True) if s < 0)
    place: AnyArray = np.ndarray(layout.distinct, values.dtype, memory.data, first, strides)
    place[...] = values
    found: AnyArray = np.ndarray(layout.shape, values.dtype, memory.data, first, strides)
    found.flags.writeable = layout.distinct == layout.shape
    return found


def without_padding(raw: bytes, kind: np.dtype[Any]) -> bytes:
    """Long doubles of ten bytes take sixteen, six of which may hold anything."""
    if kind.itemsize <= 8 or np.finfo(kind).nmant != 63:
        return raw
    cells = np.frombuffer(raw, np.uint8).reshape(-1, kind.itemsize).copy()
    cells[:, 10:] = 0
    return cells.tobytes()
