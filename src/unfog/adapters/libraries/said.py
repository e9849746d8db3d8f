"""What is said of a reading beside its numbers: how precise it is, and whose it is.

The same numbers from another device, or with another precision, are another reading. What is said with a
decision may be left out with its reward: then it is taken as it was said before.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.maths.arrays import Array
from unfog.validation import InputError

COVARIANCE = "a variance, variances or a covariance of each row"


class Said(NamedTuple):
    """Of one reading; None where nothing is said."""

    noise_cov: Array | None  # (d, d)
    group: Any

    def key(self) -> tuple[bytes, str]:
        """Equal for what is equal, however it was written."""
        return b"" if self.noise_cov is None else self.noise_cov.tobytes(), repr(self.group)

    def agrees(self, before: "Said") -> bool:
        """Whether a decision of which this was said `before` can be meant."""
        mine, other = self.key(), before.key()
        same_noise = self.noise_cov is None or mine[0] == other[0]
        return same_noise and (self.group is None or mine[1] == other[1])

    def options(self) -> dict[str, Any]:
        """For `transform_one`."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def of_each(rows: Array, noise_cov: Any, groups: Any) -> list[Said]:
    """What is said of each of the rows; nothing said is said of each."""
    covs, labels = _one_each("noise_cov", noise_cov, rows), _one_each("groups", groups, rows)
    return [
        Said(_covariance(cov, rows.shape[1]), label.item() if isinstance(label, np.generic) else label)
        for cov, label in zip(covs, labels, strict=True)
    ]


def _one_each(field: str, value: Any, rows: Array) -> Sequence[Any]:
    if value is None:
        return [None] * len(rows)
    if not hasattr(value, "__len__") or len(value) != len(rows):
        raise InputError(field, validation.shown(value), f"one for each row, {len(rows)} of them")
    return list(value)


def _covariance(value: Any, dim: int) -> Array | None:
    """As a matrix: among rows, variances could be mistaken for one covariance of all."""
    if value is None:
        return None
    given = validation.numbers("noise_cov", value, COVARIANCE)
    if given.shape == (dim, dim):
        return given
    return np.diag(validation.vector("noise_cov", value, dim))
