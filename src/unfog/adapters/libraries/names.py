"""Contexts as numbers by name, the way of river and of Vowpal Wabbit: {"temperature": 21.5, "rain": 0.2}.

A denoiser has columns, and somebody has to say which name stands for which: `names=` of `wrap`, or the data
frame that the denoiser was fitted with (`feature_names_in_`). Names 0, 1, 2 say it themselves. A name that is
missing, or stands for None, is a reading that was lost. Names in `as_is` reach the bandit as they are. A
denoiser that says more than one number for each name has the second as `temperature_2`, and so on.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from unfog import validation
from unfog.adapters import by_name
from unfog.adapters.libraries.contexts import Contexts, readings
from unfog.maths.arrays import Array
from unfog.validation import InputError

Named = dict[Any, Any]
ORDER = "the names of what the denoiser denoises, in the order of its columns"


class Names:
    """A passage for contexts by name."""

    def __init__(
        self, contexts: Contexts, as_is: Sequence[int | str], names: Sequence[Any] | None = None
    ) -> None:
        """Say which names pass as they are, and the order of the others."""
        self.contexts, self.as_is = contexts, list(as_is)
        self.names = [] if names is None else _checked(names, self.as_is, contexts.denoiser)

    @contextmanager
    def deciding(self, context: Any, noise_cov: Any, group: Any) -> Iterator[Named]:
        """A context to decide on."""
        known, row = self._split(context)
        with self.contexts.deciding(row, *_each(noise_cov, group)) as denoised:
            yield self._joined(known, denoised)

    @contextmanager
    def learning(self, context: Any, noise_cov: Any, group: Any) -> Iterator[Named]:
        """A context to learn from."""
        known, row = self._split(context)
        with self.contexts.learning(row, *_each(noise_cov, group)) as denoised:
            yield self._joined(known, denoised)

    def _split(self, context: Any) -> tuple[Named, Array]:
        """What passes as it is, and what was measured, as a row."""
        if not isinstance(context, Mapping):
            raise InputError(
                "context", validation.shown(context), "numbers by name, as in {'temperature': 21.5}"
            )
        known = {name: context[name] for name in self.as_is if name in context}
        measured = {name: value for name, value in context.items() if name not in known}
        # Asked for late: a denoiser may be fitted after it was put in front of a bandit.
        self.names = self.names or _found(self.contexts.denoiser, measured)
        return known, readings("context", [by_name.row(measured, self.names)])

    def _joined(self, known: Named, denoised: Array) -> Named:
        return known | {self._name(place): value for place, value in enumerate(denoised[0].tolist())}

    def _name(self, place: int) -> Any:
        again, which = divmod(place, len(self.names))
        return self.names[which] if again == 0 else f"{self.names[which]}_{again + 1}"


def _each(noise_cov: Any, group: Any) -> list[Any]:
    return [None if said is None else [said] for said in (noise_cov, group)]


def _found(denoiser: Any, measured: Named) -> list[Any]:
    """Names that say their order: the denoiser's, or numbers from 0."""
    fitted = getattr(denoiser, "feature_names_in_", None)
    if fitted is not None:
        return list(fitted)
    numbers = list(range(_width(denoiser) or len(measured)))
    if not measured or any(name not in numbers for name in measured):
        raise InputError("names", "missing", ORDER)
    return numbers


def _checked(names: Sequence[Any], as_is: list[Any], denoiser: Any) -> list[Any]:
    """As many as the denoiser has columns, where it knows, and in its own order, where it has one."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError("names", validation.shown(names), ORDER)
    width, fitted = _width(denoiser), getattr(denoiser, "feature_names_in_", None)
    if both := [name for name in names if name in as_is]:
        raise InputError("names", f"{both[0]!r}, which is in as_is", ORDER)
    if fitted is not None and list(names) != list(fitted):
        raise InputError("names", list(names), f"{list(fitted)}, as the denoiser was fitted")
    return by_name.named("names", names, width or len(names), "the denoiser's columns")


def _width(denoiser: Any) -> int | None:
    """How many columns, where the denoiser was fitted, or told a mean of each."""
    fitted, mean = (getattr(denoiser, name, None) for name in ("n_features_in_", "context_mean"))
    if fitted is not None:
        return int(fitted)
    return np.size(mean) if mean is not None and np.ndim(mean) == 1 else None
