"""Units: devices or persons with biases of their own. Every round belongs to one.

    units       how many there are
    unit_order  "random": each round's is drawn, all alike; "turn": one after the other
    tell_units  whether agents are told whose context it is; otherwise they take all for one

Agents that are told keep a state of the channel for each unit (agents/units.py). Runs with and without
`tell_units` have all else in common, and the first unit has the bias that a world of one has.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, Numbers

MOST_UNITS = 1000
ORDERS = ("random", "turn")


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitFields:
    """How many units there are, and whose turn it is: fields of worlds that can have several."""

    units: int = 1
    unit_order: str = "random"
    tell_units: bool = True


class Units(NamedTuple):
    """Whose round it is."""

    number: int = 1
    drawn: bool = True  # at random; otherwise they take turns

    @property
    def normals(self) -> int:
        """Two make a uniform number, exp(-(x^2 + y^2) / 2), where there is something to draw."""
        return 2 if self.number > 1 and self.drawn else 0

    def of(self, normals: Array, number: Ints | None) -> Ints | None:
        """The unit (...,) of a round with this number, from its normals (..., 2); None: there is one."""
        if self.number == 1:
            return None
        xp: Any = normals.__array_namespace__()
        if not self.drawn:
            turn = xp.asarray(0 if number is None else number) % self.number
            return xp.broadcast_to(turn, normals.shape[:-1])
        uniform = xp.exp(-0.5 * (normals**2).sum(-1))
        return xp.clip(xp.floor(uniform * self.number), 0, self.number - 1).astype(xp.int32)


def units(fields: UnitFields) -> Units:
    """Those that these fields describe, checked."""
    number = validation.count("units", fields.units, most=MOST_UNITS)
    drawn = validation.one_of("unit_order", fields.unit_order, ORDERS) == "random"
    validation.flag("tell_units", fields.tell_units)
    return Units(number, drawn)


def refuse_shared(field: str, value: Numbers, number: int) -> None:
    """Refuse what one unit alone can have: a number other than 0."""
    if number > 1 and (np.ndim(value) or value != 0):
        raise InputError(field, value, "0 where there are several units")


def own(values: Array, unit: Ints, *where: Any) -> Array:
    """What belongs to a unit (trials, ...), of values (trials, units, ...), at places further on."""
    xp = values.__array_namespace__()
    trial = xp.arange(values.shape[0]).reshape(-1, *[1] * (unit.ndim - 1))
    found: Array = values[(trial, unit, *where)]
    return found
