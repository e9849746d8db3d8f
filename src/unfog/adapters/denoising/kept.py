"""What is kept of all rows so far: sums, so that to go on with more rows is to have had them all at once.

A row is y = (x, t), a reading and its true context, not a number where lost or not known. Rows of one device
that lack the same numbers and share a noise say what they say through their count and their sum: one entry
for them. A row with a noise of its own is an entry by itself. Beside the entries stand second moments, of
readings by device for every two coordinates that are there, and of whole pairs. All sums are about a centre,
so that they lose no digits.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from unfog.adapters.denoising.patterns import codes
from unfog.adapters.denoising.told import Rows
from unfog.maths.arrays import Array, Bools, Ints


class Entries(NamedTuple):
    """Rows that say alike, P times."""

    of: Ints  # (P,)  their device
    mask: Array  # (P, 2 d)  1 where a number is there
    times: Array  # (P,)  how many rows
    total: Array  # (P, 2 d)  about the centre
    noise: Array  # (P, d, d)  not a number: that of all rows to which none was told

    def at(self, chosen: Any) -> "Entries":
        """Some of them."""
        picked = self.of[chosen], self.mask[chosen], self.times[chosen], self.total[chosen]
        return Entries(*picked, self.noise[chosen])

    def beside(self, more: "Entries") -> "Entries":
        """With others behind."""
        return Entries(
            np.concatenate([self.of, more.of]),
            np.concatenate([self.mask, more.mask]),
            np.concatenate([self.times, more.times]),
            np.concatenate([self.total, more.total]),
            np.concatenate([self.noise, more.noise]),
        )


class Sums(NamedTuple):
    """Second moments; the first axis, where there are three, is of devices."""

    both: Array  # (G, d, d)  readings that have both coordinates
    total: Array  # (G, d, d)  of coordinate j over these
    product: Array  # (d, d)
    pairs: Array  # (G,)  whole readings with whole truths
    pair_total: Array  # (G, 2 d)
    pair_product: Array  # (2 d, 2 d)
    own: Array  # (d, d)  of `both`, rows with a noise of their own
    own_noise: Array  # (d, d)  the sum of it


class Kept(NamedTuple):
    """All of it."""

    centre: Array  # (d,)
    devices: dict[Hashable, int]
    entries: Entries
    sums: Sums

    @property
    def truths(self) -> bool:
        """Whether any true context, or a part of one, was ever told."""
        return bool(self.entries.mask[:, self.centre.size :].any())

    @property
    def shown(self) -> Bools:
        """Of which coordinates any truth is known, (d,)."""
        return np.asarray(self.entries.mask[:, self.centre.size :].any(axis=0))

    @property
    def apart(self) -> bool:
        """Whether any row had a noise of its own."""
        return bool(self.sums.own.any())


def kept(before: Kept | None, rows: Rows, noise: Array | None) -> Kept:
    """With these rows, whose noise is told by row, for all of them, or not at all."""
    dim = rows.noisy.shape[1]
    centre = middle(rows.noisy) if before is None else before.centre
    devices = {} if before is None else dict(before.devices)
    for device in rows.devices if len(rows.of) else ():
        devices.setdefault(device, len(devices))
    places = np.array([devices.get(device, 0) for device in rows.devices], np.intp)
    of = places[rows.of]
    true = np.full(rows.noisy.shape, np.nan) if rows.true is None else rows.true
    both = np.concatenate([rows.noisy - centre, true - centre], axis=1)
    entries, sums = _entries(both, of, noise), _sums(both, of, noise, len(devices))
    if before is not None:
        entries, sums = _joined(before.entries, entries), _added(before.sums, sums)
    return Kept(np.asarray(centre.reshape(dim)), devices, entries, sums)


def middle(rows: Array) -> Array:
    """The mean of what is there, zero where nothing is."""
    return np.asarray(np.nansum(rows, axis=0) / np.maximum((~np.isnan(rows)).sum(0), 1))


def _entries(both: Array, of: Ints, noise: Array | None) -> Entries:
    n, dim = len(both), both.shape[1] // 2
    there = ~np.isnan(both)
    mask, total = there.astype(np.float64), np.where(there, both, 0.0)
    if noise is not None and noise.ndim == 3:
        return Entries(of, mask, np.ones(n), total, noise)
    shared = np.full((dim, dim), np.nan) if noise is None else noise
    found = _merged(Entries(of, mask, np.ones(n), total, np.empty((n, 0, 0))))
    return found._replace(noise=np.broadcast_to(shared, (len(found.of), dim, dim)))


def _merged(given: Entries) -> Entries:
    """One entry for each device and pattern; their noise is left out."""
    if not len(given.of):
        return given
    code = codes(given.mask > 0) * (int(given.of.max()) + 1) + given.of
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    total = np.zeros((len(first), given.total.shape[1]))
    np.add.at(total, place, given.total)
    times = np.bincount(place, given.times, len(first)).astype(np.float64)
    return given.at(first)._replace(times=times, total=total)


def _joined(before: Entries, more: Entries) -> Entries:
    both = before.beside(more)
    shared = np.isnan(both.noise).all(axis=(-2, -1))
    return _merged(both.at(shared)).beside(both.at(~shared))


def _sums(both: Array, of: Ints, noise: Array | None, devices: int) -> Sums:
    dim = both.shape[1] // 2
    there = ~np.isnan(both)
    seen, away = there[:, :dim].astype(np.float64), np.where(there, both, 0.0)
    read = away[:, :dim]
    whole = there.all(axis=1)
    pairs = away[whole]
    pair_total = np.zeros((devices, 2 * dim))
    np.add.at(pair_total, of[whole], pairs)
    count, blur = np.zeros((dim, dim)), np.zeros((dim, dim))
    if noise is not None:
        count = seen.T @ seen
        blur = noise * count if noise.ndim == 2 else np.einsum("nj,nk,njk->jk", seen, seen, noise)
    return Sums(
        _by_device(seen, seen, of, devices),
        _by_device(read, seen, of, devices),
        read.T @ read,
        np.bincount(of[whole], minlength=devices).astype(np.float64),
        pair_total,
        pairs.T @ pairs,
        count,
        blur,
    )


def _by_device(left: Array, right: Array, of: Ints, devices: int) -> Array:
    """Sums over the rows of each device of left_j right_k, (G, d, d)."""
    if devices == 1:
        return (left.T @ right)[None]
    dim = left.shape[1]
    found = np.empty((devices, dim, dim))
    for j in range(dim):
        for k in range(dim):
            found[:, j, k] = np.bincount(of, left[:, j] * right[:, k], devices)
    return found


def _added(before: Sums, more: Sums) -> Sums:
    """Devices that are new had nothing before."""
    wide = len(more.pairs) - len(before.pairs)

    def grown(old: Array, new: Array) -> Array:
        return np.pad(old, [(0, wide), *[(0, 0)] * (old.ndim - 1)]) if len(old) != len(new) else old

    per_device = {"both", "total", "pairs", "pair_total"}
    return Sums(
        *(
            (grown(old, new) if name in per_device else old) + new
            for name, old, new in zip(Sums._fields, before, more, strict=True)
        )
    )
