"""Where contexts come from, whose they are, and when.

Contexts come from a Gaussian law, a sphere, atoms drawn at random, or a record's rows in order. Each source
draws a context (..., d) from its own normals, or from the row (...,) of the record that a round has.

Units are devices or persons with biases of their own. Every round belongs to one.

    units       how many there are
    unit_order  "random": each round's is drawn, all alike; "turn": one after the other
    tell_units  whether agents are told whose context it is; otherwise they take all for one

Agents that are told keep a state of the channel for each unit (agents/round.py). Runs with and without
`tell_units` have all else in common, and the first unit has the bias that a world of one has.

A `Clock` has the times of the rows of a record, which go on where the record is begun again. A trial walks
through the rows and comes from the last one to the first: the time between them is the whole span of the
record and then some, rounded up to weeks of hours, so that the hour of the day and the day of the week stay
what they were.
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


def as_told(known: Knowledge) -> Gaussian:
    """The law that agents are told."""
    return Gaussian(known.context_mean, from_moments(known.context_mean, known.context_cov).root)


class Sphere(NamedTuple):
    """Parts of the context, as many numbers each, that have one length and any direction alike."""

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
    """With the moments that agents are told, which must be those of a sphere."""
    size = known.context_mean.shape[0]
    variance = known.context_cov[0, 0]
    if np.any(known.context_mean):
        raise InputError("context_mean", known.context_mean, "0 where contexts are on a sphere")
    if np.any(known.context_cov != variance * np.eye(size)):
        raise InputError("context_cov", known.context_cov, "a number where contexts are on a sphere")
    return Sphere(parts, np.sqrt(variance * (size // parts)), size)


class Atoms(NamedTuple):
    """Each of these as likely as any other."""

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
        place = xp.clip(xp.floor(uniform * atoms.shape[0]), 0, atoms.shape[0] - 1)
        found: Array = atoms[place.astype(xp.int32)]
        return found


class Rows(NamedTuple):
    """The rows of a record, one a round."""

    rows: Array  # (n, d)

    @property
    def normals(self) -> int:
        """As many as a Gaussian context, none of them used: runs with and without data share the rest."""
        return self.rows.shape[1]

    def draw(self, normals: Array, row: Ints | None) -> Array:
        """The row of this round."""
        xp = normals.__array_namespace__()
        found: Array = xp.asarray(self.rows)[row]
        return found


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


class Clock(NamedTuple):
    """The times of the rows of a record."""

    times: Array  # (n,)  never going back

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.times)

    @property
    def lap(self) -> float:
        """From a row to the same row when its turn comes again: twice the span and the gap, in weeks."""
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
