"""Many rows denoised at once, the posterior of every context, its bias integrated out.

With the bias of a row's device N(g, S), its noise N, and o the coordinates that were not lost,

    c | x ~ N(m + G (x - m - g),  C - G C),   G = C E,   E = ((C + N + S)_oo)^-1, zero outside o,

which is `unfog.agents.denoise.exact` (with gaps, `incomplete`) for one row. Where the mean m was found
together with the biases it has a covariance Q, and X with the bias: then C + Q stands for C, C + Q + X for
the covariance of context and reading, and C + N + S + Q + X + X' for that of the reading. G is the same for
all rows of one device that lost the same coordinates, unless rows have noises of their own: one small inverse
for each such set of rows, and one product.

What is handed on of each context (`written`) is its mean, its mean and deviations, or draws of it.
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

CELLS = 2**16  # numbers of a batch of matrices that are made at once: they stay near the processor
MANY = 32  # rows to a set for which a product of its own pays


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
    shrink = _shrinker(law, biases, biases.each(given.devices))
    if noise.ndim == 3:
        yield from _each(shrink, noise, rows, lost, of)
        return
    sets = list(_alike(lost, of))
    if len(sets) > max(1, len(rows) // MANY):
        yield from _each(shrink, noise, rows, lost, of)
        return
    for chosen, first in sets:
        shrunk, bias = shrink(noise, of[first], (~lost[first]).astype(np.float64))
        yield Block(chosen, _means(shrunk, rows[chosen], bias, lost[first]), shrunk.cov)


def _shrinker(law: Context, biases: Biases, beliefs: Beliefs) -> Shrinker:
    """How readings of some noise, of these devices, with this mask are drawn in; and their biases."""
    prior = law.cov if biases.mean_cov is None else law.cov + biases.mean_cov
    cross = prior + beliefs.cross
    reading = cross + beliefs.cov + beliefs.cross.mT

    def shrink(noise: Array, of: Any, mask: Array) -> tuple[Shrinkage, Array]:
        gain = cross[of] @ masked_inverse(reading[of] + noise, mask)
        return Shrinkage(law.mean, gain, prior - gain @ cross[of].mT), beliefs.mean[of]

    return shrink


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


def _each(shrink: Shrinker, noise: Array, rows: Array, lost: Bools, of: Ints) -> Iterator[Block]:
    """Each row with a gain of its own."""
    size = max(1, CELLS // rows.shape[1] ** 2)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        mask = (~lost[part]).astype(np.float64)
        shrunk, bias = shrink(noise[part] if noise.ndim == 3 else noise, of[part], mask)
        filled = np.where(lost[part], shrunk.mean, rows[part])
        yield Block(part, posterior_mean(shrunk, filled, bias), shrunk.cov)


def _alike(lost: Bools, of: Ints) -> Iterator[tuple[Ints | slice, int]]:
    """Rows of one device that lost the same coordinates, and the first of them."""
    if not lost.any() and not of.any():
        if len(of):
            yield slice(None), 0
        return
    sets = codes(lost) * (of.max() + 1) + of
    order = np.argsort(sets, kind="stable")
    ends = np.flatnonzero(np.diff(sets[order])) + 1
    for chosen in np.split(order, ends):
        yield chosen, int(chosen[0])


def endings(output: str, draws: int) -> tuple[str, ...]:
    """What is behind the names of columns, copy by copy."""
    if output == "draws":
        return tuple(f"_draw{i}" for i in range(1, draws + 1))
    return ("",) if output == "mean" else ("", "_sd")


def written(
    output: str, found: Iterable[Block], shape: tuple[int, int], normals: Callable[[], Array]
) -> Array:
    """The columns (n, d copies); `normals` gives standard normals (n, draws, d), where they are needed."""
    rows, dim = shape
    if output == "mean":
        means = np.empty(shape)
        for block in found:
            means[block.rows] = block.mean
        return means
    if output == "mean+sd":
        both = np.empty((rows, 2 * dim))
        for block in found:
            both[block.rows, :dim] = block.mean
            both[block.rows, dim:] = np.sqrt(np.maximum(np.linalg.diagonal(block.cov), 0.0))
        return both
    drawn = normals()
    for block in found:
        root = singular_root(block.cov)
        drawn[block.rows] = block.mean[:, None] + drawn[block.rows] @ root.mT
    return drawn.reshape(rows, -1)
