"""Denoises many rows at once: the posterior of every context, with its bias integrated out.

With the bias of a row's device N(g, S), its noise N, and o the coordinates that were not lost,

    c | x ~ N(m + G (x - m - g),  C - G C),   G = C E,   E = ((C + N + S)_oo)^-1, zero outside o,

which is `unfog.agents.denoise.exact` (with gaps, `incomplete`) for one row. If the mean m was estimated
together with the biases it has a covariance Q, and X with the bias: then C + Q replaces C, C + Q + X is the
covariance of context and reading, and C + N + S + Q + X + X' that of the reading. G is the same for
all rows of one device that lost the same coordinates, unless rows have noises of their own: one small inverse
for each such set of rows, and one product.

The output for each context (`write_columns`) is its mean, its mean and standard deviations, or draws.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from unfog.adapters.denoising.arguments import Rows
from unfog.adapters.denoising.statistics import Beliefs, Biases, codes
from unfog.channel.knowledge import Shrinkage, masked_inverse, masked_shrinkage, posterior_mean
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.gaussian import singular_root

Shrinker = Callable[[Array, Any, Array], tuple[Shrinkage, Array]]

CELLS = 2**16  # numbers in a batch of matrices: they fit into the cache
MANY = 32  # rows per set from which a matrix product for each set pays


class Block(NamedTuple):
    """Some of the rows, and their contexts."""

    rows: Ints | slice
    mean: Array  # (k, d)
    cov: Array  # (d, d), or (k, d, d)


def blocks(law: Context, noise: Array, biases: Biases, data: Rows) -> Iterator[Block]:
    """The posteriors of all rows, in blocks that cover them."""
    rows, of = data.noisy, data.of
    lost = np.isnan(rows)
    if biases.prior is None and not noise.any() and not biases.offset.any():
        yield from _fill_gaps(law, rows, lost)
        return
    shrink = _make_shrinker(law, biases, biases.each(data.devices))
    if noise.ndim == 3:
        yield from _shrink_each(shrink, noise, rows, lost, of)
        return
    sets = list(_group_rows(lost, of))
    if len(sets) > max(1, len(rows) // MANY):
        yield from _shrink_each(shrink, noise, rows, lost, of)
        return
    for index, first in sets:
        shrunk, bias = shrink(noise, of[first], (~lost[first]).astype(np.float64))
        yield Block(index, _compute_means(shrunk, rows[index], bias, lost[first]), shrunk.cov)


def _make_shrinker(law: Context, biases: Biases, beliefs: Beliefs) -> Shrinker:
    """A function from noise, devices and mask of readings to their shrinkage and their biases."""
    prior = law.cov if biases.mean_cov is None else law.cov + biases.mean_cov
    cross = prior + beliefs.cross
    reading = cross + beliefs.cov + beliefs.cross.mT

    def shrink(noise: Array, of: Any, mask: Array) -> tuple[Shrinkage, Array]:
        gain = cross[of] @ masked_inverse(reading[of] + noise, mask)
        return Shrinkage(law.mean, gain, prior - gain @ cross[of].mT), beliefs.mean[of]

    return shrink


def _compute_means(shrunk: Shrinkage, rows: Array, bias: Array, lost: Bools) -> Array:
    """Posterior means of rows that share a gain, by one matrix product."""
    complete = np.where(lost, 0.0, rows) if lost.any() else rows
    return shrunk.mean + (complete - (shrunk.mean + bias)) @ shrunk.gain.T


def _fill_gaps(law: Context, rows: Array, lost: Bools) -> Iterator[Block]:
    """Fill the gaps of rows without any error; all other numbers stay as they are, to the bit."""
    for index, first in _group_rows(lost, np.zeros(len(rows), np.intp)):
        gaps = lost[first].astype(np.float64)
        shrunk = masked_shrinkage(law.mean, law.cov, np.zeros_like(law.cov), 1 - gaps)
        means = _compute_means(shrunk, rows[index], np.zeros_like(law.mean), lost[first])
        yield Block(index, np.where(lost[first], means, rows[index]), shrunk.cov * gaps * gaps[:, None])


def _shrink_each(shrink: Shrinker, noise: Array, rows: Array, lost: Bools, of: Ints) -> Iterator[Block]:
    """Posteriors of rows that each have a gain of their own."""
    size = max(1, CELLS // rows.shape[1] ** 2)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        mask = (~lost[part]).astype(np.float64)
        shrunk, bias = shrink(noise[part] if noise.ndim == 3 else noise, of[part], mask)
        filled = np.where(lost[part], shrunk.mean, rows[part])
        yield Block(part, posterior_mean(shrunk, filled, bias), shrunk.cov)


def _group_rows(lost: Bools, of: Ints) -> Iterator[tuple[Ints | slice, int]]:
    """Groups of rows of one device that lost the same coordinates, and the first row of each."""
    if not lost.any() and not of.any():
        if len(of):
            yield slice(None), 0
        return
    sets = codes(lost) * (of.max() + 1) + of
    order = np.argsort(sets, kind="stable")
    ends = np.flatnonzero(np.diff(sets[order])) + 1
    for index in np.split(order, ends):
        yield index, int(index[0])


def endings(output: str, draws: int) -> tuple[str, ...]:
    """The suffixes of the names of columns, one for each copy."""
    if output == "draws":
        return tuple(f"_draw{i}" for i in range(1, draws + 1))
    return ("",) if output == "mean" else ("", "_sd")


def write_columns(
    output: str, blocks: Iterable[Block], shape: tuple[int, int], normals: Callable[[], Array]
) -> Array:
    """The columns (n, d copies); `normals` gives standard normals (n, draws, d), where they are needed."""
    rows, dim = shape
    if output == "mean":
        means = np.empty(shape)
        for block in blocks:
            means[block.rows] = block.mean
        return means
    if output == "mean+sd":
        both = np.empty((rows, 2 * dim))
        for block in blocks:
            both[block.rows, :dim] = block.mean
            both[block.rows, dim:] = np.sqrt(np.maximum(np.linalg.diagonal(block.cov), 0.0))
        return both
    draws = normals()
    for block in blocks:
        root = singular_root(block.cov)
        draws[block.rows] = block.mean[:, None] + draws[block.rows] @ root.mT
    return draws.reshape(rows, -1)
