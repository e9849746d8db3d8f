"""Contexts as rows of numbers, the way of mabwiser, contextualbandits and bayesianbandits.

Columns named `as_is` reach the bandit as they are: a column of ones for the intercept, or what is known
without error. The denoised columns stand where the noisy ones stood. A denoiser that says more than one
number for each column (its mean and its spread, or draws) has the rest follow on the right.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unfog import inputs
from unfog.adapters.libraries.contexts import Contexts, readings
from unfog.inputs import Array, InputError


class Table:
    """A passage for rows."""

    def __init__(self, contexts: Contexts, as_is: Sequence[int | str]) -> None:
        """Say which columns pass as they are."""
        self.contexts = contexts
        self.as_is = [inputs.count("as_is", column, least=0) for column in as_is]

    def decide(self, field: str, value: object, noise_cov: Any, groups: Any) -> Array:
        """Rows to decide on."""
        rows = readings(field, value)
        measured = self._measured(rows)
        return self._joined(rows, measured, self.contexts.decide(rows[:, measured], noise_cov, groups))

    def learn(self, field: str, value: object, noise_cov: Any, groups: Any) -> Array:
        """Rows to learn from."""
        rows = readings(field, value)
        measured = self._measured(rows)
        return self._joined(rows, measured, self.contexts.learn(rows[:, measured], noise_cov, groups))

    def _measured(self, rows: Array) -> list[int]:
        width = rows.shape[1]
        if any(column >= width for column in self.as_is) or len(set(self.as_is)) >= width:
            raise InputError("as_is", self.as_is, f"columns of a context that has {width}, not all of them")
        return [column for column in range(width) if column not in self.as_is]

    def _joined(self, rows: Array, measured: list[int], denoised: Array) -> Array:
        whole = rows.copy()
        whole[:, measured] = denoised[:, : len(measured)]
        if np.isnan(whole[:, self.as_is]).any():
            raise InputError("contexts", "nan in a column that passes as it is", "nan in measured columns")
        return np.hstack([whole, denoised[:, len(measured) :]])
