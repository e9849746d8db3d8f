"""Where something stands in a log, as the person who opens it would count."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints


class Where(NamedTuple):
    """The rows of a file, its lines, or decisions by their ids."""

    word: str
    names: Sequence[object] | Ints  # of each row

    def of(self, place: int, column: str = "") -> str:
        """The words for a row, or for one of its cells."""
        row = f"{self.word} {self.names[place]}"
        return f"{row}, {column}" if column else row

    def kept(self, rows: Bools) -> "Where":
        """Of some of the rows."""
        return self._replace(names=[self.names[i] for i in np.flatnonzero(rows).tolist()])


def counted(number: int, first: int = 1) -> Where:
    """Rows by number."""
    return Where("row", range(first, first + number))


def first(found: Bools) -> int | None:
    """The first row in which something is so."""
    place = int(np.argmax(found)) if found.size else 0
    return place if found.size and found[place] else None


def number(value: float) -> str:
    """A number that is complained of, in words where it is none."""
    return "nothing" if np.isnan(value) else f"{value:g}"


def gaps(values: Array) -> int:
    """How many are not a number."""
    return int(np.isnan(values).sum())
