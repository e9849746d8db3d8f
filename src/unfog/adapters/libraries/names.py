"""Contexts as numbers by name, the way of river and of Vowpal Wabbit: {"temperature": 21.5, "rain": 0.2}.

The names, in the order of the denoiser's columns, are those it was fitted with (`feature_names_in_`), or else
those of the first context. A name that is missing later, or stands for None, is a reading that was lost.
Names in `as_is` reach the bandit as they are. A denoiser that says more than one number for each name has the
second as `temperature_2`, and so on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfog import inputs
from unfog.adapters.libraries.contexts import Contexts, readings
from unfog.inputs import InputError

Named = dict[Any, Any]


class Names:
    """A passage for contexts by name."""

    def __init__(self, contexts: Contexts, as_is: Sequence[int | str]) -> None:
        """Say which names pass as they are."""
        self.contexts, self.as_is = contexts, list(as_is)
        self.names: list[Any] = []

    def decide(self, context: Any, noise_cov: Any, group: Any) -> Named:
        """A context to decide on."""
        return self._passed(context, self.contexts.decide, noise_cov, group)

    def learn(self, context: Any, noise_cov: Any, group: Any) -> Named:
        """A context to learn from."""
        return self._passed(context, self.contexts.learn, noise_cov, group)

    def _passed(self, context: Any, way: Any, noise_cov: Any, group: Any) -> Named:
        known, measured = self._split(context)
        row = readings("context", [[_number(name, measured.get(name)) for name in self.names]])
        told = [None if said is None else [said] for said in (noise_cov, group)]
        denoised: list[float] = way(row, *told)[0].tolist()
        return known | {self._name(place): value for place, value in enumerate(denoised)}

    def _split(self, context: Any) -> tuple[Named, Named]:
        """What passes as it is, and what was measured."""
        if not isinstance(context, Mapping):
            raise InputError("context", inputs.shown(context), "numbers by name, as in {'temperature': 21.5}")
        known = {name: context[name] for name in self.as_is if name in context}
        measured = {name: value for name, value in context.items() if name not in known}
        # Asked for late: a denoiser may be fitted after it was put in front of a bandit.
        self.names = self.names or list(getattr(self.contexts.denoiser, "feature_names_in_", measured))
        for name in measured:
            if name not in self.names:
                raise InputError("context", name, f"the names {self.names}, and as_is {self.as_is}")
        return known, measured

    def _name(self, place: int) -> Any:
        again, which = divmod(place, len(self.names))
        return self.names[which] if again == 0 else f"{self.names[which]}_{again + 1}"


def _number(name: object, value: object) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"context.{name}", inputs.shown(value), "a number, or None where it was lost")
    return float(value)
