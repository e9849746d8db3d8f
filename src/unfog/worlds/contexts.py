"""Where contexts come from, whose they are, and when.

Contexts come from a Gaussian law, a sphere, atoms drawn at random, or a record's rows in order. Each source
draws a context (..., d) from its own normals, or from the row (...,) of the record that a round has.

Units are devices or persons with biases of their own. Every round belongs to one.

    units       how many there are
    unit_order  "random": each round's is drawn, all alike; "turn": one after the other
    observe_units  whether agents are told whose context it is; otherwise they take all for one

Agents that are told keep a state of the channel for each unit (agents/round.py). Runs with and without
`observe_units` have all else in common, and the first unit has the bias that a world of one has.

A `RecordTime` has the times of the rows of a record, and continues when the record starts over. A trial walks
through the rows, and after the last one comes the first: the time between them is the span of the record plus
a gap, such that a lap is a whole number of weeks. So the hour of the day and the day of the week of a row
stay the same.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from unfog import validation
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import from_moments
from unfog.validation import InputError, Numbers

MOST_UNITS = 1000
ORDERS = ("random", "turn")
GAP = 1000.0  # hours beyond the span of a record
WEEK = 168.0


class Contexts(Protocol):
    """A source of contexts."""

    @property
    def normals(self) -> int:
        """How many standard normals one takes: w."""
        ...

    def draw(self, normals: Array, row: Ints | None) -> Array:
        """A context (..., d) from normals (..., w), or from the row (...,) of the record."""
        ...


class Gaussian(NamedTuple):
    """c ~ N(mean, root root')."""

    mean: Array  # (d,)
    root: Array  # (d, d)

    @property
    def normals(self) -> int:
        """One for each coordinate."""
        return self.mean.shape[0]

    def draw(self, normals: Array, row: Ints | None) -> Array:  # noqa: ARG002
        """A draw from the law."""
        xp = normals.__array_namespace__()
        return xp.asarray(self.mean) + matvec(xp.asarray(self.root), normals)


def assumed_law(known: Knowledge) -> Gaussian:
    """The law that agents are told."""
    return Gaussian(known.context_mean, from_moments(known.context_mean, known.context_cov).root)


class Sphere(NamedTuple):
    """Contexts of parts of equal size, each of a fixed length and a uniform direction."""

    parts: int
    length: Array  # ()
    size: int  # d

    @property
    def normals(self) -> int:
        """One for each coordinate."""
        return self.size

    def draw(self, normals: Array, row: Ints | None) -> Array:  # noqa: ARG002
        """Normals, each part of them scaled to the length."""
        xp = normals.__array_namespace__()
        cut = normals.reshape(*normals.shape[:-1], self.parts, -1)
        scaled = cut * (xp.asarray(self.length, dtype=cut.dtype) / xp.sqrt(xp.vecdot(cut, cut)))[..., None]
        return scaled.reshape(normals.shape)


def sphere(known: Knowledge, parts: int) -> Sphere:
    """The sphere with the moments that agents are told, which must be those of a sphere."""
    size = known.context_mean.shape[0]
    variance = known.context_cov[0, 0]
    if np.any(known.context_mean):
        raise InputError("context_mean", known.context_mean, "0 where contexts are on a sphere")
    if np.any(known.context_cov != variance * np.eye(size)):
        raise InputError("context_cov", known.context_cov, "a number where contexts are on a sphere")
    return Sphere(parts, np.sqrt(variance * (size // parts)), size)


class Atoms(NamedTuple):
    """Atoms with equal probabilities."""

    atoms: Array  # (n, d)

    @property
    def normals(self) -> int:
        """Two make a uniform number, exp(-(x^2 + y^2) / 2)."""
        return 2

    def draw(self, normals: Array, row: Ints | None) -> Array:  # noqa: ARG002
        """An atom at random."""
        xp = normals.__array_namespace__()
        atoms = xp.asarray(self.atoms, dtype=normals.dtype)
        uniform = xp.exp(-0.5 * (normals[..., 0] ** 2 + normals[..., 1] ** 2))
        index = xp.clip(xp.floor(uniform * atoms.shape[0]), 0, atoms.shape[0] - 1)
        context: Array = atoms[index.astype(xp.int32)]
        return context


class Rows(NamedTuple):
    """The rows of a record, one a round."""

    rows: Array  # (n, d)

    @property
    def normals(self) -> int:
        """As many as for Gaussian contexts, but unused, so that runs with and without data share all else."""
        return self.rows.shape[1]

    def draw(self, normals: Array, row: Ints | None) -> Array:
        """The row of this round."""
        xp = normals.__array_namespace__()
        context: Array = xp.asarray(self.rows)[row]
        return context


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitFields:
    """How many units there are, and how rounds are assigned to them: fields of worlds with units."""

    units: int = 1
    unit_order: str = "random"
    observe_units: bool = True


class Units(NamedTuple):
    """How rounds are assigned to units."""

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
            unit = xp.asarray(0 if number is None else number) % self.number
            return xp.broadcast_to(unit, normals.shape[:-1])
        uniform = xp.exp(-0.5 * (normals**2).sum(-1))
        return xp.clip(xp.floor(uniform * self.number), 0, self.number - 1).astype(xp.int32)


def units(fields: UnitFields) -> Units:
    """The units that these fields describe, checked."""
    number = validation.count("units", fields.units, most=MOST_UNITS)
    drawn = validation.one_of("unit_order", fields.unit_order, ORDERS) == "random"
    validation.flag("observe_units", fields.observe_units)
    return Units(number, drawn)


def check_single_unit(field: str, value: Numbers, number: int) -> None:
    """Raise InputError for a value other than 0 if there are several units."""
    if number > 1 and (np.ndim(value) or value != 0):
        raise InputError(field, value, "0 where there are several units")


def own(values: Array, unit: Ints, *where: Any) -> Array:
    """The values (trials, units, ...) of each round's unit (trials, ...), further indexed by `where`."""
    xp = values.__array_namespace__()
    trial = xp.arange(values.shape[0]).reshape(-1, *[1] * (unit.ndim - 1))
    part: Array = values[(trial, unit, *where)]
    return part


class RecordTime(NamedTuple):
    """The times of the rows of a record."""

    times: Array  # (n,)  never going back

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.times)

    @property
    def lap(self) -> float:
        """The hours from a row to the same row a lap later: twice the span and the gap, in whole weeks."""
        twice = 2 * float(self.times[-1] - self.times[0]) + GAP
        return WEEK * -(-twice // WEEK)

    def read(self, first: Array | None, number: Ints | None) -> tuple[Ints | None, Array | None]:
        """Rows and times of rounds of these numbers, in trials that start at a row (...,)."""
        if first is None or number is None:
            return None, None
        xp = first.__array_namespace__()
        walked = xp.astype(first, xp.int64) + number
        row: Ints = walked % self.rows
        return row, xp.asarray(self.times)[row] + self.lap * (walked // self.rows)
