"""The newest rows of a long table, by columns: arrays that grow, and let go of what is old."""

from collections.abc import Sequence

import numpy as np

from unfog.maths.arrays import Array

FIRST_ROOM = 1024  # rows


class Columns:
    """Rows of so many numbers. They are counted from the first there ever was; the newest `most` are kept."""

    def __init__(self, width: int, most: int, first: int = 0) -> None:
        """None yet; the next is the row of this number."""
        self._data, self._most = np.empty((width, min(FIRST_ROOM, most))), most
        self._first, self._size = first, 0

    @property
    def first(self) -> int:
        """The number of the first row that is kept."""
        return self.next - min(self._size, self._most)

    @property
    def next(self) -> int:
        """The number of the row that comes next."""
        return self._first + self._size

    @property
    def kept(self) -> Array:
        """All that is kept, (width, n), to be read and written."""
        return self._data[:, self.first - self._first : self._size]

    def widen(self, more: int) -> None:
        """So many columns more, of which nothing is known yet."""
        self._data = np.concatenate((self._data, np.full((more, self._data.shape[1]), np.nan)))

    def extend(self, rows: Sequence[Sequence[float]]) -> None:
        """More rows."""
        self._make_room(len(rows))
        self._data[:, self._size : self._size + len(rows)] = np.array(rows).T
        self._size += len(rows)

    def _make_room(self, more: int) -> None:
        """For so many rows; a quarter beyond what is kept, so that old ones are seldom let go of."""
        if self._size + more <= self._data.shape[1]:
            return
        kept = self.kept
        room = max(2 * kept.shape[1], kept.shape[1] + more)
        data = np.empty((len(self._data), min(room, self._most + self._most // 4 + more)))
        data[:, : kept.shape[1]] = kept
        self._data, self._first, self._size = data, self.first, kept.shape[1]
