"""What rounds come to in least squares: sums over them, so that blocks of rounds are looked at once.

Models of all blocks but one, or of all blocks up to one, are made of the same sums, added.
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.maths.arrays import Array


class Sums(NamedTuple):
    """Over rounds with features x, reward r and weight w."""

    rounds: int
    weight: float  # w
    reward: float  # w r
    squares: float  # w r^2
    rows: Array  # (m,)  w x
    paid: Array  # (m,)  w x r
    gram: Array  # (m, m)  w x x'
    there: Array  # (m,)  w where x is not zero

    @classmethod
    def of(cls, rows: Array, reward: Array, weight: Array) -> "Sums":
        """Of rows (n, m), rewards and weights (n,)."""
        weighed, paid = rows * weight[:, None], weight * reward
        there = weight @ (rows != 0)
        return cls(
            len(rows),
            float(weight.sum()),
            float(paid.sum()),
            float(paid @ reward),
            weighed.sum(axis=0),
            rows.T @ paid,
            rows.T @ weighed,
            there,
        )

    @classmethod
    def none(cls, size: int) -> "Sums":
        """Of no rounds, for so many features."""
        nothing = np.zeros(size)
        return cls(0, 0.0, 0.0, 0.0, nothing, nothing, np.zeros((size, size)), nothing)

    def plus(self, other: "Sums") -> "Sums":
        """Of both."""
        mine: tuple[Any, ...] = self
        return Sums(*(one + its for one, its in zip(mine, other, strict=True)))

    def less(self, other: "Sums") -> "Sums":
        """Of these without the others, which are among them."""
        mine: tuple[Any, ...] = self
        return Sums(*(one - its for one, its in zip(mine, other, strict=True)))

    @property
    def size(self) -> Array:
        """The mean square of each feature where it is not zero, (m,); 1 for one that always is."""
        some = self.there > 0
        return np.where(some, np.diag(self.gram) / np.where(some, self.there, 1.0), 1.0)
