"""Many rows denoised at once: the posterior of every context, its bias integrated out.

With the bias of a row's device N(g, S), its noise N, and o the coordinates that were not lost,

    c | x ~ N(m + G (x - m - g),  C - G C),   G = C E,   E = ((C + N + S)_oo)^-1, zero outside o,

which is `unfog.agents.denoise.exact` (with gaps, `incomplete`) for one row. G is the same for all rows of one
device that lost the same coordinates, unless rows have noises of their own: one small inverse for each such
set of rows, and one product.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising.biases import Biases
from unfog.adapters.denoising.told import Rows
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, Ints
from unfog.model.shrinkage import Shrinkage, masked_shrinkage, posterior_mean

CELLS = 2**16  # numbers of a batch of matrices that are made at once: they stay near the processor
CODED = 40  # coordinates whose pattern of gaps is told by one whole number


class Block(NamedTuple):
    """Some of the rows, and their contexts."""

    rows: Ints | slice
    mean: Array  # (k, d)
    cov: Array  # (d, d), or (k, d, d)


def blocks(law: Context, noise: Array, biases: Biases, given: Rows) -> Iterator[Block]:
    """The posteriors of all rows, in blocks that cover them."""
    rows, of = given.noisy, given.of
    lost = np.isnan(rows)
    if biases.prior is None and not noise.any() and not biases.offset.any():
        yield from _filled(law, rows, lost)
        return
    beliefs = [biases.of(device) for device in given.devices]
    if noise.ndim == 3:
        yield from _each(law, noise, beliefs, rows, lost, of)
        return
    for chosen, first in _alike(lost, of):
        mean, cov = beliefs[of[first]]
        mask = (~lost[first]).astype(np.float64)
        shrunk = masked_shrinkage(law.mean, law.cov, noise + cov, mask)
        found = _means(shrunk, rows[chosen], mean, lost[first])
        yield Block(chosen, found, shrunk.cov)


def _means(shrunk: Shrinkage, rows: Array, bias: Array, lost: Bools) -> Array:
    """One product for all rows that share a gain."""
    whole = np.where(lost, 0.0, rows) if lost.any() else rows
    return shrunk.mean + (whole - (shrunk.mean + bias)) @ shrunk.gain.T


def _filled(law: Context, rows: Array, lost: Bools) -> Iterator[Block]:
    """Without any error rows stay as they are, to the bit, and only gaps are filled."""
    for chosen, first in _alike(lost, np.zeros(len(rows), np.intp)):
        gaps = lost[first].astype(np.float64)
        shrunk = masked_shrinkage(law.mean, law.cov, np.zeros_like(law.cov), 1 - gaps)
        found = _means(shrunk, rows[chosen], np.zeros_like(law.mean), lost[first])
        yield Block(chosen, np.where(lost[first], found, rows[chosen]), shrunk.cov * gaps * gaps[:, None])


def _each(
    law: Context, noise: Array, beliefs: list[tuple[Array, Array]], rows: Array, lost: Bools, of: Ints
) -> Iterator[Block]:
    """Each row with a gain of its own."""
    means, covs = (np.stack(kind) for kind in zip(*beliefs, strict=True))
    size = max(1, CELLS // rows.shape[1] ** 2)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        mask = (~lost[part]).astype(np.float64)
        shrunk = masked_shrinkage(law.mean, law.cov, noise[part] + covs[of[part]], mask)
        filled = np.where(lost[part], law.mean, rows[part])
        yield Block(part, posterior_mean(shrunk, filled, means[of[part]]), shrunk.cov)


def _alike(lost: Bools, of: Ints) -> Iterator[tuple[Ints | slice, int]]:
    """Rows of one device that lost the same coordinates, and the first of them."""
    if not lost.any() and not of.any():
        if len(of):
            yield slice(None), 0
        return
    codes = _codes(lost) * (of.max() + 1) + of
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for chosen in np.split(order, ends):
        yield chosen, int(chosen[0])


def _codes(lost: Bools) -> Ints:
    """A whole number for each pattern of gaps."""
    if lost.shape[1] <= CODED:
        return lost @ (1 << np.arange(lost.shape[1], dtype=np.intp))
    return np.unique(lost, axis=0, return_inverse=True)[1].reshape(-1)
