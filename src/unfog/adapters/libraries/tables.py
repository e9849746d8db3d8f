"""Contexts as rows of numbers, the way of mabwiser, contextualbandits and bayesianbandits.

Columns named `as_is` reach the bandit as they are: a column of ones for the intercept, or what is known
without error. The denoised columns stand where the noisy ones stood. A denoiser that says more than one
number for each column (its mean and its spread, or draws) has the rest follow on the right.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from unfog import validation
from unfog.adapters.libraries.contexts import Contexts, readings
from unfog.maths.arrays import Array
from unfog.validation import InputError


class Table:
    """A passage for rows."""

    def __init__(self, contexts: Contexts, as_is: Sequence[int | str]) -> None:
        """Say which columns pass as they are."""
        self.contexts = contexts
        self.as_is = [validation.count("as_is", column, least=0) for column in as_is]

    @contextmanager
    def deciding(self, field: str, value: object, noise_cov: Any, groups: Any) -> Iterator[Array]:
        """Rows to decide on."""
        rows, measured = self._split(field, value)
        with self.contexts.deciding(rows[:, measured], noise_cov, groups) as denoised:
            yield self._joined(rows, measured, denoised)

    def asking(self, field: str, value: object, noise_cov: Any, groups: Any) -> Array:
        """Rows to say scores of."""
        rows, measured = self._split(field, value)
        return self._joined(rows, measured, self.contexts.asking(rows[:, measured], noise_cov, groups))

    @contextmanager
    def learning(
        self, field: str, value: object, noise_cov: Any, groups: Any, *, afresh: bool = False
    ) -> Iterator[Array]:
        """Rows to learn from; `afresh`, they may have been learnt from before."""
        rows, measured = self._split(field, value)
        with self.contexts.learning(rows[:, measured], noise_cov, groups, afresh=afresh) as denoised:
            yield self._joined(rows, measured, denoised)

    def _split(self, field: str, value: object) -> tuple[Array, list[int]]:
        """The rows, and which of their columns were measured."""
        rows = readings(field, value)
        width = rows.shape[1]
        if any(column >= width for column in self.as_is) or len(set(self.as_is)) >= width:
            raise InputError("as_is", self.as_is, f"columns of a context that has {width}, not all of them")
        if np.isnan(rows[:, self.as_is]).any():
            raise InputError("contexts", "nan in a column that passes as it is", "nan in measured columns")
        return rows, [column for column in range(width) if column not in self.as_is]

    def _joined(self, rows: Array, measured: list[int], denoised: Array) -> Array:
        whole = rows.copy()
        whole[:, measured] = denoised[:, : len(measured)]
        return np.hstack([whole, denoised[:, len(measured) :]])
