"""Where contexts come from: a Gaussian law, a sphere, atoms drawn at random, or a record's rows in order.

Each draws a context (..., d) from its own normals, or from the row (...,) of the record that a round has.
"""

from typing import NamedTuple, Protocol

import numpy as np

from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import from_moments
from unfog.validation import InputError


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
