"""Noisy contexts on their way into a bandit: denoised once, for the decision, and kept for its reward.

The denoiser learns about the sensor as readings come in, so the same reading is denoised to another number
later. A learner has to be given what was decided on, or it regresses rewards on numbers that nobody saw. So a
decision's context goes through `transform_one` (predict, then observe), and what came out is remembered under
the reading itself: other libraries have no name for a decision, but they are given the same context again
with its reward. A context that comes with a reward and was never decided on, such as a row of an old log,
goes through `transform`, together with all others of its kind.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from unfog import inputs
from unfog.inputs import Array, InputError

NUMBERS = "numbers, nan where a reading was lost"
REMEMBERED = 100_000


class Denoises(Protocol):
    """What a denoiser can do; that of `unfog.adapters.sklearn` does it."""

    def transform(self, X: Array, /) -> Any:  # noqa: N803
        """Rows (n, d), each by itself."""

    def transform_one(self, x: Array, /) -> Any:
        """One reading (d,), in the order of time: denoise it, then learn from it about the sensor."""


class Decided(NamedTuple):
    """What a reading was taken for."""

    told: bytes  # what else was said of the reading: how precise it is, whose it is
    context: Array
    waiting: bool  # for its reward


class Contexts:
    """A denoiser, and what was decided on."""

    def __init__(self, denoiser: Denoises, remember: int = REMEMBERED) -> None:
        """Remember the latest so many decisions."""
        inputs.offering("denoiser", denoiser, Denoises, "a denoiser, such as unfog.adapters.sklearn.Denoiser")
        self.denoiser = denoiser
        self.remember = inputs.count("remember", remember)
        self._decided: OrderedDict[bytes, Decided] = OrderedDict()

    def decide(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Array:
        """What to decide on, for readings (n, d) in the order of time."""
        told = zip(one_each("noise_cov", noise_cov, rows), one_each("groups", groups, rows), strict=True)
        return np.stack([self._decide(row, *said) for row, said in zip(rows, told, strict=True)])

    def _decide(self, row: Array, noise_cov: Any, group: Any) -> Array:
        """The same reading asked about again, before its reward, is no news of the sensor."""
        key, told = row.tobytes(), _bytes(noise_cov, group)
        known = self._decided.pop(key, None)
        if known is None or not known.waiting or known.told != told:
            said = {"noise_cov": noise_cov, "group": group}
            context = np.asarray(self.denoiser.transform_one(row, **_without_none(said)), float).reshape(-1)
            known = Decided(told, context, waiting=True)
        self._decided[key] = known  # now the latest
        while len(self._decided) > self.remember:
            self._decided.popitem(last=False)
        return known.context

    def learn(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Array:
        """What to learn from, for readings (n, d): what was decided on, or else what `transform` says."""
        found = [self._decided.get(row.tobytes()) for row in rows]
        fresh = np.array([known is None for known in found])
        for row, known in zip(rows, found, strict=True):
            if known is not None:
                self._decided[row.tobytes()] = known._replace(waiting=False)
        if not fresh.any():
            return np.stack([known.context for known in found if known is not None])
        said = {"noise_cov": noise_cov, "groups": groups}
        chosen = {
            name: np.asarray(one_each(name, value, rows))[fresh]
            for name, value in _without_none(said).items()
        }
        denoised = np.asarray(self.denoiser.transform(self._titled(rows[fresh]), **chosen), float)
        contexts = np.empty((len(rows), denoised.shape[1]))
        contexts[fresh] = denoised
        for index, known in enumerate(found):
            if known is not None:
                contexts[index] = known.context
        return contexts

    def _titled(self, rows: Array) -> Any:
        """With names for the columns, where the denoiser was fitted with names: it asks for them."""
        names = getattr(self.denoiser, "feature_names_in_", None)
        if names is None:
            return rows
        from pandas import DataFrame

        return DataFrame(rows, columns=names)


def readings(field: str, value: object) -> Array:
    """Rows of numbers (n, d); one context may come without its row."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InputError(field, "rows of different lengths", f"rows of {NUMBERS}") from None
    if raw.dtype.kind not in "iuf":
        raise InputError(field, inputs.shown(value), f"rows of {NUMBERS}")
    rows = np.array(raw, float, ndmin=2)
    lost = np.isnan(rows)
    inputs.numbers(field, np.where(lost, 0.0, rows), f"rows of {NUMBERS}")
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(field, f"an array of shape {raw.shape}", f"rows of {NUMBERS}")
    # Equal numbers get equal bytes: there are many kinds of nan, and two zeros.
    return np.where(lost, np.nan, rows + 0.0)


def one_each(field: str, value: Any, rows: Array) -> Sequence[Any]:
    """What is said of each of the rows; nothing said is said of each."""
    if value is None:
        return list(repeat(None, len(rows)))
    if not hasattr(value, "__len__") or len(value) != len(rows):
        raise InputError(field, inputs.shown(value), f"one for each row, {len(rows)} of them")
    return list(value)


def _without_none(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def _bytes(noise_cov: Any, group: Any) -> bytes:
    cov = b"" if noise_cov is None else np.asarray(noise_cov, float).tobytes()
    return cov + repr(group).encode()
